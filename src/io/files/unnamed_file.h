// A file that has no name until it is whole: whatever ends the process before that, nothing is left
// of it. Unlike AtomicFile it may be written anywhere, and it is for files of many gigabytes, whose
// halves nobody would want to find.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "io/files/descriptor.h"

namespace heddle::io {

class UnnamedFile {
 public:
  // For the folder of `path`, which must be there. Where the file system knows no files without a
  // name (NFS), it has a temporary one, which a kill would leave.
  explicit UnnamedFile(const std::string& path);
  ~UnnamedFile();
  UnnamedFile(const UnnamedFile&) = delete;
  UnnamedFile& operator=(const UnnamedFile&) = delete;

  void write(const void* data, std::size_t bytes);  // at the end
  void write_at(const void* data, std::size_t bytes, std::uint64_t offset);
  // On the disk, and then by its name in place of what may have been there.
  void commit();

 private:
  std::string path_, temporary_;  // temporary_ is empty while it has no name
  Descriptor file_;
};

// Takes the lock of a file that is there for nothing else, and makes it where it is missing. While
// another process has it, `waiting` is called a few times a second; it may throw to give up.
// The system releases the lock with the process.
template <class Waiting>
Descriptor wait_for_lock(const std::string& path, const Waiting& waiting);

bool has_taken_lock(const Descriptor& file, const std::string& path);
Descriptor open_lock(const std::string& path);
void pause_for_lock();

template <class Waiting>
Descriptor wait_for_lock(const std::string& path, const Waiting& waiting) {
  Descriptor lock = open_lock(path);
  while (!has_taken_lock(lock, path)) {
    waiting();
    pause_for_lock();
  }
  return lock;
}

}  // namespace heddle::io
