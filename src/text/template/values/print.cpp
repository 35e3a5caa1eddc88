#include "text/template/values/print.h"

#include <utf8proc.h>

#include <array>
#include <charconv>
#include <cmath>

#include "text/unicode.h"

namespace heddle::text::chat {
namespace {

std::string hex_escape(std::int32_t c) {
  constexpr std::string_view digits = "0123456789abcdef";
  const int count = c < 0x100 ? 2 : (c < 0x10000 ? 4 : 8);
  std::string result = count == 2 ? "\\x" : (count == 4 ? "\\u" : "\\U");
  for (int shift = 4 * (count - 1); shift >= 0; shift -= 4)
    result += digits[static_cast<std::size_t>((c >> shift) & 15)];
  return result;
}

bool is_printable(std::int32_t c) {
  if (c == ' ') return true;
  switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS: return false;
    default: return true;
  }
}

// A character of a string between quotes, or nothing when it stands for itself.
std::string repr_escape(std::int32_t c, char quote) {
  switch (c) {
    case '\\': return "\\\\";
    case '\n': return "\\n";
    case '\r': return "\\r";
    case '\t': return "\\t";
    default: break;
  }
  if (c == quote) return std::string("\\") + quote;
  return c == kNotUtf8 || is_printable(c) ? std::string() : hex_escape(c);
}

class Printer {
 public:
  explicit Printer(Run& run) : run_(run) {}

  MarkedText take() { return std::move(out_); }

  // str(); inside of lists and maps values are printed with repr().
  void print(const Value& value, bool inside) {
    switch (value.kind()) {
      case Kind::undefined:
        if (inside) run_.refuse("printing a list or mapping", "values", value.what());
        return;
      case Kind::none: return out_.append("None");
      case Kind::boolean: return out_.append(value.boolean() ? "True" : "False");
      case Kind::integer: return out_.append(std::to_string(value.integer()));
      case Kind::real: return out_.append(real_text(value.real()));
      case Kind::string: return inside ? repr(value.str()) : out_.append(value.text());
      case Kind::sequence: return sequence(value);
      case Kind::map: return map(value.map());
      default: run_.refuse("printing", "a value with a text", value.kind_name());
    }
  }

 private:
  void repr(const String& string) {
    if (string.markup) out_.append("Markup(");
    const std::string& bytes = string.text.bytes();
    const bool doubled =
        bytes.find('\'') != std::string::npos && bytes.find('"') == std::string::npos;
    const char quote = doubled ? '"' : '\'';
    out_.append(std::string(1, quote));
    for (std::size_t at = 0; at < bytes.size();) {
      const CodePoint point = code_point_at(bytes, at);
      const std::size_t next = at + point.bytes;
      const std::string escape = repr_escape(point.value, quote);
      if (escape.empty()) {
        out_.append(string.text, at, next);
      } else {
        out_.append(escape, string.text.from_user(at, next));
      }
      at = next;
    }
    out_.append(std::string(1, quote));
    if (string.markup) out_.append(")");
  }

  void sequence(const Value& value) {
    const Sequence& sequence = value.sequence();
    switch (sequence.form) {
      case Form::list: return items(sequence, "[", "]");
      case Form::tuple: return items(sequence, "(", sequence.items.size() == 1 ? ",)" : ")");
      case Form::items: return items(sequence, "dict_items([", "])");
      case Form::keys: return items(sequence, "dict_keys([", "])");
      case Form::values: return items(sequence, "dict_values([", "])");
      default: run_.refuse("printing", "a value with a text", value.kind_name());
    }
  }

  void items(const Sequence& sequence, std::string_view open, std::string_view close) {
    out_.append(open);
    for (std::size_t i = 0; i < sequence.items.size(); ++i) {
      if (i > 0) out_.append(", ");
      print(sequence.items[i], true);
    }
    out_.append(close);
  }

  void map(const Map& map) {
    out_.append("{");
    for (std::size_t i = 0; i < map.entries.size(); ++i) {
      if (i > 0) out_.append(", ");
      print(map.entries[i].first, true);
      out_.append(": ");
      print(map.entries[i].second, true);
    }
    out_.append("}");
  }

  Run& run_;
  MarkedText out_;
};

}  // namespace

std::string real_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  constexpr double plain_below = 1e16, plain_from = 1e-4;
  const double size = std::fabs(value);
  const bool plain = size == 0 || (size >= plain_from && size < plain_below);
  std::array<char, 64> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value,
                                 plain ? std::chars_format::fixed : std::chars_format::scientific)
                       .ptr;
  std::string text(digits.data(), end);
  if (plain && text.find('.') == std::string::npos) text += ".0";
  return text;
}

MarkedText to_text(Run& run, const Value& value) {
  if (value.is(Kind::string)) return value.text();
  run.look_at(value);
  Printer printer(run);
  printer.print(value, false);
  MarkedText text = printer.take();
  run.make_string(text.size());
  return text;
}

}  // namespace heddle::text::chat
