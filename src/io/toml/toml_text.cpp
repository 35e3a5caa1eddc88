#include <array>
#include <charconv>
#include <cmath>

#include "io/toml/toml_value.h"

namespace heddle::io {
namespace {

bool is_bare(std::string_view key) {
  for (const char c : key) {
    const bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    c == '_' || c == '-';
    if (!ok) return false;
  }
  return !key.empty();
}

std::string string_text(std::string_view value) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out = "\"";
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out += {'\\', c};
    else if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (byte < 0x20 || byte == 0x7f)
      out += {'\\', 'u', '0', '0', kHex[byte >> 4], kHex[byte & 15]};
    else
      out += c;
  }
  return out + '"';
}

std::string key_text(std::string_view key) {
  return is_bare(key) ? std::string(key) : string_text(key);
}

// The shortest text that gives the same number back.
std::string number_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::array<char, 40> buffer{};
  const auto result = std::to_chars(buffer.begin(), buffer.end(), value);
  std::string text(buffer.data(), result.ptr);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

struct Inline {
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(std::int64_t v) const { return std::to_string(v); }
  std::string operator()(double v) const { return number_text(v); }
  std::string operator()(const std::string& v) const { return string_text(v); }
  std::string operator()(const TomlDate& v) const { return v.text; }
  std::string operator()(const TomlArray& v) const {
    std::string out = "[";
    for (const TomlValue& element : v) out += (out.size() > 1 ? ", " : "") + toml_inline(element);
    return out + "]";
  }
  std::string operator()(const TomlMembers& v) const {
    std::string out = "{";
    for (const auto& [key, value] : v)
      out += (out.size() > 1 ? ", " : " ") + key_text(key) + " = " + toml_inline(value);
    return out + (v.empty() ? "}" : " }");
  }
};

void print_table(const TomlMembers& table, const std::string& path, std::string& out) {
  std::string scalars;
  bool has_tables = false;
  for (const auto& [key, value] : table) {
    if (value.members() != nullptr)
      has_tables = true;
    else
      scalars += key_text(key) + " = " + toml_inline(value) + "\n";
  }
  // A table of tables needs no line of its own.
  if (!path.empty() && (!scalars.empty() || !has_tables))
    out += (out.empty() ? "[" : "\n[") + path + "]\n";
  out += scalars;
  for (const auto& [key, value] : table)
    if (const TomlMembers* members = value.members())
      print_table(*members, (path.empty() ? "" : path + ".") + key_text(key), out);
}

}  // namespace

bool TomlValue::operator==(const TomlValue& other) const { return data == other.data; }

std::string toml_inline(const TomlValue& value) { return std::visit(Inline{}, value.data); }

std::string toml_text(const TomlMembers& root) {
  std::string out;
  print_table(root, "", out);
  return out;
}

}  // namespace heddle::io
