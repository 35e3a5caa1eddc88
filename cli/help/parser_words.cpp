#include "help/parser_words.h"

#include <string_view>
#include <utility>

namespace heddle::cli {

namespace {

// The two parts of a message around a word of the parser's; false where it has none.
bool split_at(std::string text, std::string_view word, std::string& before, std::string& after) {
  const std::size_t at = text.find(word);
  if (at == std::string::npos) return false;
  after = text.substr(at + word.size());
  text.resize(at);
  before = std::move(text);
  return true;
}

std::string described(const CLI::App& command, const std::string& name) {
  const CLI::Option* option = command.get_option_no_throw(name);
  return option == nullptr ? "" : option->get_description();
}

std::string kind_of(const CLI::App& command, const std::string& name) {
  const CLI::Option* option = command.get_option_no_throw(name);
  const std::string type = option == nullptr ? "" : option->get_type_name();
  if (type.find("FLOAT") != std::string::npos) return "a number";
  return type.find("INT") != std::string::npos ? "a whole number" : "another value";
}

// "0.500000" as "0.5".
std::string short_number(std::string number) {
  if (number.find('.') == std::string::npos) return number;
  number.erase(number.find_last_not_of('0') + 1);
  if (number.ends_with('.')) number.pop_back();
  return number;
}

// "1 to 64"; ends that nobody will reach are not named.
std::string range(const std::string& text) {
  constexpr std::size_t kEndless = 12;  // digits
  std::string low, high;
  if (!split_at(text, " to ", low, high)) return text;
  low = short_number(low);
  high = short_number(high);
  return high.size() > kEndless ? low + " or more" : low + " to " + high;
}

// "{fp32,bf16}" as "fp32, bf16".
std::string list(std::string_view set) {
  std::string names;
  for (const char c : set)
    if (c == ',')
      names += ", ";
    else if (c != '{' && c != '}')
      names += c;
  return names;
}

std::string expected_text(const std::string& name, const std::string& expected,
                          const std::string& got) {
  return name + ": expected " + expected + "; got " + got;
}

std::string bad_value(const std::string& message) {
  std::string name, rest, value, allowed;
  if (!split_at(message, ": ", name, rest)) return {};
  if (split_at(rest, " not in range ", value, allowed)) {
    if (value.starts_with("Value ")) value = value.substr(6);
    return expected_text(name, range(allowed), value);
  }
  if (split_at(rest, " not in ", value, allowed))
    return expected_text(name, "one of " + list(allowed), value);
  if (split_at(rest, " unit not recognized", value, allowed))
    return expected_text(name, "a size such as 500MB or 8GB", value);
  return message;
}

}  // namespace

std::string in_words(const CLI::App& command, const CLI::ParseError& error) {
  const std::string message = error.what(), &kind = error.get_name();
  std::string first, second, name;
  if (kind == "ValidationError") return bad_value(message);
  if (kind == "ConversionError" && split_at(message, " = ", first, second) &&
      split_at(first, "Could not convert: ", first, name))
    return expected_text(name, kind_of(command, name), second);
  if (kind == "ArgumentMismatch" && message.ends_with(" missing") &&
      split_at(message, ": ", name, second))
    return name + " needs a value: " + described(command, name);
  if (kind == "RequiredError" && split_at(message, " is required", name, second) &&
      !described(command, name).empty())
    return name + " is required: " + described(command, name);
  if (kind == "ExcludesError" && split_at(message, " excludes ", first, second))
    return first + " does not go with " + second + ": leave one of them out";
  if (kind == "RequiresError" && split_at(message, " requires ", first, second))
    return first + " needs " + second + " beside it: " + described(command, second);
  return {};
}

}  // namespace heddle::cli
