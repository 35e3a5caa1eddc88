#include "model/prompt.h"

#include <string>

#include "heddle/error.h"

namespace heddle::model {

Tensor prompt_lengths(const ModelConfig& config, std::int64_t sequences, std::int64_t prompt,
                      Device device) {
  if (!config.attention.prefix) return {};
  return Tensor::full({sequences}, static_cast<double>(prompt), DType::i64,
                      device.is_meta() ? device : Device::cpu);
}

Batch prompted(const ModelConfig& config, const Tensor& tokens, std::int64_t prompt) {
  if (prompt < 0 || prompt > tokens.size(1))
    fail(ErrorCode::out_of_range, to_string(config.kind), "tokens of the prompt",
         "0 to " + std::to_string(tokens.size(1)), std::to_string(prompt));
  Batch batch;
  batch.tokens = tokens;
  batch.prefix_lengths = prompt_lengths(config, tokens.size(0), prompt, tokens.device());
  return batch;
}

}  // namespace heddle::model
