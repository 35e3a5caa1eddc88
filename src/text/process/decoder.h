// From the names of tokens back to text.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "text/split/pattern.h"
#include "text/split/pre_tokenizer.h"

namespace heddle::text {

class Decoder {
 public:
  Decoder() = default;
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  virtual ~Decoder() = default;

  // Changes the tokens; behind the last decoder they are joined.
  virtual void decode(std::vector<std::string>& tokens) const = 0;
};

using DecoderPtr = std::unique_ptr<const Decoder>;

DecoderPtr byte_level_decoder();     // names of the byte-level alphabet become their bytes
DecoderPtr byte_fallback_decoder();  // <0x0A> becomes its byte
DecoderPtr fuse_decoder();           // all tokens become one
DecoderPtr replace_decoder(PatternPtr pattern, std::string content);
// Drops up to `start` and `stop` times the character at the ends of each token.
DecoderPtr strip_decoder(std::string character, std::size_t start, std::size_t stop);
DecoderPtr metaspace_decoder(const MetaspaceOptions& options);
DecoderPtr word_piece_decoder(std::string prefix, bool cleanup);
DecoderPtr bpe_decoder(std::string suffix);
DecoderPtr sequence(std::vector<DecoderPtr> steps);

}  // namespace heddle::text
