#include "model.h"

#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "heddle/error.h"
#include "heddle/tape.h"

namespace byte_decoder {

using heddle::DType;
using heddle::Shape;
using heddle::Tensor;
namespace ops = heddle::ops;

namespace {

constexpr double kEpsilon = 1e-6;
constexpr double kRopeBase = 10000;

// 0 where a token may look (itself and before), -inf ahead of it.
Tensor causal_mask(std::int64_t length, DType dtype) {
  Tensor mask = Tensor::zeros({length, length});
  auto* m = mask.mutable_data<float>();
  for (std::int64_t row = 0; row < length; ++row)
    for (std::int64_t column = row + 1; column < length; ++column)
      m[row * length + column] = -std::numeric_limits<float>::infinity();
  return ops::cast(mask, dtype);
}

}  // namespace

void validate(const Config& c) {
  const auto refuse = [](const std::string& what, const std::string& expected) {
    heddle::fail(heddle::ErrorCode::invalid_argument, "model", what, expected);
  };
  if (c.layers < 1 || c.context < 1 || c.heads < 1 || c.width < 1)
    refuse("a size is not positive", "layers, width, heads and context of 1 or more");
  if (c.width % c.heads != 0 || c.width / c.heads % 2 != 0)
    refuse("the heads do not divide the width",
           "a width that is a multiple of twice the heads (rotary positions turn pairs)");
}

Decoder::Decoder(const Config& config, std::uint64_t seed) : config_(config), seed_(seed) {
  validate(config);
  const heddle::PurposeScope scope(heddle::Purpose::parameters);
  const std::int64_t c = config.width;
  const double stddev = 0.02;
  // The sums of 2·layers branches should not grow with the depth.
  const double branch = stddev / std::sqrt(2.0 * static_cast<double>(config.layers));
  table_ = parameter({kBytes, c}, stddev);
  for (std::int64_t i = 0; i < config.layers; ++i) {
    Layer layer;
    layer.attention_gain = gain();
    layer.query_key_value = parameter({3 * c, c}, stddev);
    layer.attention_out = parameter({c, c}, branch);
    layer.feed_gain = gain();
    layer.feed_in = parameter({4 * c, c}, stddev);
    layer.feed_out = parameter({c, 4 * c}, branch);
    layers_.push_back(layer);
  }
  final_gain_ = gain();
  output_ = parameter({kBytes, c}, stddev);
  rope_ = ops::rope_tables(config.context, c / config.heads, kRopeBase, DType::f32,
                           heddle::Device::cpu);
}

Tensor Decoder::parameter(const Shape& shape, double stddev) {
  const auto number = static_cast<std::uint32_t>(parameters_.size());
  Tensor p = ops::random_normal(shape, 0, stddev, {seed_, 0, number});
  parameters_.push_back(p.set_requires_grad(true));
  return p;
}

Tensor Decoder::gain() {
  Tensor p = Tensor::full({config_.width}, 1);
  parameters_.push_back(p.set_requires_grad(true));
  return p;
}

std::int64_t Decoder::parameter_count() const {
  std::int64_t count = 0;
  for (const Tensor& p : parameters_) count += p.elements();
  return count;
}

Tensor Decoder::attend(const Tensor& x, const Layer& layer) const {
  const std::int64_t batch = x.size(0);
  const std::int64_t length = x.size(1);
  const std::int64_t width = config_.width / config_.heads;
  const Tensor both = ops::linear(x, layer.query_key_value);  // [B, T, 3C]
  const Tensor split = ops::reshape(both, {batch, length, 3, config_.heads, width});
  const auto part = [&](std::int64_t i) {  // [B, T, H, D]
    return ops::reshape(ops::slice(split, 2, i, i + 1), {batch, length, config_.heads, width});
  };
  const auto by_head = [](const Tensor& t) { return ops::transpose(t, 1, 2); };  // [B, H, T, D]
  const Tensor q = by_head(ops::rope(part(0), rope_.cos, rope_.sin, {}));
  const Tensor k = by_head(ops::rope(part(1), rope_.cos, rope_.sin, {}));
  const Tensor v = by_head(part(2));
  Tensor scores = ops::matmul(q, ops::transpose(k, 2, 3));  // [B, H, T, T]
  scores = ops::scale(scores, 1 / std::sqrt(static_cast<double>(width)));
  const Tensor weights = ops::softmax(ops::add(scores, causal_mask(length, x.dtype())));
  return ops::reshape(by_head(ops::matmul(weights, v)), {batch, length, config_.width});
}

Tensor Decoder::hidden(const Tensor& inputs) const {
  Tensor x = ops::embedding(table_, inputs, config_.precision);
  for (const Layer& layer : layers_) {
    const Tensor attended = attend(ops::rms_norm(x, layer.attention_gain, kEpsilon), layer);
    x = ops::linear(attended, layer.attention_out, {}, {ops::Activation::none, x});
    const Tensor inner = ops::linear(ops::rms_norm(x, layer.feed_gain, kEpsilon), layer.feed_in, {},
                                     {ops::Activation::gelu_tanh, {}});
    x = ops::linear(inner, layer.feed_out, {}, {ops::Activation::none, x});
  }
  return ops::rms_norm(x, final_gain_, kEpsilon);
}

Tensor Decoder::loss(const Tensor& inputs, const Tensor& targets) const {
  const Tensor rows = ops::reshape(hidden(inputs), {targets.elements(), config_.width});
  return ops::linear_cross_entropy(rows, output_, {}, targets, {});
}

std::vector<float> Decoder::next_logits(const Tensor& inputs) const {
  const heddle::NoGrad no_grad;
  const Tensor h = hidden(inputs);
  const Tensor last = ops::slice(h, 1, h.size(1) - 1, h.size(1));
  return ops::cast(ops::linear(last, output_), DType::f32).to_vector<float>();
}

}  // namespace byte_decoder
