// Texts for people, in their language.
//
// The English text in the source is the key, po/zh_CN.po has the Chinese: gettext's format, which
// translators and their tools know. The catalogue travels inside of the program, so a translation
// is there wherever the program is. Messages of errors are English in every language: they are
// what people search for and paste into reports.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heddle {

enum class Language : std::uint8_t { english, chinese };

// One for the process, English until set otherwise. A page is written in the language at the time
// of its writing.
Language language();
void set_language(Language language);

// "zh", "zh-Hans", "zh_CN.UTF-8"; "en", "en_GB.UTF-8", "C", "POSIX". Others: nothing.
std::optional<Language> language_named(std::string_view name);

std::string_view tag_of(Language language);  // as HTML has it: "en", "zh-CN"

// The text in the language of the process; where it has no translation, as it is.
std::string tr(std::string_view english);

// The same with values: tr("{} of {} heads", 3, 8). A translation may name them in another order:
// "{1} 个头中的 {0} 个". Keep a sentence whole, for halves have another order in other languages.
template <class First, class... Rest>
std::string tr(fmt::format_string<First, Rest...> english, First&& first, Rest&&... rest) {
  const fmt::string_view text = english;
  return fmt::format(fmt::runtime(tr(std::string_view(text.data(), text.size()))),
                     std::forward<First>(first), std::forward<Rest>(rest)...);
}

// Marks a text of a table for scripts/texts.py; the code that shows the table calls tr(entry).
constexpr const char* mark(const char* english) { return english; }

// While one of these lives, every text requested in a language other than English that has no
// translation is noted. For tests; one at a time.
class UntranslatedTexts {
 public:
  UntranslatedTexts();
  ~UntranslatedTexts();
  UntranslatedTexts(const UntranslatedTexts&) = delete;
  UntranslatedTexts& operator=(const UntranslatedTexts&) = delete;

  std::vector<std::string> found() const;  // each once, in the order of their first use
};

}  // namespace heddle
