// The one file that compiles toml++.

#include <stdexcept>

namespace heddle::io {
// toml++ 3.3 asserts what a hostile file can break ("[=]" does): an exception instead of the end of
// the program in a debug build, and of undefined behaviour (its asserts become assumptions) in an
// optimised one.
struct BrokenAssumption : std::runtime_error {
  using std::runtime_error::runtime_error;
};
[[noreturn]] inline void broken_assumption() { throw BrokenAssumption("toml++"); }
}  // namespace heddle::io

#undef NDEBUG
#define TOML_ASSERT(expr) ((expr) ? static_cast<void>(0) : ::heddle::io::broken_assumption())
// Nested arrays and inline tables; toml++ and the destructors recurse.
#define TOML_MAX_NESTED_VALUES 32
#include <toml++/toml.h>

#include <algorithm>
#include <sstream>
#include <tuple>
#include <vector>

#include "io/errors.h"
#include "io/toml/toml_value.h"
#include "io/toml/toml_words.h"

namespace heddle::io {
namespace {

constexpr int kMaxKeyParts = 32;

std::string at_line(const std::string& file, std::size_t line) {
  return file + ":" + std::to_string(line);
}

std::string_view line_of(std::string_view text, std::size_t line) {
  for (; line > 1 && !text.empty(); --line)
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  return text.substr(0, text.find('\n'));
}

// The offset after the string that begins at `at`, or where toml++ will find it broken.
std::size_t behind_string(std::string_view text, std::size_t at) {
  const char quote = text[at];
  const std::string triple(3, quote);
  const bool many_lines = text.substr(at).starts_with(triple);
  at += many_lines ? 3 : 1;
  while (at < text.size()) {
    if (text[at] == '\\' && quote == '"') {
      at += 2;
    } else if (!many_lines) {
      if (text[at] == '\n') return at;
      if (text[at++] == quote) return at;
    } else if (text.substr(at).starts_with(triple)) {
      at += 3;  // up to two more quotes are part of the string
      for (int i = 0; i < 2 && at < text.size() && text[at] == quote; ++i) ++at;
      return at;
    } else {
      ++at;
    }
  }
  return text.size();
}

// toml++ makes one table per part of a dotted key and knows no limit; their destructors recurse.
void check_key_parts(std::string_view text, const std::string& file) {
  int dots = 0;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    const bool in_key = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || c == '_' || c == '-' || c == ' ' || c == '\t';
    if (c == '"' || c == '\'') {
      at = behind_string(text, at);
      continue;
    }
    if (c == '#') {
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    if (c == '.')
      ++dots;
    else if (!in_key)
      dots = 0;
    if (dots >= kMaxKeyParts)
      fail_io(at_line(file, line_column(text, at).line), "a key has too many parts",
              "at most " + std::to_string(kMaxKeyParts));
    ++at;
  }
}

class Converter {
 public:
  // With `file`, values come from its lines; otherwise all from `origin`.
  Converter(std::string origin, bool is_file) : origin_(std::move(origin)), is_file_(is_file) {}

  TomlValue convert(const toml::node& node) const {
    TomlValue out;
    out.origin = is_file_ ? at_line(origin_, node.source().begin.line) : origin_;
    if (const auto* table = node.as_table())
      out.data = members(*table);
    else if (const auto* array = node.as_array())
      out.data = elements(*array);
    else if (const auto* text = node.as_string())
      out.data = text->get();
    else if (const auto* integer = node.as_integer())
      out.data = std::int64_t{integer->get()};
    else if (const auto* number = node.as_floating_point())
      out.data = number->get();
    else if (const auto* boolean = node.as_boolean())
      out.data = boolean->get();
    else
      out.data = date(node);
    return out;
  }

  TomlMembers members(const toml::table& table) const {
    // toml++ sorts by name; people sort by meaning.
    struct Member {
      const toml::key* key;
      const toml::node* node;
      std::size_t number;  // keeps the order of keys that have one place
    };
    std::vector<Member> sorted;
    for (const auto& [key, node] : table) sorted.push_back({&key, &node, sorted.size()});
    std::ranges::sort(sorted, {}, [](const Member& member) {
      const auto& begin = member.key->source().begin;
      return std::tuple(begin.line, begin.column, member.number);
    });
    TomlMembers out;
    out.reserve(sorted.size());
    for (const auto& [key, node, number] : sorted) {
      out.push_back({std::string(key->str()), convert(*node)});
      // Where the key is, also for a table that continues elsewhere.
      if (is_file_ && key->source().begin.line > 0)
        out.back().value.origin = at_line(origin_, key->source().begin.line);
    }
    return out;
  }

 private:
  TomlArray elements(const toml::array& array) const {
    TomlArray out;
    out.reserve(array.size());
    for (const toml::node& node : array) out.push_back(convert(node));
    return out;
  }

  static TomlDate date(const toml::node& node) {
    std::ostringstream text;
    if (const auto* d = node.as_date()) text << d->get();
    if (const auto* t = node.as_time()) text << t->get();
    if (const auto* both = node.as_date_time()) text << both->get();
    return {text.str()};
  }

  std::string origin_;
  bool is_file_;
};

}  // namespace

const TomlValue* find_member(const TomlMembers& members, std::string_view key) {
  const auto found = std::ranges::find(members, key, &TomlMember::key);
  return found == members.end() ? nullptr : &found->value;
}

TomlValue* find_member(TomlMembers& members, std::string_view key) {
  return const_cast<TomlValue*>(find_member(std::as_const(members), key));
}

TomlValue parse_toml(std::string_view text, const std::string& file) {
  check_key_parts(text, file);
  try {
    const toml::table table = toml::parse(text);
    TomlValue root;
    root.origin = file;
    root.data = Converter(file, true).members(table);
    return root;
  } catch (const toml::parse_error& e) {
    const auto& begin = e.source().begin;
    const TomlComplaint c = complaint_about(e.description(), line_of(text, begin.line));
    fail_io(at_line(file, begin.line) + ":" + std::to_string(begin.column), c.problem, c.expected,
            c.got);
  } catch (const BrokenAssumption&) {
    fail_io(file, "is not TOML: a bracket or a key is misplaced");
  }
}

std::optional<TomlValue> parse_toml_value(std::string_view text, const std::string& origin) {
  // Inside of brackets: a comment would hide the second one, a second value would be counted.
  const std::string line = "v = [" + std::string(text) + "]";
  check_key_parts(line, origin);
  try {
    const toml::table table = toml::parse(line);
    const toml::array* values = table["v"].as_array();
    if (table.size() != 1 || values == nullptr || values->size() != 1) return std::nullopt;
    return Converter(origin, false).convert(*values->get(0));
  } catch (const toml::parse_error&) {
    return std::nullopt;
  } catch (const BrokenAssumption&) {
    return std::nullopt;
  }
}

}  // namespace heddle::io
