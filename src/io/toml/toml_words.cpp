#include "io/toml/toml_words.h"

#include <array>

#include "io/errors.h"

namespace heddle::io {
namespace {

// One kind of slip: words of the parser's that tell it, what it is, and how it should be.
struct Slip {
  std::string_view said, problem, expected;
};

constexpr std::string_view kValue = "a number, true or false, or text in quotes: name = \"text\"";

// The first that fits. The parser says what it was reading, and what it saw.
constexpr std::array kSlips = {
    Slip{"utf-8", "is not UTF-8", "a file in UTF-8: save it again with that encoding"},
    Slip{"parsing boolean", "is no value", "true or false, in small letters"},
    Slip{"cannot redefine", "comes for the second time", "every key and every [table] once"},
    Slip{"expected ']'", "is a table's name without its end", "brackets around it: [train]"},
    Slip{"saw ':'", "has no = between key and value", "key = value: layers = 4"},
    Slip{"expected '='", "has no = between key and value", "key = value: layers = 4"},
    Slip{"expected value", "is a key without a value", kValue},
    Slip{"parsing string", "is a string without its end", "a quote at its end: \"text\""},
    Slip{"saw ','", "goes on behind its value", "one value; decimals have a point: 0.05"},
    Slip{"expected a comment or whitespace", "goes on behind its value",
         "one value, and the next key on a line of its own"},
    Slip{"could not determine value type", "is no value", kValue},
    Slip{"parsing floating-point", "is no value", kValue},
};

std::string_view without_blanks(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

}  // namespace

TomlComplaint complaint_about(std::string_view said, std::string_view line) {
  const std::string got = shown(without_blanks(line));
  for (const Slip& slip : kSlips)
    if (said.find(slip.said) != std::string_view::npos)
      return {std::string(slip.problem), std::string(slip.expected), got};
  constexpr std::string_view kPrefix = "Error while ";
  if (said.starts_with(kPrefix)) said.remove_prefix(kPrefix.size());
  return {"is not TOML: " + std::string(said.substr(0, 300)), "", got};
}

}  // namespace heddle::io
