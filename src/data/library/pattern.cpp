#include "data/library/pattern.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace heddle::data {

bool is_pattern(std::string_view name) {
  return name.find_first_of("*?[") != std::string_view::npos;
}

std::vector<std::string> files_matching(const std::string& pattern) {
  std::error_code error;
  if (!is_pattern(pattern) || std::filesystem::exists(pattern, error)) return {};
  glob_t found{};
  std::vector<std::string> files;
  if (::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found) == 0) {
    for (std::size_t i = 0; i < found.gl_pathc; ++i)
      if (!std::filesystem::is_directory(found.gl_pathv[i], error))
        files.emplace_back(found.gl_pathv[i]);
  }
  ::globfree(&found);
  std::ranges::sort(files);
  return files;
}

}  // namespace heddle::data
