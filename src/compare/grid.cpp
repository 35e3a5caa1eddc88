#include "compare/grid.h"

#include <algorithm>
#include <string_view>

#include "heddle/error.h"

namespace heddle::compare {

namespace {

constexpr std::string_view kForm = "key=a,b,c such as model.attention.kv_heads=1,2,6";

std::string trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t") - first + 1));
}

// Commas at the top: outside of strings, arrays and tables.
std::vector<std::string> split_values(std::string_view text) {
  std::vector<std::string> values;
  std::size_t begin = 0;
  int depth = 0;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == '\\' && quote == '"') ++i;
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && depth == 0) {
      values.push_back(trimmed(text.substr(begin, i - begin)));
      begin = i + 1;
    }
  }
  values.push_back(trimmed(text.substr(begin)));
  return values;
}

std::string last_part(const std::string& key) { return key.substr(key.rfind('.') + 1); }

std::string without_quotes(const std::string& value) {
  const bool quoted = value.size() >= 2 && (value.front() == '"' || value.front() == '\'') &&
                      value.front() == value.back();
  return quoted ? value.substr(1, value.size() - 2) : value;
}

}  // namespace

Variation parse_variation(const std::string& text) {
  const auto refuse = [&text](const char* problem) {
    fail(ErrorCode::invalid_argument, "--vary", problem, kForm, "\"" + text + "\"");
  };
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) refuse("has no values");
  Variation v{trimmed(std::string_view(text).substr(0, equals)),
              split_values(std::string_view(text).substr(equals + 1))};
  if (v.key.empty()) refuse("has no key");
  if (v.values.size() == 1 && v.values[0].empty()) refuse("has no values");
  if (std::ranges::any_of(v.values, &std::string::empty)) refuse("has an empty value");
  return v;
}

std::vector<std::vector<Assignment>> combinations(const std::vector<Variation>& variations) {
  std::vector<std::vector<Assignment>> all = {{}};
  for (std::size_t i = 0; i < variations.size(); ++i) {
    const Variation& v = variations[i];
    for (std::size_t j = 0; j < i; ++j)
      if (variations[j].key == v.key)
        fail(ErrorCode::invalid_argument, "--vary", v.key + " comes twice",
             "all its values in one: " + v.key + "=a,b,c");
    if (v.values.size() > kMostVariants / all.size())
      fail(ErrorCode::invalid_argument, "--vary", "too many combinations",
           "at most " + std::to_string(kMostVariants));
    std::vector<std::vector<Assignment>> longer;
    for (const auto& combination : all)
      for (const std::string& value : v.values) {
        longer.push_back(combination);
        longer.back().push_back({v.key, value});
      }
    all = std::move(longer);
  }
  return all;
}

std::string name_of(const std::vector<Assignment>& combination) {
  std::string name;
  for (const Assignment& a : combination) {
    const auto same_end = std::ranges::count_if(combination, [&a](const Assignment& other) {
      return last_part(other.key) == last_part(a.key);
    });
    if (!name.empty()) name += ", ";
    name += (same_end > 1 ? a.key : last_part(a.key)) + "=" + without_quotes(a.value);
  }
  return name;
}

}  // namespace heddle::compare
