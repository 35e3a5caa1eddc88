// Keys and values of a config.json, or of GGUF metadata, that are to be written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace heddle::pretrained {

struct Setting;
using Settings = std::vector<Setting>;  // in the order of the file
// A null says that a family's default is not meant. GGUF has neither nulls nor tables.
using SettingValue = std::variant<std::nullptr_t, bool, std::int64_t, double, std::string,
                                  std::vector<bool>, std::vector<std::int64_t>, std::vector<double>,
                                  std::vector<std::string>, Settings>;

struct Setting {
  std::string key;
  SettingValue value;
};

inline void put(Settings& settings, std::string_view key, SettingValue value) {
  settings.push_back({std::string(key), std::move(value)});
}

}  // namespace heddle::pretrained
