#include "text/normalize/normalizer.h"
#include "text/normalize/older_unicode.h"
#include "text/unicode.h"

namespace heddle::text {

namespace {

bool is_ideograph(std::int32_t c) noexcept {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
         (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
         (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

class Bert final : public Normalizer {
 public:
  explicit Bert(const BertOptions& options)
      : options_(options),
        decomposed_(unicode_form({.composed = false, .compatible = false})),
        lower_(text::lowercase()) {}

  std::string normalize(std::string_view text) const override {
    std::string out = cleaned(text);
    if (options_.strip_accents) out = without_accents(decomposed_->normalize(out));
    if (options_.lowercase) out = lower_->normalize(out);
    return out;
  }

 private:
  std::string cleaned(std::string_view text) const {
    std::string out;
    out.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
      const CodePoint c = code_point_at(text, at);
      const std::string_view character = text.substr(at, c.bytes);
      at += c.bytes;
      const bool is_line = c.value == '\t' || c.value == '\n' || c.value == '\r';
      const bool is_dropped =
          c.value == 0 || c.value == 0xFFFD || (!is_line && is_older_control(c.value));
      if (options_.clean_text && is_dropped) continue;
      if (options_.clean_text && is_white_space(c.value)) {
        out += ' ';
      } else if (options_.handle_chinese_chars && is_ideograph(c.value)) {
        out += ' ';
        out += character;
        out += ' ';
      } else {
        out += character;
      }
    }
    return out;
  }

  static std::string without_accents(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
      const CodePoint c = code_point_at(text, at);
      if (!is_older_nonspacing_mark(c.value)) out += text.substr(at, c.bytes);
      at += c.bytes;
    }
    return out;
  }

  BertOptions options_;
  NormalizerPtr decomposed_, lower_;
};

}  // namespace

NormalizerPtr bert_normalizer(const BertOptions& options) {
  return std::make_unique<Bert>(options);
}

}  // namespace heddle::text
