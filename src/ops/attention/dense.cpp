#include "ops/attention/dense.h"

#include <array>
#include <cmath>
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
#include "ops/support/host.h"
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

Tensor kept(const AttentionOptions& o, const Shape& shape, const Tensor& like) {
  const std::int64_t keys = shape[3], blocks = (keys + 3) / 4;
  const auto threshold = static_cast<std::uint32_t>(o.dropout * 4294967296.0);
  std::vector<double> out;
  out.reserve(static_cast<std::size_t>(elements_of(shape)));
  for (std::int64_t row = 0; row < shape[0] * shape[1] * shape[2]; ++row)
    for (std::int64_t j = 0; j < keys; ++j) {
      const auto block = static_cast<std::uint64_t>(row * blocks + j / 4);
      const std::uint32_t word = philox(o.key, block)[static_cast<std::size_t>(j % 4)];
      out.push_back(word < threshold ? 0 : 1 / (1 - o.dropout));
    }
  return ops::cast(from_host(shape, out, like.device()), like.dtype());
}

namespace {

// The values of a mask that is added or multiplied: one number where query i of batch b sees key j,
// another elsewhere.
struct MaskValues {
  double seen = 1, hidden = 0;
};

// Finite, and below every score.
double far_below(DType dtype) { return dtype == DType::f64 ? -1e308 : -3e38; }

// [B, 1, Tq, Tk], like the scores.
Tensor masked_by(const AttentionMask& mask, const Tensor& scores, const MaskValues& values) {
  const AttentionSizes s{scores.size(0), scores.size(2), scores.size(3)};
  const Shape shape{s.batch, 1, s.queries, s.keys};
  const Device device = scores.device();
  if (device.is_meta()) return ops::cast(Tensor::empty(shape, DType::f64, device), scores.dtype());
  const auto v = visible_keys(mask, s, Device::cpu).intervals.to_vector<std::int32_t>();
  const std::size_t rows = v.size() / 2, keys = static_cast<std::size_t>(s.keys);
  std::vector<double> out(rows * keys, values.hidden);
  for (std::size_t row = 0; row < rows; ++row)
    for (auto j = static_cast<std::size_t>(v[row]); j < static_cast<std::size_t>(v[rows + row]);
         ++j)
      out[row * keys + j] = values.seen;
  return ops::cast(from_host(shape, out, device), scores.dtype());
}

// 1 where the mask of pairs allows, 0 where it hides, in its own shape.
Tensor allowed_flags(const Tensor& allowed, DType dtype) {
  const Tensor numbers = ops::cast(allowed, dtype);
  return ops::div(numbers, ops::maximum(numbers, Tensor::full({}, 1, dtype, allowed.device())));
}

// Hidden scores become -inf.
Tensor without_hidden(const Tensor& scores, const AttentionMask& mask) {
  const MaskValues values{0, -std::numeric_limits<double>::infinity()};
  Tensor seen = ops::add(scores, masked_by(mask, scores, values));
  if (!mask.allowed.defined()) return seen;
  const Tensor flags = allowed_flags(mask.allowed, scores.dtype());
  return ops::add(seen, ops::div(ops::add(flags, -1), flags));  // 0 / 1 = 0, -1 / 0 = -inf
}

// Hidden and negative scores become 0.
Tensor positive_part(const Tensor& scores, const AttentionMask& mask) {
  Tensor seen = ops::mul(ops::relu(scores), masked_by(mask, scores, {}));
  if (!mask.allowed.defined()) return seen;
  return ops::mul(seen, allowed_flags(mask.allowed, scores.dtype()));
}

// bias[h, j - i + Tq - 1] as [H, Tq, Tk].
Tensor spread(const Tensor& bias, const AttentionSizes& s) {
  std::vector<std::int64_t> index;
  index.reserve(static_cast<std::size_t>(s.queries * s.keys));
  for (std::int64_t i = 0; i < s.queries; ++i)
    for (std::int64_t j = 0; j < s.keys; ++j) index.push_back(j - i + s.queries - 1);
  const std::int64_t heads = bias.size(0);
  const Tensor all = ops::index_select(ops::transpose(bias, 0, 1),
                                       from_host({s.queries * s.keys}, index, bias.device()));
  return ops::reshape(ops::transpose(all, 0, 1), {heads, s.queries, s.keys});
}

Tensor softmax_weights(const Tensor& scores, const AttentionOptions& o) {
  Tensor masked = without_hidden(scores, o.mask);
  const std::int64_t keys = scores.size(3);
  if (o.sinks.defined()) {
    const Tensor wide = ops::broadcast_to(ops::reshape(o.sinks, {1, o.sinks.size(0), 1, 1}),
                                          {scores.size(0), scores.size(1), scores.size(2), 1});
    const std::array<Tensor, 2> parts = {masked, wide};
    masked = ops::concat(parts, 3);
  }
  return ops::slice(ops::softmax(masked), 3, 0, keys);
}

// positive / total, and zeros where the total is 0. The divisor used there instead is far from the
// smallest number, so that a gradient divided by it stays finite: the mask turns it into 0.
Tensor shares_of(const Tensor& positive, const Tensor& total) {
  const double smallest = positive.dtype() == DType::f64 ? 1e-280 : 1e-30;
  const Tensor floor = Tensor::full({}, smallest, positive.dtype(), positive.device());
  return ops::div(positive, ops::maximum(total, floor));
}

Tensor relu_weights(const Tensor& scores, const AttentionOptions& o) {
  const Tensor positive = positive_part(scores, o.mask);
  return shares_of(positive, ops::sum(positive, 3, true));
}

Tensor scores_of(const Tensor& products, const AttentionOptions& o, double scale) {
  const AttentionSizes sizes{products.size(0), products.size(2), products.size(3)};
  Tensor scores = ops::scale(products, scale);
  if (o.softcap > 0) scores = ops::softcap(scores, o.softcap);
  if (o.relative_bias.defined()) scores = ops::add(scores, spread(o.relative_bias, sizes));
  if (o.additive_mask.defined()) scores = ops::add(scores, o.additive_mask);
  return scores;
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

Tensor masked_scores(const Tensor& products, const AttentionOptions& o, double scale) {
  return without_hidden(scores_of(products, o, scale), o.mask);
}

Tensor weights(const Tensor& products, const AttentionOptions& o, double scale) {
  const Tensor scores = scores_of(products, o, scale);
  return o.normaliser == Normaliser::softmax ? softmax_weights(scores, o) : relu_weights(scores, o);
}

// softmax: exp(s - ln Σ exp(s)); a sink is in the sum already. relu: max(s, 0) / Σ max(s, 0).
Tensor weights_by_sums(const Tensor& products, const AttentionOptions& o, double scale,
                       const Tensor& row_sums) {
  const Tensor scores = scores_of(products, o, scale);
  const Tensor sums =
      ops::reshape(row_sums, {row_sums.size(0), row_sums.size(1), row_sums.size(2), 1});
  if (o.normaliser == Normaliser::relu) return shares_of(positive_part(scores, o.mask), sums);
  const double ln_2 = std::log(2.0);
  return ops::exp(without_hidden(ops::sub(scores, ops::scale(sums, ln_2)), o.mask));
}

// Of a softmax: with m the largest score, log2 Σ exp(s) = (m + ln Σ exp(s - m)) / ln 2. That Σ is 1
// or more, or 0 where a row sees neither key nor sink: the smaller one of it and 1 is 1 or 0.
Tensor row_sums(const Tensor& products, const AttentionOptions& o, double scale) {
  const Tensor scores = scores_of(products, o, scale);
  if (o.normaliser == Normaliser::relu) return ops::sum(positive_part(scores, o.mask), 3);
  const Tensor seen = without_hidden(scores, o.mask);
  const auto number = [&](double value) {
    return Tensor::full({}, value, scores.dtype(), scores.device());
  };
  const double least = far_below(scores.dtype());
  Tensor most = scores.size(3) == 0  // then nothing is the largest
                    ? Tensor::full({scores.size(0), scores.size(1), scores.size(2), 1}, least,
                                   scores.dtype(), scores.device())
                    : ops::maximum(ops::max(seen, 3, true), number(least));
  Tensor sink;
  if (o.sinks.defined()) {
    sink = ops::reshape(o.sinks, {1, o.sinks.size(0), 1, 1});
    most = ops::maximum(most, sink);
  }
  Tensor total = ops::sum(ops::exp(ops::sub(seen, most)), 3, true);
  if (o.sinks.defined()) total = ops::add(total, ops::exp(ops::sub(sink, most)));
  const Tensor sees_any = ops::add(ops::neg(ops::relu(ops::add(ops::neg(total), 1))), 1);
  const Tensor sums = ops::add(most, ops::log(ops::maximum(total, number(1))));
  return ops::reshape(ops::scale(ops::mul(sums, sees_any), 1 / std::log(2.0)),
                      {scores.size(0), scores.size(1), scores.size(2)});
}

}  // namespace heddle::ops::dense_attention
