#include "model/decoding.h"

#include <string>

#include "ops/view/view.h"

namespace heddle::model {

Tensor last_token(const Tensor& x) {
  const std::int64_t last = x.size(1) - 1;
  return ops::reshape(ops::slice(x, 1, last, last + 1), {x.size(0), x.size(2)});
}

void check_source(const ModelConfig& config, const Batch& source, std::int64_t sequences) {
  if (!source.tokens.defined() || source.tokens.size(0) != sequences)
    fail(ErrorCode::invalid_argument, to_string(config.kind), "source",
         std::to_string(sequences) + " sequences", source.tokens.describe());
}

void check_next_tokens(const ModelConfig& config, const Tensor& tokens, std::int64_t sequences) {
  const bool ok = tokens.defined() && tokens.rank() == 2 && tokens.size(0) == sequences &&
                  tokens.size(1) > 0 && tokens.dtype() == DType::i32;
  if (!ok)
    fail(ErrorCode::shape_mismatch, to_string(config.kind), "argument tokens",
         "i32 [" + std::to_string(sequences) + ", 1 or more]", tokens.describe());
}

}  // namespace heddle::model
