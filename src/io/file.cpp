#include "io/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>

#include "heddle/error.h"
#include "io/errors.h"

namespace heddle::io {
namespace {

std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// The file a link leads to, so that the link survives a rename; the path itself otherwise.
std::string behind_links(const std::string& path) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0 || !S_ISLNK(info.st_mode)) return path;
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr),
                                                         &std::free);
  if (!real) fail_system(path, "cannot follow the link", errno);
  return real.get();
}

// A name that no other writer has: the process and a counter in it.
std::string temporary_beside(const std::string& target) {
  static std::atomic<unsigned> counter{0};
  return directory_of(target) + "/.heddle-" + std::to_string(::getpid()) + "-" +
         std::to_string(counter.fetch_add(1)) + ".tmp";
}

// A rename is on the disk when its directory is.
void sync_directory(const std::string& target, const std::string& path) {
  const Descriptor directory = open_file(directory_of(target), O_RDONLY | O_DIRECTORY);
  // Some network file systems know no fsync of a directory, and say so.
  if (::fsync(directory.get()) != 0 && errno != EINVAL && errno != ENOTSUP)
    fail_system(path, "was replaced, but its directory cannot be written to the disk", errno);
}

}  // namespace

std::string read_file(const std::string& path, std::size_t max_bytes) {
  constexpr std::size_t kStep = std::size_t{1} << 16;
  const Descriptor file = open_file(path, O_RDONLY);
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) fail_system(path, "cannot look at it", errno);
  if (S_ISDIR(info.st_mode)) fail_io(path, "is a directory", "a file");
  const auto too_long = [&] {
    fail_io(path, "is too large", "at most " + std::to_string(max_bytes) + " bytes",
            S_ISREG(info.st_mode) ? std::to_string(info.st_size) + " bytes" : "more");
  };
  const auto size = static_cast<std::size_t>(info.st_size);  // 0 for pipes
  if (size > max_bytes) too_long();
  max_bytes = std::min(max_bytes, std::string().max_size() / 4);  // sums below cannot overflow

  // One byte more than announced tells the end; files that grow and pipes need more rounds.
  std::string bytes;
  std::size_t filled = 0;
  for (std::size_t room = std::max(size, kStep) + 1;; room = 2 * room) {
    bytes.resize(std::min(room, max_bytes + 1));
    filled += read_some(file, path, bytes.data() + filled, bytes.size() - filled);
    if (filled > max_bytes) too_long();
    if (filled < bytes.size()) break;
  }
  bytes.resize(filled);
  return bytes;
}

void write_file_atomic(const std::string& path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

bool file_exists(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  return std::filesystem::exists(status) && !std::filesystem::is_directory(status);
}

bool directory_exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

void make_directories(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) fail_system(path, "cannot make the directory", error.value());
  if (!directory_exists(path)) fail_io(path, "is there, but is not a directory");
}

AtomicFile::AtomicFile(const std::string& path) : path_(path), target_(behind_links(path)) {
  if (path.empty() || path.find('\0') != std::string::npos)
    fail_io(shown(path), "not a path of a file");
  struct stat info{};
  const bool exists = ::stat(target_.c_str(), &info) == 0;
  if (exists && !S_ISREG(info.st_mode))
    fail_io(path_, "cannot be replaced", "a regular file, or none",
            S_ISDIR(info.st_mode) ? "a directory" : "a device, pipe or socket");
  // A file of the same name can only be left over from a process that was killed.
  for (int attempt = 0; !file_.valid(); ++attempt) {
    temporary_ = temporary_beside(target_);
    file_ = Descriptor(
        ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode_t{0666}));
    if (file_.valid() || errno == EINTR || (errno == EEXIST && attempt < 1000)) continue;
    fail_system(path_, "cannot make a temporary file in " + directory_of(target_), errno);
  }
  if (exists && ::fchmod(file_.get(), info.st_mode & 07777) != 0) {
    const int error = errno;
    ::unlink(temporary_.c_str());
    fail_system(path_, "cannot give the new file the permissions of the old one", error);
  }
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(const void* data, std::size_t bytes) {
  if (!file_.valid()) fail_io(path_, "written to after commit()");
  write_all(file_, path_, data, bytes);
  written_ += bytes;
}

void AtomicFile::commit() {
  if (!file_.valid()) fail_io(path_, "committed twice");
  // Without this a crash could leave the new name on an empty file.
  if (::fsync(file_.get()) != 0) fail_system(path_, "cannot write to the disk", errno);
  if (const int error = file_.close()) fail_system(path_, "cannot close", error);
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0)
    fail_system(path_, "cannot rename the temporary file", errno);
  temporary_.clear();
  sync_directory(target_, path_);
}

AppendFile::AppendFile(const std::string& path)
    : path_(path), file_(open_file(path, O_RDWR | O_CREAT | O_APPEND)) {
  struct stat info{};
  if (::fstat(file_.get(), &info) != 0) fail_system(path_, "cannot look at it", errno);
  size_ = S_ISREG(info.st_mode) ? static_cast<std::uint64_t>(info.st_size) : 0;
  char last = '\n';
  if (size_ > 0) read_at(file_, path_, &last, 1, size_ - 1);
  at_line_start_ = last == '\n';
}

void AppendFile::append_line(std::string_view line) {
  if (line.find('\n') != std::string_view::npos)
    fail_io(path_, "a line of a log has a newline inside", {}, shown(line));
  std::string bytes = at_line_start_ ? "" : "\n";
  bytes += line;
  bytes += '\n';
  try {
    write_all(file_, path_, bytes.data(), bytes.size());
  } catch (const Error&) {
    // Takes back the part that did fit. Where that fails too, the next line starts anew.
    if (::ftruncate(file_.get(), static_cast<off_t>(size_)) != 0) at_line_start_ = false;
    throw;
  }
  size_ += bytes.size();
  at_line_start_ = true;
}

void AppendFile::truncate(std::uint64_t bytes) {
  if (bytes > size_)
    fail_io(path_, "is shorter than it was", "at least " + std::to_string(bytes) + " bytes",
            std::to_string(size_));
  if (::ftruncate(file_.get(), static_cast<off_t>(bytes)) != 0)
    fail_system(path_, "cannot cut it to " + std::to_string(bytes) + " bytes", errno);
  size_ = bytes;
  char last = '\n';
  if (size_ > 0) read_at(file_, path_, &last, 1, size_ - 1);
  at_line_start_ = last == '\n';
}

void AppendFile::flush() {
  // Pipes and terminals cannot be synced, and need not be.
  if (::fsync(file_.get()) != 0 && errno != EINVAL && errno != ENOTSUP)
    fail_system(path_, "cannot write to the disk", errno);
}

}  // namespace heddle::io
