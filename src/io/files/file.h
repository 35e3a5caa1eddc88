// Whole files: reading with a limit, writing so that a kill or a full disk at any instant leaves
// either the old file or the new one, and logs that grow by whole lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "io/files/descriptor.h"

namespace heddle::io {

// Throws Error when the file has more bytes than that, or than file_limit() of memory_limit.h,
// before it has taken more memory; and for anything but a regular file.
std::string read_file(const std::string& path, std::size_t max_bytes);
// The same by the number alone: for small files that say what the limit is.
std::string read_whole(const std::string& path, std::size_t max_bytes);
// Standard input, whatever it is, up to file_limit().
std::string read_standard_input();

// Temporary file in the same directory, fsync, rename, fsync of the directory.
void write_file_atomic(const std::string& path, std::string_view bytes);

bool file_exists(const std::string& path);       // a file, not a directory
bool directory_exists(const std::string& path);  // or a link to one
void make_directories(const std::string& path);  // with parents; one that exists is fine

// The same for what is written in pieces. Until commit() the file at `path` is as it was; without
// commit() it stays so and the temporary file is removed. A link at `path` is followed, an existing
// file's permissions are kept; anything but a regular file there (a device, a directory) is
// refused.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, std::size_t bytes);
  void write(std::string_view bytes) { write(bytes.data(), bytes.size()); }
  std::uint64_t bytes_written() const noexcept { return written_; }
  void commit();

 private:
  std::string path_;       // as given: what errors name
  std::string target_;     // links resolved
  std::string temporary_;  // empty once it is gone
  Descriptor file_;
  std::uint64_t written_ = 0;
};

// A log. Each line goes to the system in one write; a line that does not fit on the disk is taken
// back, so that the file has whole lines only.
class AppendFile {
 public:
  explicit AppendFile(const std::string& path);  // created when missing

  // Adds the newline; the line itself must not have one. Does not glue itself to a last line that
  // lacks its own newline (a crash of the machine may leave one).
  void append_line(std::string_view line);
  // Bytes as they are, for logs that have no lines.
  void append(std::string_view bytes);
  // Drops everything written after an offset, as when a run resumes from an earlier checkpoint. An
  // offset beyond the end is refused: it means that the log is not the one of that checkpoint.
  void truncate(std::uint64_t bytes);
  std::uint64_t size() const noexcept { return size_; }
  void flush();  // returns when the disk has it

 private:
  std::string path_;
  Descriptor file_;
  std::uint64_t size_ = 0;
  bool at_line_start_ = true;
};

}  // namespace heddle::io
