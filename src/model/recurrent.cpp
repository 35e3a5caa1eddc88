#include "model/recurrent.h"

#include "nn/select_rows.h"
#include "ops/gather/gather.h"
#include "ops/view/view.h"

namespace heddle::model {

nn::ElmanStackConfig stack_config(const ModelConfig& config, const RecurrentStack& stack) {
  nn::ElmanStackConfig out;
  out.layers = stack.layers;
  out.width = config.width;
  out.bias = config.bias;
  out.both_ways = stack.both_ways;
  out.dropout = config.dropout;
  if (config.residual) out.norm = norm_config(config);
  out.norm_first = config.norm_place == NormPlace::pre;
  out.first_layer = stack.first_layer;
  return out;
}

void HiddenStates::reorder(std::span<const std::int64_t> rows) {
  for (Tensor& h : layers) h = nn::select_rows(h, rows);
}

std::int64_t HiddenStates::bytes() const {
  std::int64_t sum = 0;
  for (const Tensor& h : layers) sum += static_cast<std::int64_t>(h.bytes());
  return sum;
}

Tensor at_positions(const Tensor& x, std::span<const std::int64_t> positions) {
  const std::int64_t batch = x.size(0), tokens = x.size(1), width = x.size(2);
  Tensor index = Tensor::empty({batch}, DType::i64, x.device());
  if (x.device() != Device::meta) {
    auto* row = index.mutable_data<std::int64_t>();
    for (std::int64_t b = 0; b < batch; ++b)
      row[b] = b * tokens + positions[static_cast<std::size_t>(b)];
  }
  return ops::index_select(ops::reshape(x, {batch * tokens, width}), index);
}

}  // namespace heddle::model
