#include "language_option.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "heddle/error.h"
#include "io/errors.h"

namespace heddle::cli {

namespace {

constexpr const char* kOption = "--lang";
constexpr const char* kLanguages = "en (English) or zh (Chinese)";

std::string set_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Language named_or_refused(const std::string& name, const char* where) {
  const std::optional<Language> language = language_named(name);
  if (!language)
    fail(ErrorCode::invalid_argument, where, "no such language", kLanguages, io::shown(name));
  return *language;
}

// The value of --lang, which is taken out. Behind "--" nothing is an option.
std::optional<std::string> take_option(std::vector<std::string>& arguments) {
  std::optional<std::string> value;
  const std::string with_value = std::string(kOption) + "=";
  for (auto at = arguments.begin(); at != arguments.end() && *at != "--";) {
    const bool alone = *at == kOption;
    if (!alone && !at->starts_with(with_value)) {
      ++at;
      continue;
    }
    if (value) fail(ErrorCode::invalid_argument, kOption, "given twice", "one language");
    if (alone && std::next(at) == arguments.end())
      fail(ErrorCode::invalid_argument, kOption, "a language is missing", kLanguages);
    value = alone ? *std::next(at) : at->substr(with_value.size());
    at = arguments.erase(at, alone ? at + 2 : at + 1);
  }
  return value;
}

}  // namespace

Language chosen_language(std::vector<std::string>& arguments) {
  if (const auto given = take_option(arguments)) return named_or_refused(*given, kOption);
  if (const std::string given = set_variable("HEDDLE_LANG"); !given.empty())
    return named_or_refused(given, "HEDDLE_LANG");
  if (std::ranges::find(arguments, "--json") != arguments.end()) return Language::english;
  for (const char* name : {"LC_ALL", "LC_MESSAGES", "LANG"})
    if (const std::string locale = set_variable(name); !locale.empty())
      return language_named(locale).value_or(Language::english);
  return Language::english;
}

}  // namespace heddle::cli
