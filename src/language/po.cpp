#include "language/po.h"

#include "heddle/error.h"

namespace heddle::po {

namespace {

class PoReader {
 public:
  PoReader(std::string_view po, std::string_view name) : rest_(po), name_(name) {}

  Texts read() {
    while (!rest_.empty()) {
      const std::size_t end = rest_.find('\n');
      std::string_view line = rest_.substr(0, end);
      rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
      ++number_;
      if (line.ends_with('\r')) line.remove_suffix(1);
      take(line);
    }
    finish();
    return std::move(texts_);
  }

 private:
  enum class Part { none, id, translation };

  void take(std::string_view line) {
    if (line.empty()) return;
    if (line.starts_with('#')) {
      if (part_ == Part::translation) finish();
      if (line.starts_with("#,") && line.find("fuzzy") != std::string_view::npos) fuzzy_ = true;
      return;
    }
    if (line.starts_with("msgid \"")) {
      if (part_ == Part::id) refuse("msgstr behind the msgid above");
      finish();
      part_ = Part::id;
      return append(line.substr(6));
    }
    if (line.starts_with("msgstr \"")) {
      if (part_ != Part::id) refuse("msgid before msgstr");
      part_ = Part::translation;
      return append(line.substr(7));
    }
    if (!line.starts_with('"') || part_ == Part::none)
      refuse("a comment, msgid \"...\", msgstr \"...\" or a further \"...\" of one of them");
    append(line);
  }

  void append(std::string_view quoted) {
    std::string& text = part_ == Part::id ? id_ : translation_;
    if (quoted.size() < 2 || !quoted.ends_with('"')) refuse("a closing quotation mark");
    quoted = quoted.substr(1, quoted.size() - 2);
    for (std::size_t i = 0; i < quoted.size(); ++i) {
      if (quoted[i] == '"') refuse("\\\" inside of a text");
      if (quoted[i] != '\\') {
        text += quoted[i];
        continue;
      }
      if (++i == quoted.size()) refuse("a closing quotation mark");
      switch (quoted[i]) {
        case 'n': text += '\n'; break;
        case 't': text += '\t'; break;
        case '"': text += '"'; break;
        case '\\': text += '\\'; break;
        default: refuse("one of the escapes \\n, \\t, \\\" and \\\\");
      }
    }
  }

  // An entry ends where the next one, or its comments, begin.
  void finish() {
    if (part_ == Part::id) refuse("msgstr behind the last msgid");
    if (part_ == Part::none) return;
    if (!id_.empty() && !translation_.empty() && !fuzzy_ &&
        !texts_.try_emplace(id_, translation_).second)
      refuse("every text once; the entry above is there already: " + id_);
    id_.clear();
    translation_.clear();
    fuzzy_ = false;
    part_ = Part::none;
  }

  [[noreturn]] void refuse(const std::string& expected) const {
    fail(ErrorCode::invalid_argument, std::string(name_) + ":" + std::to_string(number_),
         "is no entry of a catalogue", expected);
  }

  std::string_view rest_, name_;
  std::size_t number_ = 0;
  Part part_ = Part::none;
  bool fuzzy_ = false;
  std::string id_, translation_;
  Texts texts_;
};

}  // namespace

Texts read(std::string_view po, std::string_view name) { return PoReader(po, name).read(); }

}  // namespace heddle::po
