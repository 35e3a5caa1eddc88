#include "nn/ffn/slots.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/divide.h"
#include "heddle/tape.h"
#include "ops/binary/binary.h"
#include "ops/concat/concat.h"
#include "ops/copy/copy.h"
#include "ops/gather/gather.h"
#include "ops/matmul/matmul.h"
#include "ops/reduce/reduce.h"
#include "ops/support/host.h"
#include "ops/unary/unary.h"
#include "ops/view/view.h"

namespace heddle::nn {

namespace {

// 1 - x
Tensor complement(const Tensor& x) { return ops::add(ops::neg(x), 1); }

// 0, each, 2 · each ... as [count, 1], every number `times` times.
Tensor counted_up(std::int64_t count, std::int64_t times, DType dtype, Device device) {
  std::vector<double> v(static_cast<std::size_t>(count * times));
  for (std::size_t i = 0; i < v.size(); ++i) {
    const std::int64_t number = static_cast<std::int64_t>(i) / times;
    v[i] = static_cast<double>(number);
  }
  return ops::cast(ops::from_host({count * times, 1}, v, device), dtype);
}

// [size, size], 1 where the column is before the row, and at it if `with_itself`.
Tensor before(std::int64_t size, bool with_itself, DType dtype, Device device) {
  std::vector<double> v(static_cast<std::size_t>(size * size), 0.0);
  for (std::int64_t r = 0; r < size; ++r)
    std::fill_n(v.begin() + r * size, r + (with_itself ? 1 : 0), 1.0);
  return ops::cast(ops::from_host({size, size}, v, device), dtype);
}

// Row i of the result is the sum of rows 0 .. i of x [M, E]: within blocks of about √M rows, then
// with the sums of the blocks before, each a product with a triangle of ones.
Tensor running_sum(const Tensor& x) {
  const std::int64_t rows = x.size(0), columns = x.size(1);
  if (rows == 0) return x;
  const auto block = static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(rows))));
  const std::int64_t blocks = ceil_div(rows, block);
  const std::array parts = {x,
                            Tensor::zeros({blocks * block - rows, columns}, x.dtype(), x.device())};
  const Tensor cut = ops::reshape(ops::concat(parts, 0), {blocks, block, columns});
  const Tensor within = ops::matmul(before(block, true, x.dtype(), x.device()), cut);
  const Tensor sums = ops::reshape(ops::sum(cut, 1), {blocks, columns});
  const Tensor earlier = ops::matmul(before(blocks, false, x.dtype(), x.device()), sums);
  const Tensor all = ops::add(within, ops::reshape(earlier, {blocks, 1, columns}));
  return ops::slice(ops::reshape(all, {blocks * block, columns}), 0, 0, rows);
}

}  // namespace

DType counting_type(std::int64_t most) {
  return most < (std::int64_t{1} << 24) ? DType::f32 : DType::f64;
}

Slots make_slots(const Tensor& chosen, const Tensor& counted, const SlotsConfig& c) {
  const NoGrad no_grad;
  const std::int64_t tokens = chosen.size(0), active = chosen.size(1), choices = tokens * active;
  const std::int64_t slots = c.experts * c.limit;
  const Device device = chosen.device();
  const DType type = counting_type(std::max(choices, slots));
  const Tensor expert = ops::cast(ops::reshape(chosen, {choices, 1}), type);
  // 1 in the column of the expert, 0 elsewhere.
  const Tensor numbers = ops::reshape(counted_up(c.experts, 1, type, device), {1, c.experts});
  const Tensor distance = ops::sub(expert, numbers);
  Tensor asks = ops::relu(complement(ops::maximum(distance, ops::neg(distance))));  // [M, E]
  if (counted.defined()) asks = ops::mul(asks, ops::cast(counted, type));
  // How many earlier tokens chose the same expert; -1 for padding, which chooses none.
  const Tensor place = ops::add(ops::sum(ops::mul(asks, running_sum(asks)), 1, true), -1);
  const Tensor beyond = ops::relu(ops::add(place, 1 - static_cast<double>(c.limit)));
  Slots s;
  s.kept = ops::mul(ops::relu(complement(beyond)), ops::sum(asks, 1, true));
  const Tensor slot = ops::mul(ops::add(ops::scale(expert, static_cast<double>(c.limit)), place),
                               s.kept);  // [M, 1]
  s.choices = ops::cast(ops::reshape(slot, {choices}), DType::i64);
  const Tensor owner = ops::mul(counted_up(tokens, active, type, device), s.kept);
  const Tensor filled = ops::index_add(Tensor::zeros({slots, 1}, type, device), s.choices, owner);
  s.tokens = ops::cast(ops::reshape(filled, {slots}), DType::i64);
  s.asked = ops::sum(asks, 0);
  s.load = ops::cast(ops::sum(ops::mul(asks, s.kept), 0), DType::i64);
  return s;
}

}  // namespace heddle::nn
