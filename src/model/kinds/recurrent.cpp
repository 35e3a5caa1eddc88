#include "model/kinds/recurrent.h"

#include <vector>

#include "nn/select_rows.h"
#include "ops/gather/gather.h"
#include "ops/support/host.h"
#include "ops/view/view.h"

namespace heddle::model {

nn::ElmanStackConfig elman_config(const ModelConfig& config, const RecurrentStack& stack) {
  nn::ElmanStackConfig out;
  out.layers = stack.layers;
  out.width = config.width;
  out.bias = config.bias;
  out.both_ways = stack.both_ways;
  out.dropout = config.dropout;
  if (config.residual) out.norm = norm_config(config);
  out.norm_first = config.norm_place == nn::NormPlace::pre;
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
  const Tensor flat = ops::reshape(x, {batch * tokens, width});
  if (x.device().is_meta())  // which has no positions
    return ops::index_select(flat, Tensor::empty({batch}, DType::i64, x.device()));
  std::vector<std::int64_t> rows(positions.begin(), positions.end());
  for (std::int64_t b = 0; b < batch; ++b) rows[static_cast<std::size_t>(b)] += b * tokens;
  return ops::index_select(flat, ops::from_host({batch}, rows, x.device()));
}

}  // namespace heddle::model
