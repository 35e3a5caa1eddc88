#include "generate/decode/decoding.h"

#include "ops/copy/copy.h"
#include "ops/view/view.h"

namespace heddle::generate {

Tensor of_known_tokens(const Tensor& scores, const text::Tokenizer* tokenizer) {
  if (tokenizer == nullptr || tokenizer->vocabulary() >= scores.size(1)) return scores;
  return ops::contiguous(ops::slice(scores, 1, 0, tokenizer->vocabulary()));
}

}  // namespace heddle::generate
