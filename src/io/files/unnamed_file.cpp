#include "io/files/unnamed_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <thread>

#include "io/errors.h"
#include "io/files/file.h"

namespace heddle::io {
namespace {

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// A name that no other writer has: the process and a counter in it.
std::string name_beside(const std::string& path) {
  static std::atomic<unsigned> counter{0};
  return folder_of(path) + "/.heddle-" + std::to_string(::getpid()) + "-u" +
         std::to_string(counter.fetch_add(1)) + ".tmp";
}

std::string place_of(const Descriptor& file) {
  return "/proc/self/fd/" + std::to_string(file.get());
}

// -1 where there are no such files here, or none that could get a name later.
int open_unnamed(const std::string& folder) {
  const int fd = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, mode_t{0666});
  if (fd < 0) return -1;
  Descriptor file(fd);
  if (::access(place_of(file).c_str(), F_OK) != 0) return -1;
  return ::fcntl(file.get(), F_DUPFD_CLOEXEC, 0);
}

}  // namespace

UnnamedFile::UnnamedFile(const std::string& path)
    : path_(path), file_(open_unnamed(folder_of(path))) {
  if (file_.valid()) return;
  if (!directory_exists(folder_of(path)))
    fail_io(path, "its folder is not there", "a folder that is there: mkdir -p makes it");
  const std::string name = name_beside(path);
  file_ = open_file(name, O_RDWR | O_CREAT | O_EXCL);
  temporary_ = name;
}

UnnamedFile::~UnnamedFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void UnnamedFile::write(const void* data, std::size_t bytes) {
  write_all(file_, path_, data, bytes);
}

void UnnamedFile::write_at(const void* data, std::size_t bytes, std::uint64_t offset) {
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t put = ::pwrite(file_.get(), static_cast<const char*>(data) + done, bytes - done,
                                 static_cast<off_t>(offset + done));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail_system(path_, "cannot write", errno);
    done += static_cast<std::size_t>(put);
  }
}

void UnnamedFile::commit() {
  // Without this a crash could leave the new name on an empty file.
  if (::fsync(file_.get()) != 0) fail_system(path_, "cannot write to the disk", errno);
  if (temporary_.empty()) {
    const std::string name = name_beside(path_);
    if (::linkat(AT_FDCWD, place_of(file_).c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) != 0)
      fail_system(path_, "cannot give the file a name", errno);
    temporary_ = name;
  }
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0)
    fail_system(path_, "cannot rename the temporary file", errno);
  temporary_.clear();
  // The rename is on the disk when its folder is; some file systems know no fsync of one.
  const Descriptor folder = open_file(folder_of(path_), O_RDONLY | O_DIRECTORY);
  if (::fsync(folder.get()) != 0 && errno != EINVAL && errno != ENOTSUP)
    fail_system(path_, "was replaced, but its folder cannot be written to the disk", errno);
}

Descriptor open_lock(const std::string& path) { return open_regular(path, O_RDWR | O_CREAT); }

bool has_taken_lock(const Descriptor& file, const std::string& path) {
  if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) return true;
  if (errno != EWOULDBLOCK && errno != EINTR) fail_system(path, "cannot lock", errno);
  return false;
}

void pause_for_lock() { std::this_thread::sleep_for(std::chrono::milliseconds(100)); }

}  // namespace heddle::io
