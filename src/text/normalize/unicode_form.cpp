#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "heddle/error.h"
#include "text/normalize/normalizer.h"
#include "text/normalize/older_unicode.h"
#include "text/unicode.h"

namespace heddle::text {

namespace {

// Characters that no form changes, whatever stands beside them as long as it is one of them too.
// They are most of the text of the world; all others take the way through the tables.
bool is_inert(std::int32_t c, UnicodeForm form) noexcept {
  if (c < 0x80) return true;
  if (c < 0x300) return form.composed && !form.compatible;
  if (c >= 0x4E00 && c <= 0x9FFF) return true;
  const bool cyrillic = c >= 0x430 && c <= 0x44F && c != 0x439;
  const bool kana = c >= 0x3041 && c <= 0x3093;
  const bool hangul = c >= 0xAC00 && c <= 0xD7A3;
  return form.composed && (cyrillic || kana || hangul);
}

// Nothing is known about it: it stays, and nothing is moved or composed across it.
bool has_no_form(const CodePoint& c) noexcept {
  return c.value < 0 || is_unknown_to_normalizers(c.value);
}

class Form final : public Normalizer {
 public:
  explicit Form(UnicodeForm form) : form_(form) {}

  std::string normalize(std::string_view text) const override {
    std::string out;
    out.reserve(text.size());
    std::vector<std::int32_t> run;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t inert = inert_end(text, at);
      if (inert == text.size()) {
        out += text.substr(at);
        break;
      }
      // The last inert character may take a mark that follows it.
      const std::size_t start = last_character(text, at, inert);
      out += text.substr(at, start - at);
      at = take_run(text, start, run);
      append_run(run, out);
      if (at == text.size()) break;
      const CodePoint c = code_point_at(text, at);
      if (!has_no_form(c)) continue;
      out += text.substr(at, c.bytes);
      at += c.bytes;
    }
    return out;
  }

 private:
  std::size_t inert_end(std::string_view text, std::size_t at) const noexcept {
    while (at < text.size()) {
      if (static_cast<unsigned char>(text[at]) < 0x80) {
        ++at;
        continue;
      }
      const CodePoint c = code_point_at(text, at);
      if (has_no_form(c) || !is_inert(c.value, form_)) break;
      at += c.bytes;
    }
    return at;
  }

  static std::size_t last_character(std::string_view text, std::size_t from,
                                    std::size_t end) noexcept {
    if (end == from) return end;
    std::size_t at = end - 1;
    while (at > from && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
    return at;
  }

  // From `at` to the next ASCII character behind the first, or what has no form.
  static std::size_t take_run(std::string_view text, std::size_t at,
                              std::vector<std::int32_t>& run) {
    run.clear();
    while (at < text.size()) {
      const CodePoint c = code_point_at(text, at);
      if (has_no_form(c) || (c.value < 0x80 && !run.empty())) break;
      run.push_back(c.value);
      at += c.bytes;
    }
    return at;
  }

  // Decomposes, puts marks in their order, composes. utf8proc's own function sorts marks by
  // exchanging neighbours, and a text of nothing but marks would take it days.
  void append_run(const std::vector<std::int32_t>& run, std::string& out) const {
    const int options =
        UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (form_.compatible ? UTF8PROC_COMPAT : 0);
    std::vector<std::int32_t> parts;
    parts.reserve(run.size());
    std::array<std::int32_t, 32> one{};  // the longest decomposition has 18
    for (const std::int32_t c : run) {
      const utf8proc_ssize_t count = utf8proc_decompose_char(
          c, one.data(), one.size(), static_cast<utf8proc_option_t>(options), nullptr);
      if (count < 0 || count > static_cast<utf8proc_ssize_t>(one.size())) {
        parts.push_back(c);
      } else {
        parts.insert(parts.end(), one.begin(), one.begin() + count);
      }
    }
    order_marks(parts);
    auto size = static_cast<utf8proc_ssize_t>(parts.size());
    if (form_.composed)
      size = utf8proc_normalize_utf32(
          parts.data(), size, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
    for (utf8proc_ssize_t i = 0; i < size; ++i) out += to_utf8(parts[static_cast<std::size_t>(i)]);
  }

  // By class; marks of one class stay in their order.
  static void order_marks(std::vector<std::int32_t>& parts) {
    const auto combining = [](std::int32_t c) { return utf8proc_get_property(c)->combining_class; };
    const auto is_starter = [&](std::int32_t c) { return combining(c) == 0; };
    struct Mark {
      int kind;
      std::size_t place;
      std::int32_t code_point;
    };
    std::vector<Mark> marks;
    for (auto at = parts.begin(); at != parts.end();) {
      const auto first = std::find_if_not(at, parts.end(), is_starter);
      const auto last = std::find_if(first, parts.end(), is_starter);
      marks.clear();
      for (auto mark = first; mark != last; ++mark)
        marks.push_back({combining(*mark), marks.size(), *mark});
      std::sort(marks.begin(), marks.end(), [](const Mark& a, const Mark& b) {
        return a.kind != b.kind ? a.kind < b.kind : a.place < b.place;
      });
      std::transform(marks.begin(), marks.end(), first,
                     [](const Mark& mark) { return mark.code_point; });
      at = last;
    }
  }

  UnicodeForm form_;
};

}  // namespace

NormalizerPtr unicode_form(UnicodeForm form) { return std::make_unique<Form>(form); }

}  // namespace heddle::text
