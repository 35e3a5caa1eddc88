// The files that a text comes from: whether they are those that a token file was made of.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace heddle::data {

class SourceFiles {
 public:
  // Looks at their lengths and times.
  explicit SourceFiles(std::vector<std::string> paths);

  const std::vector<std::string>& paths() const { return paths_; }

  // Hash of lengths and times: where it is the same, the contents are.
  std::uint64_t stamp() const { return stamp_; }
  // Whether all were last changed some seconds ago: a file that is written to right now may change
  // again without its time telling.
  bool is_settled() const;
  // Hash of their bytes on the disk, which are read once for it.
  std::uint64_t content();
  std::uint64_t bytes() const { return bytes_; }  // on the disk

  // Error where a file has changed since.
  void check_unchanged() const;

 private:
  std::vector<std::string> paths_;
  std::uint64_t stamp_ = 0, bytes_ = 0;
  std::int64_t youngest_ = 0;  // seconds since 1970
  std::optional<std::uint64_t> content_;
};

}  // namespace heddle::data
