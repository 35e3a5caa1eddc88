// Calls of attention at random: any sizes, masks, options and layouts, against the dense definition
// in float64, with all gradients. RapidCheck looks for the smallest one that fails.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "heddle/ops.h"
#include "heddle/tape.h"
#include "ops/attention/test_devices.h"
#include "ops/attention/test_emulated.h"

namespace heddle::ops {
namespace random_calls {
namespace {

using Integers = std::vector<std::int64_t>;

std::int64_t between(std::int64_t low, std::int64_t high) {
  return *rc::gen::inRange<std::int64_t>(low, high + 1);
}
bool one_in(std::int64_t n) { return between(0, n - 1) == 0; }
template <class T>
T one_of(const std::vector<T>& choices) {
  return choices[static_cast<std::size_t>(
      between(0, static_cast<std::int64_t>(choices.size()) - 1))];
}

// A call, but for what its gradients are taken of.
struct RandomCall {
  std::int64_t batch = 1, queries = 0, keys = 0, heads = 1, key_heads = 1, width = 1, values = 1;
  AttentionOptions options;
  bool additive = false, bias = false, sinks = false;
  Shape added_over, allowed_over;  // sequences and heads of the masks of pairs; empty: none
  int layout = 0;                  // of q, k and v in memory; 0: dense

  bool relu() const { return options.normaliser == Normaliser::relu; }
};

Tensor integer_tensor(const Shape& shape, const Integers& values) {
  return Tensor::from<std::int64_t>(shape, std::span<const std::int64_t>(values));
}

Tensor random_lengths(std::int64_t batch, std::int64_t most) {
  Integers out;
  for (std::int64_t b = 0; b < batch; ++b) out.push_back(between(0, most));
  return integer_tensor({batch}, out);
}

Tensor random_documents(std::int64_t batch, std::int64_t tokens) {
  Integers out;
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t t = 0, document = between(0, 1); t < tokens; ++t) {
      if (one_in(10)) document += between(1, 2);
      out.push_back(document);
    }
  return integer_tensor({batch, tokens}, out);
}

void add_random_mask(RandomCall& c) {
  AttentionMask& m = c.options.mask;
  m.causal = one_in(2);
  if (m.causal && one_in(3)) m.prefix_lengths = random_lengths(c.batch, c.keys);
  if (one_in(3)) m.look_back = one_of<std::int64_t>({0, 1, 5, 40, 1000});
  if (!m.causal && one_in(3)) m.look_ahead = one_of<std::int64_t>({0, 1, 5, 40, 1000});
  if (one_in(3)) m.key_lengths = random_lengths(c.batch, c.keys);
  if (one_in(4)) {
    m.query_documents = random_documents(c.batch, c.queries);
    m.key_documents =
        c.queries == c.keys && one_in(2) ? m.query_documents : random_documents(c.batch, c.keys);
  }
  if (one_in(3)) m.first_query = between(-c.queries - 2, c.keys + 3);
  if (!c.bias && one_in(4)) {
    Integers starts;
    for (std::int64_t b = 0; b < c.batch; ++b) starts.push_back(between(-5, 5));
    m.first_queries = integer_tensor({c.batch}, starts);
  }
  const auto over = [&] { return Shape{one_in(2) ? 1 : c.batch, one_in(2) ? 1 : c.heads}; };
  if (one_in(3)) c.added_over = over();
  if (one_in(3)) c.allowed_over = over();
}

// Limits from which sizes are drawn.
struct Bounds {
  Integers lengths;  // of queries and keys
  Integers widths;   // of heads
  std::int64_t most_batch = 3, most_key_heads = 3;
  Integers groups = {1, 2, 5};  // query heads of a key head
};

RandomCall random_call(const Bounds& bounds) {
  RandomCall c;
  c.batch = between(1, bounds.most_batch);
  c.queries = one_of(bounds.lengths);
  c.keys = one_in(3) ? one_of(bounds.lengths) : c.queries;
  c.key_heads = between(1, bounds.most_key_heads);
  c.heads = c.key_heads * one_of(bounds.groups);
  c.width = one_of(bounds.widths);
  c.values = one_in(3) ? one_of(bounds.widths) : c.width;
  c.bias = one_in(3);
  c.layout = static_cast<int>(between(0, 3));
  add_random_mask(c);
  AttentionOptions& o = c.options;
  if (c.keys > 0 && one_in(3)) o.first_row = between(0, c.keys - 1);
  if (one_in(3)) o.normaliser = Normaliser::relu;
  c.sinks = !c.relu() && one_in(3);
  if (one_in(3)) o.softcap = one_of<double>({0.7, 2, 30});
  if (one_in(3)) o.dropout = one_of<double>({0.1, 0.5, 0.9});
  if (one_in(4)) o.scale = one_of<double>({0.05, 0.3, -0.2});
  o.apart = o.dropout == 0 && one_in(2);
  if (o.apart) o.first_position = between(0, 300);
  o.key = {5, 6, 7};
  return c;
}

// `hidden` where about a fourth of the pairs are hidden, and some rows altogether; else 1.
std::vector<double> random_holes(const Shape& shape, double hidden) {
  std::vector<double> out;
  const RandomKey key{31, 0, 1};
  for (std::int64_t i = 0; i < elements_of(shape); ++i) {
    const auto row = static_cast<std::uint64_t>(i / shape[3]);
    const bool hides =
        philox(key, static_cast<std::uint64_t>(i))[0] % 4 == 0 || philox(key, row)[1] % 8 == 0;
    out.push_back(hides ? hidden : 1);
  }
  return out;
}

Tensor pairs_allowed(const Shape& shape) {
  std::vector<std::uint8_t> out;
  for (const double v : random_holes(shape, 0)) out.push_back(v != 0 ? 255 : 0);
  return Tensor::from<std::uint8_t>(shape, std::span<const std::uint8_t>(out));
}

// The numbers, and minus infinity in the holes.
Tensor with_holes(const Tensor& x) {
  std::vector<double> values = x.to_vector<double>();
  const std::vector<double> holes = random_holes(x.shape(), -HUGE_VAL);
  for (std::size_t i = 0; i < values.size(); ++i)
    if (holes[i] != 1) values[i] = holes[i];
  return Tensor::from<double>(x.shape(), std::span<const double>(values));
}

// Numbers that bf16 can hold, so that rounding is the kernels' own.
Tensor random_numbers(const Shape& shape, std::uint32_t stream) {
  const Tensor t = random_normal(shape, 0, 1, {21, 0, stream}, DType::f64);
  return cast(cast(t, DType::bf16), DType::f64);
}

// |x| + 1/2, as bf16 holds it.
Tensor positive(const Tensor& x) {
  return cast(cast(add(maximum(x, neg(x)), 0.5), DType::bf16), DType::f64);
}

// q, k, v, weight of the additive score, bias, sinks, mask and dy; undefined where there is none. A
// relu'd score near 0 may be rounded to either side of it, and a row of such scores is divided by
// next to nothing: scores are positive there, and not small.
std::vector<Tensor> random_inputs(const RandomCall& c) {
  std::vector<Tensor> x = {random_numbers({c.batch, c.queries, c.heads, c.width}, 1),
                           random_numbers({c.batch, c.keys, c.key_heads, c.width}, 2),
                           random_numbers({c.batch, c.keys, c.key_heads, c.values}, 3)};
  x.resize(8);
  if (c.additive) x[3] = random_numbers({c.heads, c.width}, 4);
  const std::int64_t distances = std::max<std::int64_t>(c.queries + c.keys - 1, 0);
  if (c.bias) x[4] = random_numbers({c.heads, distances}, 5);
  if (c.sinks) x[5] = random_numbers({c.heads}, 6);
  if (!c.added_over.empty())
    x[6] = random_numbers({c.added_over[0], c.added_over[1], c.queries, c.keys}, 8);
  x[7] = random_numbers({c.batch, c.queries, c.heads, c.values}, 7);
  if (c.relu())
    for (const std::size_t i : {0, 1, 3, 4, 6})
      if (x[i].defined()) x[i] = positive(x[i]);
  if (x[6].defined()) x[6] = with_holes(x[6]);
  if (c.relu() && c.options.scale < 0) {
    Tensor& factor = x[c.additive ? 3 : 0];
    factor = neg(factor);
  }
  return x;
}

// The same numbers with other strides: heads before tokens and a gap after each row; rows whose
// elements are not contiguous; rows out of a longer sequence.
Tensor laid_out(const Tensor& x, int layout) {
  const std::int64_t b = x.size(0), t = x.size(1), h = x.size(2), w = x.size(3);
  const auto room = [&](const Shape& shape) {
    return Tensor::full(shape, NAN, x.dtype(), x.device());
  };
  Tensor place;
  if (layout == 0) return clone(x);
  if (layout == 1)
    place = transpose(transpose(slice(room({h, b, t, w + 3}), 3, 2, 2 + w), 0, 1), 1, 2);
  else if (layout == 2)
    place = transpose(room({b, t, w, h}), 2, 3);
  else
    place = slice(room({b, t + 5, h, w}), 1, 3, 3 + t);
  copy_into(place, x);
  return place;
}

// Where and how a call is computed.
struct Way {
  DType dtype = DType::f64;
  Device device = Device::cpu;
  bool by_definition = false;
};

// y and the gradients of all inputs.
std::vector<Tensor> outcome(const RandomCall& c, const std::vector<Tensor>& inputs,
                            const Way& way) {
  const DType parameter = way.dtype == DType::f64 ? DType::f64 : DType::f32;
  const auto there = [&](const Tensor& t, DType dtype) { return cast(t, dtype).to(way.device); };
  std::vector<Tensor> x(7);
  for (std::size_t i = 0; i < 3; ++i)
    x[i] = laid_out(there(inputs[i], way.dtype), way.by_definition ? 0 : c.layout);
  for (std::size_t i = 3; i < 6; ++i)
    if (inputs[i].defined()) x[i] = clone(there(inputs[i], parameter));
  if (inputs[6].defined())
    x[6] = laid_out(there(inputs[6], parameter), way.by_definition ? 0 : c.layout);
  for (Tensor& t : x)
    if (t.defined()) t.set_requires_grad(true);
  AttentionOptions o = c.options;
  o.relative_bias = x[4];
  o.sinks = x[5];
  o.additive_mask = x[6];
  if (!c.allowed_over.empty())
    o.mask.allowed =
        pairs_allowed({c.allowed_over[0], c.allowed_over[1], c.queries, c.keys}).to(way.device);
  Tape tape;
  const auto attend = [&](auto dot, auto additive) {
    return c.additive ? additive(x[0], x[1], x[3], x[2], o) : dot(x[0], x[1], x[2], o);
  };
  const Tensor y = way.by_definition ? attend(reference::attention, reference::additive_attention)
                                     : attend(attention, additive_attention);
  const Tensor dy = there(inputs[7], way.dtype);
  tape.backward(std::span(&y, 1), std::span(&dy, 1));
  std::vector<Tensor> out = {y.detach().to(Device::cpu)};
  for (const Tensor& t : x)
    if (t.defined()) out.push_back(t.grad().to(Device::cpu));
  return out;
}

std::vector<double> numbers(const Tensor& t) {
  return cast(contiguous(t), DType::f64).to_vector<double>();
}

// |a - b| / |b|, where the numbers of b count as no smaller than `floor` in the mean.
double relative_distance(const Tensor& a, const Tensor& b, double floor) {
  const std::vector<double> x = numbers(a), y = numbers(b);
  double error = 0, size = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    error += (x[i] - y[i]) * (x[i] - y[i]);
    size += y[i] * y[i];
  }
  if (error == 0) return 0;
  const double least = floor * std::sqrt(static_cast<double>(x.size()));
  const double d = std::sqrt(error) / std::max(std::sqrt(size), least);
  return std::isnan(d) ? INFINITY : d;
}

// Gradients of parameters are sums over all pairs: terms may cancel, and their rounding does not.
double limit_of(DType dtype, bool parameter) {
  if (dtype == DType::f64) return 1e-10;
  if (dtype == DType::f32) return parameter ? 1e-3 : 3e-5;
  return parameter ? 0.5 : 0.06;
}

void check_call(const RandomCall& c, const std::vector<DType>& dtypes, bool on_tiles) {
  const std::vector<Tensor> inputs = random_inputs(c);
  const std::vector<Tensor> wanted = outcome(c, inputs, {.by_definition = true});
  double largest = 0;
  for (const Tensor& t : wanted)
    for (const double v : numbers(t)) largest = std::max(largest, std::abs(v));
  const auto check = [&](const Way& way) {
    // Of a gradient that is zero, as with a single key, rounding leaves something.
    const double floor = largest * (way.dtype == DType::bf16 ? 0.3 : 0.1);
    const std::vector<Tensor> got = outcome(c, inputs, way);
    RC_ASSERT(got.size() == wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i)  // y, dq, dk and dv come first
      RC_ASSERT(relative_distance(got[i], wanted[i], floor) < limit_of(way.dtype, i >= 4));
  };
  for (const DType dtype : dtypes) {
    if (on_tiles) {
      const OnEmulatedTiles tiles;
      check({.dtype = dtype});
      continue;
    }
    for (const Device device : attention_devices()) check({.dtype = dtype, .device = device});
  }
}

const std::vector<DType> kTypes = {DType::f64, DType::f32, DType::bf16};
const Integers kSmall = {0, 1, 2, 7, 8, 9, 13, 31, 33, 65};

RC_GTEST_PROP(RandomAttention, DotScores, ()) {
  check_call(random_call({kSmall, {1, 2, 3, 8, 15, 17, 32, 33}}), kTypes, false);
}

RC_GTEST_PROP(RandomAttention, AdditiveScores, ()) {
  RandomCall c = random_call({kSmall, {1, 2, 3, 5}});
  c.additive = true;
  check_call(c, kTypes, false);
}

// Several blocks of queries and keys.
RC_GTEST_PROP(RandomAttention, ManyTokens, ()) {
  check_call(random_call({{97, 200, 300, 401}, {4, 16}, 1, 1, {1, 2}}), kTypes, false);
}

RC_GTEST_PROP(RandomAttention, WideHeads, ()) {
  check_call(random_call({{9, 40}, {256, 300}, 1, 2, {1, 2}}), kTypes, false);
}

// Widths that GPUs multiply on tensor cores.
RC_GTEST_PROP(RandomAttention, WidthsOf16, ()) {
  check_call(random_call({kSmall, {16, 32, 48, 64, 128}}), {DType::bf16}, false);
}

RC_GTEST_PROP(RandomAttention, OnTiles, ()) {
  if (multiplies_bf16()) check_call(random_call({kSmall, {32, 64, 96}}), {DType::bf16}, true);
}

RC_GTEST_PROP(RandomAttention, ManyTokensOnTiles, ()) {
  if (!multiplies_bf16()) return;
  const RandomCall c = random_call({{200, 270, 530}, {32, 64}, 1, 2, {1, 2}});
  check_call(c, {DType::bf16}, true);
}

}  // namespace
}  // namespace random_calls
}  // namespace heddle::ops
