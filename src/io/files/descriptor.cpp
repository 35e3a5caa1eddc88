#include "io/files/descriptor.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "io/errors.h"

namespace heddle::io {
namespace {

// Linux moves at most about 2 GiB per call.
constexpr std::size_t kPerCall = std::size_t{1} << 30;

void check_path(const std::string& path) {
  // A path with a NUL inside would open the file named by what stands before it.
  if (path.empty() || path.find('\0') != std::string::npos)
    fail_io(shown(path), "not a path of a file");
}

void check_regular(const std::string& path, mode_t mode) {
  if (S_ISREG(mode)) return;
  const char* kind = S_ISDIR(mode)    ? "a directory"
                     : S_ISFIFO(mode) ? "a pipe"
                     : S_ISSOCK(mode) ? "a socket"
                                      : "a device";
  fail_io(path, std::string("is ") + kind + ", not a regular file",
          S_ISDIR(mode) ? "a file"
                        : "a file: what is read may have to be read again, so write it to one");
}

}  // namespace

int Descriptor::close() noexcept {
  if (fd_ < 0) return 0;
  return ::close(std::exchange(fd_, -1)) == 0 ? 0 : errno;
}

Descriptor open_file(const std::string& path, int flags, unsigned mode) {
  check_path(path);
  int fd = -1;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) fail_system(path, "cannot open", errno);
  return Descriptor(fd);
}

// The path is checked before it is opened, because opening alone may do something (a pipe, a tape),
// and after, because the file may have been replaced meanwhile.
Descriptor open_regular(const std::string& path, int flags, unsigned mode) {
  check_path(path);
  struct stat info{};
  if (::stat(path.c_str(), &info) == 0) check_regular(path, info.st_mode);
  Descriptor file = open_file(path, flags | O_NONBLOCK | O_NOCTTY, mode);
  if (::fstat(file.get(), &info) != 0) fail_system(path, "cannot look at it", errno);
  check_regular(path, info.st_mode);
  return file;
}

std::uint64_t length_of(const Descriptor& file, const std::string& path) {
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) fail_system(path, "cannot look at it", errno);
  return static_cast<std::uint64_t>(info.st_size);
}

std::size_t read_some(const Descriptor& file, const std::string& path, void* data,
                      std::size_t bytes) {
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t got =
        ::read(file.get(), static_cast<char*>(data) + done, std::min(bytes - done, kPerCall));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_system(path, "cannot read", errno);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

std::size_t read_at(const Descriptor& file, const std::string& path, void* data, std::size_t bytes,
                    std::uint64_t offset) {
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t got =
        ::pread(file.get(), static_cast<char*>(data) + done, std::min(bytes - done, kPerCall),
                static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_system(path, "cannot read at offset " + std::to_string(offset + done), errno);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

void write_all(const Descriptor& file, const std::string& path, const void* data,
               std::size_t bytes) {
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t put = ::write(file.get(), static_cast<const char*>(data) + done,
                                std::min(bytes - done, kPerCall));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail_system(path, "cannot write", errno);
    done += static_cast<std::size_t>(put);
  }
}

}  // namespace heddle::io
