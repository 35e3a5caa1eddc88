// The normalizers that are a line of thought each.
#include <utility>

#include "text/bpe/byte_alphabet.h"
#include "text/normalize/normalizer.h"
#include "text/normalize/older_unicode.h"
#include "text/unicode.h"

namespace heddle::text {

namespace {

class Lowercase final : public Normalizer {
 public:
  std::string normalize(std::string_view text) const override {
    std::string out;
    out.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
      const char byte = text[at];
      if (static_cast<unsigned char>(byte) < 0x80) {
        out += byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte + ('a' - 'A')) : byte;
        ++at;
        continue;
      }
      const CodePoint c = code_point_at(text, at);
      if (c.value < 0) {
        out += byte;
      } else {
        append_lower(out, c.value);
      }
      at += c.bytes;
    }
    return out;
  }
};

class StripAccents final : public Normalizer {
 public:
  std::string normalize(std::string_view text) const override {
    std::string out;
    out.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
      const CodePoint c = code_point_at(text, at);
      if (!is_older_mark(c.value)) out += text.substr(at, c.bytes);
      at += c.bytes;
    }
    return out;
  }
};

class Strip final : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}
  std::string normalize(std::string_view text) const override {
    std::size_t first = 0;
    while (left_ && first < text.size()) {
      const CodePoint c = code_point_at(text, first);
      if (!is_white_space(c.value)) break;
      first += c.bytes;
    }
    std::size_t end = first;  // behind the last character that is not white space
    for (std::size_t at = first; at < text.size();) {
      const CodePoint c = code_point_at(text, at);
      at += c.bytes;
      if (!right_ || !is_white_space(c.value)) end = at;
    }
    return std::string(text.substr(first, end - first));
  }

 private:
  bool left_, right_;
};

class Prepend final : public Normalizer {
 public:
  Prepend(std::string prefix, bool texts_only)
      : prefix_(std::move(prefix)), texts_only_(texts_only) {}
  std::string normalize(std::string_view text) const override {
    return text.empty() ? std::string() : prefix_ + std::string(text);
  }
  std::string normalize_name(std::string_view name) const override {
    return texts_only_ ? std::string(name) : normalize(name);
  }

 private:
  std::string prefix_;
  bool texts_only_;
};

class Replace final : public Normalizer {
 public:
  Replace(PatternPtr pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}
  std::string normalize(std::string_view text) const override {
    return replace_all(*pattern_, text, content_);
  }

 private:
  PatternPtr pattern_;
  std::string content_;
};

class ByteLevelNames final : public Normalizer {
 public:
  std::string normalize(std::string_view text) const override { return byte_names(text); }
};

class NormalizerSequence final : public Normalizer {
 public:
  explicit NormalizerSequence(std::vector<NormalizerPtr> steps) : steps_(std::move(steps)) {}
  std::string normalize(std::string_view text) const override {
    std::string out(text);
    for (const NormalizerPtr& step : steps_) out = step->normalize(out);
    return out;
  }
  std::string normalize_name(std::string_view name) const override {
    std::string out(name);
    for (const NormalizerPtr& step : steps_) out = step->normalize_name(out);
    return out;
  }

 private:
  std::vector<NormalizerPtr> steps_;
};

}  // namespace

NormalizerPtr lowercase() { return std::make_unique<Lowercase>(); }
NormalizerPtr strip_accents() { return std::make_unique<StripAccents>(); }
NormalizerPtr strip(bool left, bool right) { return std::make_unique<Strip>(left, right); }
NormalizerPtr prepend(std::string prefix, bool texts_only) {
  return std::make_unique<Prepend>(std::move(prefix), texts_only);
}
NormalizerPtr replace(PatternPtr pattern, std::string content) {
  return std::make_unique<Replace>(std::move(pattern), std::move(content));
}
NormalizerPtr byte_level_names() { return std::make_unique<ByteLevelNames>(); }
NormalizerPtr sequence(std::vector<NormalizerPtr> steps) {
  return std::make_unique<NormalizerSequence>(std::move(steps));
}

}  // namespace heddle::text
