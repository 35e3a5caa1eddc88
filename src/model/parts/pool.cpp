#include "model/parts/pool.h"

#include <array>
#include <vector>

#include "heddle/error.h"
#include "ops/concat/concat.h"
#include "ops/copy/copy.h"
#include "ops/mean_pool/mean_pool.h"
#include "ops/view/view.h"

namespace heddle::model {

namespace {

using Integers = std::vector<std::int64_t>;

// 1 at the tokens of each sequence, 0 at its padding: [B, T] u8.
Tensor mask_of(const Tensor& lengths, std::int64_t positions, Device device) {
  const std::int64_t batch = lengths.size(0);
  if (device.is_meta()) return Tensor::zeros({batch, positions}, DType::u8, device);
  Tensor mask = Tensor::zeros({batch, positions}, DType::u8);
  const Integers counts = ops::cast(lengths, DType::i64).to_vector<std::int64_t>();
  auto* m = mask.mutable_data<std::uint8_t>();
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t t = 0; t < positions && t < counts[static_cast<std::size_t>(b)]; ++t)
      m[b * positions + t] = 1;
  return mask.to(device);
}

}  // namespace

Pool::Pool(const ModelConfig& config, const nn::Scope& scope)
    : pooling_(config.pooling), before_(config.tokens_before()) {
  if (config.has_class_token()) class_token_ = scope.table("class_token", {1, config.width});
  if (config.extra_tokens > 0)
    extra_tokens_ = scope.table("extra_tokens", {config.extra_tokens, config.width});
}

Tensor Pool::extend(const Tensor& x) const {
  std::vector<Tensor> parts;
  for (const Tensor& own : {class_token_, extra_tokens_})
    if (own.defined())
      parts.push_back(
          ops::broadcast_to(ops::cast(own, x.dtype()), {x.size(0), own.size(0), x.size(2)}));
  if (parts.empty()) return x;
  parts.push_back(x);
  return ops::concat(parts, 1);
}

Tensor Pool::lengths(const Tensor& lengths) const {
  if (before_ == 0 || !lengths.defined()) return lengths;
  if (lengths.device().is_meta())  // as many bytes
    return Tensor::empty(lengths.shape(), DType::i64, lengths.device());
  Integers counts = ops::cast(lengths, DType::i64).to_vector<std::int64_t>();
  for (std::int64_t& n : counts) n += before_;
  return Tensor::from<std::int64_t>(lengths.shape(), std::span<const std::int64_t>(counts));
}

Tensor Pool::mean(const Tensor& y, const Tensor& lengths) const {
  const Tensor tokens = before_ == 0 ? y : ops::slice(y, 1, before_, y.size(1));
  const Tensor mask = lengths.defined() ? mask_of(lengths, tokens.size(1), y.device()) : Tensor();
  return ops::mean_pool(tokens, mask);
}

Tensor Pool::reduce(const Tensor& y, const Tensor& lengths, Pooling pooling) const {
  const auto vector_at = [&](std::int64_t place) {
    return ops::reshape(ops::slice(y, 1, place, place + 1), {y.size(0), y.size(2)});
  };
  const bool classed = pooling == Pooling::class_token || pooling == Pooling::class_mean ||
                       pooling == Pooling::class_extra;
  if (classed && !class_token_.defined())
    fail(ErrorCode::invalid_argument, "pool", "a class token is not there",
         "first-token or mean: the model was built without one", to_string(pooling));
  const auto beside_class = [&](const Tensor& other) {
    const std::array<Tensor, 2> both = {vector_at(0), other};
    return ops::concat(both, 1);
  };
  switch (pooling) {
    case Pooling::class_token: return vector_at(0);
    case Pooling::first_token: return vector_at(before_);
    case Pooling::mean: return mean(y, lengths);
    case Pooling::class_mean: return beside_class(mean(y, lengths));
    case Pooling::class_extra: break;
  }
  if (!extra_tokens_.defined())
    fail(ErrorCode::invalid_argument, "pool", "an extra token is not there",
         "another pooling: the model was built without one", to_string(pooling));
  return beside_class(vector_at(1));
}

}  // namespace heddle::model
