#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "text/template/values/print.h"
#include "text/unicode.h"

namespace heddle::text::chat {
namespace {

std::string four_digits(std::int32_t unit) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string result = "\\u";
  for (int shift = 12; shift >= 0; shift -= 4)
    result += digits[static_cast<std::size_t>((unit >> shift) & 15)];
  return result;
}

// A character in a JSON string, or nothing when it stands for itself.
std::string json_escape(std::int32_t c, bool ascii) {
  switch (c) {
    case '"': return "\\\"";
    case '\\': return "\\\\";
    case '\n': return "\\n";
    case '\r': return "\\r";
    case '\t': return "\\t";
    case '\f': return "\\f";
    case '\b': return "\\b";
    default: break;
  }
  if (c >= 0 && c < 0x20) return four_digits(c);
  if (!ascii || c < 0x7F) return {};
  if (c < 0x10000) return four_digits(c);
  const std::int32_t rest = c - 0x10000;  // as two units of UTF-16
  return four_digits(0xD800 + (rest >> 10)) + four_digits(0xDC00 + (rest & 0x3FF));
}

class JsonPrinter {
 public:
  JsonPrinter(Run& run, const JsonStyle& style) : run_(run), style_(style) {}

  MarkedText take() { return std::move(out_); }

  void print(const Value& value, std::size_t level) {
    switch (value.kind()) {
      case Kind::none: return out_.append("null");
      case Kind::boolean: return out_.append(value.boolean() ? "true" : "false");
      case Kind::integer: return out_.append(std::to_string(value.integer()));
      case Kind::real: return out_.append(number(value.real()));
      case Kind::string: return string(value.text());
      case Kind::map: return map(value.map(), level);
      case Kind::sequence:
        if (value.sequence().form == Form::list || value.sequence().form == Form::tuple)
          return list(value.sequence(), level);
        [[fallthrough]];
      default:
        run_.refuse("tojson", "a value that JSON has",
                    value.is(Kind::undefined) ? value.what() + ", which is not defined"
                                              : std::string(value.kind_name()));
    }
  }

 private:
  static std::string number(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    return real_text(value);
  }

  void string(const MarkedText& text) {
    out_.append("\"");
    const std::string& bytes = text.bytes();
    for (std::size_t at = 0; at < bytes.size();) {
      const CodePoint point = code_point_at(bytes, at);
      const std::size_t next = at + point.bytes;
      const std::string escape = json_escape(point.value, style_.ascii);
      if (escape.empty()) {
        out_.append(text, at, next);
      } else {
        out_.append(escape, text.from_user(at, next));
      }
      at = next;
    }
    out_.append("\"");
    check_size();
  }

  void line(std::size_t level) {
    if (!style_.lines) return;
    out_.append("\n");
    for (std::size_t i = 0; i < level; ++i) out_.append(style_.indent);
    check_size();
  }

  // On the way, so that much is refused before it is made.
  void check_size() {
    if (out_.size() > run_.limits().string_bytes) run_.make_string(out_.size());
  }

  void list(const Sequence& list, std::size_t level) {
    if (list.items.empty()) return out_.append("[]");
    out_.append("[");
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      if (i > 0) out_.append(style_.item_separator);
      line(level + 1);
      print(list.items[i], level + 1);
    }
    line(level);
    out_.append("]");
  }

  // Keys that are no strings become some, as Python's json has it.
  void key(const Value& key) {
    switch (key.kind()) {
      case Kind::string: return string(key.text());
      case Kind::none:
      case Kind::boolean:
      case Kind::integer:
      case Kind::real:
        out_.append("\"");
        print(key, 0);
        return out_.append("\"");
      default: run_.refuse("tojson", "a string as a key", key.kind_name());
    }
  }

  void map(const Map& map, std::size_t level) {
    if (map.entries.empty()) return out_.append("{}");
    std::vector<const std::pair<Value, Value>*> entries;
    entries.reserve(map.entries.size());
    for (const auto& entry : map.entries) entries.push_back(&entry);
    if (style_.sorted) sort(entries);
    out_.append("{");
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) out_.append(style_.item_separator);
      line(level + 1);
      key(entries[i]->first);
      out_.append(style_.key_separator);
      print(entries[i]->second, level + 1);
    }
    line(level);
    out_.append("}");
  }

  void sort(std::vector<const std::pair<Value, Value>*>& entries) const {
    for (const auto* entry : entries)
      if (!entry->first.is(Kind::string))
        run_.unsupported("tojson(sort_keys) of keys that are no strings");
    std::sort(entries.begin(), entries.end(),
              [](const auto* a, const auto* b) { return a->first.bytes() < b->first.bytes(); });
  }

  Run& run_;
  const JsonStyle& style_;
  MarkedText out_;
};

}  // namespace

MarkedText to_json(Run& run, const Value& value, const JsonStyle& style) {
  run.look_at(value);
  JsonPrinter printer(run, style);
  printer.print(value, 0);
  MarkedText text = printer.take();
  run.make_string(text.size());
  return text;
}

}  // namespace heddle::text::chat
