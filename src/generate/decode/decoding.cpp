#include "generate/decode/decoding.h"

#include "ops/copy/copy.h"
#include "ops/view/view.h"
#include "run/load_run.h"

namespace heddle::generate {

Decoding decoding_of(const TrainedModel& model) {
  const run::LoadedRun& run = run::loaded(model);
  return {.tokenizer = &run.codec->source(), .ends = run.ends, .precision = model.precision()};
}

Tensor of_known_tokens(const Tensor& scores, const text::Tokenizer* tokenizer) {
  if (tokenizer == nullptr || tokenizer->vocabulary() >= scores.size(1)) return scores;
  return ops::contiguous(ops::slice(scores, 1, 0, tokenizer->vocabulary()));
}

}  // namespace heddle::generate
