#include "data/token_file/source_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "heddle/error.h"
#include "io/errors.h"
#include "io/files/checksums/xxh64.h"
#include "io/files/descriptor.h"

namespace heddle::data {
namespace {

constexpr std::int64_t kSettled = 2;  // seconds; file systems have times of up to two

struct Looks {
  std::uint64_t stamp = 0, bytes = 0;
  std::int64_t youngest = 0;
};

Looks look_at(const std::vector<std::string>& paths) {
  Looks looks;
  io::Xxh64 hash;
  for (const std::string& path : paths) {
    struct stat info{};
    if (::stat(path.c_str(), &info) != 0) io::fail_system(path, "cannot look at it", errno);
    hash.add_number(static_cast<std::uint64_t>(info.st_size));
    hash.add_number(static_cast<std::uint64_t>(info.st_mtim.tv_sec));
    hash.add_number(static_cast<std::uint64_t>(info.st_mtim.tv_nsec));
    looks.bytes += static_cast<std::uint64_t>(info.st_size);
    looks.youngest = std::max(looks.youngest, static_cast<std::int64_t>(info.st_mtim.tv_sec));
  }
  looks.stamp = hash.value();
  return looks;
}

}  // namespace

SourceFiles::SourceFiles(std::vector<std::string> paths) : paths_(std::move(paths)) {
  const Looks looks = look_at(paths_);
  stamp_ = looks.stamp;
  bytes_ = looks.bytes;
  youngest_ = looks.youngest;
}

bool SourceFiles::is_settled() const {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count() - youngest_ > kSettled;
}

std::uint64_t SourceFiles::content() {
  if (content_) return *content_;
  io::Xxh64 hash;
  std::vector<char> bytes(std::size_t{1} << 20);
  for (const std::string& path : paths_) {
    const io::Descriptor file = io::open_regular(path, O_RDONLY);
    std::uint64_t length = 0;
    for (std::size_t got = bytes.size(); got == bytes.size(); length += got) {
      got = io::read_some(file, path, bytes.data(), bytes.size());
      hash.add(bytes.data(), got);
    }
    hash.add_number(length);
  }
  content_ = hash.value();
  return *content_;
}

void SourceFiles::check_unchanged() const {
  if (look_at(paths_).stamp == stamp_) return;
  fail(ErrorCode::io, paths_.front(),
       paths_.size() == 1 ? "has changed while it was read"
                          : "this file, or one of those after it, has changed while it was read",
       "a text that stays as it is: the same command again");
}

}  // namespace heddle::data
