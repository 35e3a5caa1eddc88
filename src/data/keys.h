// Names of the recipe's keys for files: one list for reading, checking and messages.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>

#include "data/config.h"

namespace heddle::io {
class TomlDocument;
}

namespace heddle::data {

struct FileKey {
  std::string_view name;
  std::string Files::* member;
};

inline constexpr std::array<FileKey, 9> kFileKeys = {{{"chat", &Files::chat},
                                                      {"source", &Files::source},
                                                      {"target", &Files::target},
                                                      {"pairs", &Files::pairs},
                                                      {"tags", &Files::tags},
                                                      {"labelled", &Files::labelled},
                                                      {"images", &Files::images},
                                                      {"labels", &Files::labels},
                                                      {"image_folder", &Files::image_folder}}};

// "pairs" of the test split is the key "test_pairs"; "text" is "text", "validation" or "test".
inline std::string key_name(Split split, std::string_view base) {
  if (split == Split::training) return std::string(base);
  const std::string prefix = split == Split::validation ? "validation" : "test";
  return base == "text" ? prefix : prefix + "_" + std::string(base);
}

// Every path that the table [data] of a recipe names, changed in place; a tokenizer is one if it is
// a file.
void map_paths(io::TomlDocument& recipe,
               const std::function<std::string(const std::string& path)>& change);

inline const std::string& file_of(const Files& files, std::string_view name) {
  for (const FileKey& key : kFileKeys)
    if (key.name == name) return files.*key.member;
  static const std::string none;
  return none;
}

}  // namespace heddle::data
