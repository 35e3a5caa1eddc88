#include "ops/attention/dense.h"

#include <array>
#include <limits>
#include <vector>

#include "ops/attention/mask.h"
#include "ops/binary/binary.h"
#include "ops/concat/concat.h"
#include "ops/copy/copy.h"
#include "ops/gather/gather.h"
#include "ops/matmul/matmul.h"
#include "ops/reduce/reduce.h"
#include "ops/softmax/softmax.h"
#include "ops/unary/unary.h"
#include "ops/view/view.h"

namespace heddle::ops::dense_attention {

Tensor by_head(const Tensor& x, std::int64_t heads) {
  const std::int64_t group = heads / x.size(2);
  const Tensor wide = ops::reshape(x, {x.size(0), x.size(1), x.size(2), 1, x.size(3)});
  const Tensor repeated =
      ops::broadcast_to(wide, {x.size(0), x.size(1), x.size(2), group, x.size(3)});
  const Tensor merged = ops::reshape(repeated, {x.size(0), x.size(1), heads, x.size(3)});
  return ops::transpose(merged, 1, 2);
}

Tensor in_order(const Tensor& rows, std::int64_t first_row) {
  if (first_row == 0) return rows;
  const std::array<Tensor, 2> parts = {ops::slice(rows, 1, first_row, rows.size(1)),
                                       ops::slice(rows, 1, 0, first_row)};
  return ops::concat(parts, 1);
}

Tensor kept(const AttentionOptions& o, const Shape& shape, DType dtype) {
  const std::int64_t keys = shape[3], blocks = (keys + 3) / 4;
  const auto threshold = static_cast<std::uint32_t>(o.dropout * 4294967296.0);
  std::vector<double> out;
  for (std::int64_t row = 0; row < shape[0] * shape[1] * shape[2]; ++row)
    for (std::int64_t j = 0; j < keys; ++j) {
      const auto block = static_cast<std::uint64_t>(row * blocks + j / 4);
      const std::uint32_t word = philox(o.key, block)[static_cast<std::size_t>(j % 4)];
      out.push_back(word < threshold ? 0 : 1 / (1 - o.dropout));
    }
  return ops::cast(Tensor::from<double>(shape, std::span<const double>(out)), dtype);
}

namespace {

// 1 where query i of batch b sees key j, else 0. [B, 1, Tq, Tk]
Tensor visible(const AttentionMask& mask, const AttentionSizes& s, DType dtype) {
  const auto v = visible_keys(mask, s, Device::cpu).to_vector<std::int32_t>();
  std::vector<double> out;
  const std::size_t half = v.size() / 2;
  for (std::size_t row = 0; row < half; ++row)
    for (std::int32_t j = 0; j < s.keys; ++j)
      out.push_back(j >= v[row] && j < v[half + row] ? 1 : 0);
  return ops::cast(Tensor::from<double>({s.batch, 1, s.queries, s.keys}, out), dtype);
}

// bias[h, j - i + Tq - 1] as [H, Tq, Tk].
Tensor spread(const Tensor& bias, const AttentionSizes& s) {
  std::vector<std::int64_t> index;
  for (std::int64_t i = 0; i < s.queries; ++i)
    for (std::int64_t j = 0; j < s.keys; ++j) index.push_back(j - i + s.queries - 1);
  const std::int64_t heads = bias.size(0);
  const Tensor all = ops::index_select(
      ops::transpose(bias, 0, 1),
      Tensor::from<std::int64_t>({s.queries * s.keys}, std::span<const std::int64_t>(index)));
  return ops::reshape(ops::transpose(all, 0, 1), {heads, s.queries, s.keys});
}

Tensor softmax_weights(const Tensor& scores, const Tensor& seen, const Tensor& sinks) {
  // Hidden scores become -inf: log(0).
  Tensor masked = ops::add(scores, ops::log(seen));
  const std::int64_t keys = scores.size(3);
  if (sinks.defined()) {
    const Tensor wide = ops::broadcast_to(ops::reshape(sinks, {1, sinks.size(0), 1, 1}),
                                          {scores.size(0), scores.size(1), scores.size(2), 1});
    const std::array<Tensor, 2> parts = {masked, wide};
    masked = ops::concat(parts, 3);
  }
  return ops::slice(ops::softmax(masked), 3, 0, keys);
}

Tensor relu_weights(const Tensor& scores, const Tensor& seen) {
  const Tensor positive = ops::mul(ops::relu(scores), seen);
  const Tensor total = ops::sum(positive, 3, true);
  const double smallest = scores.dtype() == DType::f64 ? std::numeric_limits<double>::min()
                                                       : std::numeric_limits<float>::min();
  const Tensor floor = Tensor::full({}, smallest, scores.dtype());
  return ops::div(positive, ops::maximum(total, floor));
}

}  // namespace

Tensor dot_scores(const Tensor& q, const Tensor& k) {
  const std::int64_t heads = q.size(2);
  return ops::matmul(by_head(q, heads), ops::transpose(by_head(k, heads), 2, 3));
}

Tensor additive_scores(const Tensor& q, const Tensor& k, const Tensor& w) {
  const std::int64_t heads = q.size(2);
  const Tensor qh = by_head(q, heads);
  const Tensor kh = by_head(k, heads);
  const auto [b, t, n, s] = std::array{q.size(0), q.size(1), k.size(1), q.size(3)};
  const Tensor sums = ops::add(ops::reshape(qh, {b, heads, t, 1, s}),
                               ops::reshape(ops::contiguous(kh), {b, heads, 1, n, s}));
  const Tensor weighted = ops::mul(ops::tanh(sums), ops::reshape(w, {heads, 1, 1, s}));
  return ops::sum(weighted, 4);
}

Tensor weights(const Tensor& products, const AttentionOptions& o, double scale) {
  const AttentionSizes sizes{products.size(0), products.size(2), products.size(3)};
  Tensor scores = ops::scale(products, scale);
  if (o.softcap > 0) scores = ops::softcap(scores, o.softcap);
  if (o.relative_bias.defined()) scores = ops::add(scores, spread(o.relative_bias, sizes));
  const Tensor seen = visible(o.mask, sizes, scores.dtype());
  return o.normaliser == Normaliser::softmax ? softmax_weights(scores, seen, o.sinks)
                                             : relu_weights(scores, seen);
}

}  // namespace heddle::ops::dense_attention
