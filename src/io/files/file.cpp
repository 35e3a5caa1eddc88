#include "io/files/file.h"

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

#include "base/memory_error.h"
#include "heddle/error.h"
#include "io/errors.h"
#include "io/files/memory_limit.h"

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

constexpr std::size_t kMaxStandardInput = std::size_t{1} << 30;

// How much may be read, and how errors say it.
struct Bound {
  std::size_t bytes = 0;
  std::string text;
};

Bound bound_of(std::size_t max_bytes) {
  if (max_bytes <= file_limit()) return {max_bytes, std::to_string(max_bytes) + " bytes"};
  return {file_limit(), file_limit_text()};
}

// `announced` is the length that the system names: 0 for pipes and files it makes up.
std::string read_to_end(const Descriptor& file, const std::string& path, std::size_t announced,
                        const Bound& bound) {
  constexpr std::size_t kStep = std::size_t{1} << 16;
  const auto too_long = [&] {
    fail_io(path, "is too large", "at most " + bound.text,
            announced > 0 ? std::to_string(announced) + " bytes" : "more");
  };
  if (announced > bound.bytes) too_long();
  const std::size_t most = std::min(bound.bytes, std::string().max_size() / 4);  // sums are safe

  // One byte more than announced tells the end; files that grow and pipes need more rounds.
  std::string bytes;
  std::size_t filled = 0;
  for (std::size_t room = std::max(announced, kStep) + 1;; room = 2 * room) {
    bytes.resize(std::min(room, most + 1));
    filled += read_some(file, path, bytes.data() + filled, bytes.size() - filled);
    if (filled > most) too_long();
    if (filled < bytes.size()) break;
  }
  bytes.resize(filled);
  return bytes;
}

}  // namespace

std::string read_whole(const std::string& path, std::size_t max_bytes) {
  const Descriptor file = open_regular(path, O_RDONLY);
  return read_to_end(file, path, static_cast<std::size_t>(length_of(file, path)),
                     {max_bytes, std::to_string(max_bytes) + " bytes"});
}

std::string read_file(const std::string& path, std::size_t max_bytes) {
  const Descriptor file = open_regular(path, O_RDONLY);
  const auto announced = static_cast<std::size_t>(length_of(file, path));
  return with_stage("reading " + path,
                    [&] { return read_to_end(file, path, announced, bound_of(max_bytes)); });
}

std::string read_standard_input() {
  const char* name = "standard input";
  const Descriptor input(::dup(STDIN_FILENO));
  if (!input.valid()) fail_system(name, "cannot read", errno);
  return with_stage("reading standard input",
                    [&] { return read_to_end(input, name, 0, bound_of(kMaxStandardInput)); });
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
  if (error)
    fail_io(path, "cannot make the directory: " + error.message(),
            "a place where you may write, such as runs/mine");
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
    const int error = errno;
    if (error == ENOENT && !directory_exists(directory_of(target_)))
      fail_io(path_, "its folder is not there", "a folder that is there: mkdir -p makes it");
    fail_system(path_, "cannot make a temporary file in " + directory_of(target_), error);
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
    : path_(path), file_(open_regular(path, O_RDWR | O_CREAT | O_APPEND)) {
  size_ = length_of(file_, path_);
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
  append(bytes);
}

void AppendFile::append(std::string_view bytes) {
  if (bytes.empty()) return;
  try {
    write_all(file_, path_, bytes.data(), bytes.size());
  } catch (const Error&) {
    // Takes back the part that did fit. Where that fails too, the next line starts anew.
    if (::ftruncate(file_.get(), static_cast<off_t>(size_)) != 0) at_line_start_ = false;
    throw;
  }
  size_ += bytes.size();
  at_line_start_ = bytes.back() == '\n';
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
  // Some file systems know no fsync, and say so.
  if (::fsync(file_.get()) != 0 && errno != EINVAL && errno != ENOTSUP)
    fail_system(path_, "cannot write to the disk", errno);
}

}  // namespace heddle::io
