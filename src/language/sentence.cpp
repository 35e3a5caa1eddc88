#include "language/sentence.h"

#include "language/language.h"

namespace heddle {

namespace {

// The text may come from a file that anybody wrote: {} without a value stays as it is. "{1}" of a
// translation is the second value.
std::string filled(const std::string& text, const std::vector<std::string>& values) {
  std::string out;
  std::size_t next = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool numbered = i + 2 < text.size() && text[i + 1] >= '0' && text[i + 1] <= '9';
    const std::size_t close = i + (numbered ? 2 : 1);
    if (text[i] != '{' || close >= text.size() || text[close] != '}') {
      out += text[i];
      continue;
    }
    const std::size_t number = numbered ? static_cast<std::size_t>(text[i + 1] - '0') : next++;
    out += number < values.size() ? values[number] : text.substr(i, close - i + 1);
    i = close;
  }
  return out;
}

}  // namespace

std::string Sentence::in_english() const { return filled(english, values); }
std::string Sentence::translated() const { return filled(tr(english), values); }

}  // namespace heddle
