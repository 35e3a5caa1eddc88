#include "text/process/decoder.h"

#include <array>
#include <utility>

#include "text/bpe/byte_alphabet.h"
#include "text/models/vocabulary.h"

namespace heddle::text {

namespace {

std::string joined(const std::vector<std::string>& tokens) {
  std::string out;
  for (const std::string& token : tokens) out += token;
  return out;
}

// A decoder that changes each token by itself: change(token, its place, how many there are).
template <class Change>
class EachToken final : public Decoder {
 public:
  explicit EachToken(Change change) : change_(std::move(change)) {}
  void decode(std::vector<std::string>& tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i)
      tokens[i] = change_(std::move(tokens[i]), i, tokens.size());
  }

 private:
  Change change_;
};

template <class Change>
DecoderPtr each_token(Change change) {
  return std::make_unique<EachToken<Change>>(std::move(change));
}

class FuseDecoder final : public Decoder {
 public:
  void decode(std::vector<std::string>& tokens) const override { tokens = {joined(tokens)}; }
};

class DecoderSequence final : public Decoder {
 public:
  explicit DecoderSequence(std::vector<DecoderPtr> steps) : steps_(std::move(steps)) {}
  void decode(std::vector<std::string>& tokens) const override {
    for (const DecoderPtr& step : steps_) step->decode(tokens);
  }

 private:
  std::vector<DecoderPtr> steps_;
};

// The spaces that English does not have, in the order in which they go.
std::string cleaned_up(std::string text) {
  using Spelling = std::pair<std::string_view, std::string_view>;
  constexpr std::array replacements = std::to_array<Spelling>({{" .", "."},
                                                               {" ?", "?"},
                                                               {" !", "!"},
                                                               {" ,", ","},
                                                               {" ' ", "'"},
                                                               {" n't", "n't"},
                                                               {" 'm", "'m"},
                                                               {" do not", " don't"},
                                                               {" 's", "'s"},
                                                               {" 've", "'ve"},
                                                               {" 're", "'re"}});
  for (const auto& [from, to] : replacements)
    if (text.find(from) != std::string::npos)
      text = replace_all(*literal(std::string(from)), text, to);
  return text;
}

std::string stripped(std::string_view token, std::string_view character, std::size_t start,
                     std::size_t stop) {
  for (; start > 0 && token.starts_with(character); --start) token.remove_prefix(character.size());
  for (; stop > 0 && token.ends_with(character); --stop) token.remove_suffix(character.size());
  return std::string(token);
}

}  // namespace

DecoderPtr byte_level_decoder() {
  return each_token([](std::string token, std::size_t, std::size_t) {
    std::optional<std::string> bytes = bytes_of_names(token);
    return bytes ? std::move(*bytes) : token;
  });
}

DecoderPtr byte_fallback_decoder() {
  return each_token([](std::string token, std::size_t, std::size_t) {
    const std::optional<char> byte = fallback_byte(token);
    return byte ? std::string(1, *byte) : token;
  });
}

DecoderPtr fuse_decoder() { return std::make_unique<FuseDecoder>(); }

DecoderPtr replace_decoder(PatternPtr pattern, std::string content) {
  return each_token([pattern = std::move(pattern), content = std::move(content)](
                        std::string token, std::size_t, std::size_t) {
    return replace_all(*pattern, token, content);
  });
}

DecoderPtr strip_decoder(std::string character, std::size_t start, std::size_t stop) {
  return each_token(
      [character = std::move(character), start, stop](std::string token, std::size_t, std::size_t) {
        return stripped(token, character, start, stop);
      });
}

DecoderPtr metaspace_decoder(const MetaspaceOptions& options) {
  const bool prepends = options.prepend != PrependScheme::never;
  return each_token(
      [mark = options.replacement, prepends](std::string token, std::size_t i, std::size_t) {
        return replace_all(*literal(mark), token, i == 0 && prepends ? "" : " ");
      });
}

DecoderPtr word_piece_decoder(std::string prefix, bool cleanup) {
  return each_token(
      [prefix = std::move(prefix), cleanup](std::string token, std::size_t i, std::size_t) {
        if (i > 0) token = token.starts_with(prefix) ? token.substr(prefix.size()) : " " + token;
        return cleanup ? cleaned_up(std::move(token)) : token;
      });
}

DecoderPtr bpe_decoder(std::string suffix) {
  return each_token(
      [suffix = std::move(suffix)](std::string token, std::size_t i, std::size_t count) {
        return replace_all(*literal(suffix), token, i + 1 == count ? "" : " ");
      });
}

DecoderPtr sequence(std::vector<DecoderPtr> steps) {
  return std::make_unique<DecoderSequence>(std::move(steps));
}

}  // namespace heddle::text
