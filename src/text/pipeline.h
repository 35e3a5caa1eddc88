// A tokenizer as others make them: normalizer, pre-tokenizer, model and decoder out of a
// tokenizer.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/models/model.h"
#include "text/models/word_encoder.h"
#include "text/normalize/normalizer.h"
#include "text/process/decoder.h"
#include "text/process/frame.h"
#include "text/split/pre_tokenizer.h"
#include "text/tokenizer.h"

namespace heddle::text {

// Where a part is null, the text passes as it is; without decoder, tokens are joined with spaces.
struct PipelineParts {
  NormalizerPtr normalizer;
  PreTokenizerPtr pre_tokenizer;
  ModelPtr model;
  DecoderPtr decoder;
  Frame frame;
  std::optional<std::int32_t> unknown;
  std::string kind;  // "bpe", "unigram", "wordpiece" or "word"
  std::string json;  // the file that it was read from, and is written to
};

class Pipeline final : public Tokenizer {
 public:
  Pipeline(std::vector<Piece> pieces, std::vector<AddedToken> added, PipelineParts parts);
  ~Pipeline() override;

  std::string_view kind() const override { return parts_.kind; }
  std::string to_json() const override { return parts_.json; }

 protected:
  std::optional<std::string> normalized(std::string_view text) const override;
  void encode_plain(std::string_view text, std::size_t offset,
                    std::vector<std::int32_t>& ids) const override;
  std::string joined(std::span<const std::int32_t> ids) const override;
  Cuts plain_cuts() const override;

 private:
  PipelineParts parts_;
  Pattern::WordEnd word_end_;  // of a pre-tokenizer that is no more than this; otherwise null
  WordEncoder words_;
};

}  // namespace heddle::text
