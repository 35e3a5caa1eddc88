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

Pool::Pool(const ModelConfig& config, const nn::Scope& scope) : pooling_(config.pooling) {
  if (config.has_class_token()) class_token_ = scope.table("class_token", {1, config.width});
}

Tensor Pool::extend(const Tensor& x) const {
  if (!class_token_.defined()) return x;
  const Tensor token = ops::cast(class_token_, x.dtype());
  const std::array<Tensor, 2> parts = {ops::broadcast_to(token, {x.size(0), 1, x.size(2)}), x};
  return ops::concat(parts, 1);
}

Tensor Pool::lengths(const Tensor& lengths) const {
  if (!class_token_.defined() || !lengths.defined()) return lengths;
  if (lengths.device().is_meta())  // as many bytes
    return Tensor::empty(lengths.shape(), DType::i64, lengths.device());
  Integers counts = ops::cast(lengths, DType::i64).to_vector<std::int64_t>();
  for (std::int64_t& n : counts) ++n;
  return Tensor::from<std::int64_t>(lengths.shape(), std::span<const std::int64_t>(counts));
}

Tensor Pool::reduce(const Tensor& y, const Tensor& lengths, Pooling pooling) const {
  const std::int64_t first = class_token_.defined() ? 1 : 0;
  const auto vector_at = [&](std::int64_t place) {
    return ops::reshape(ops::slice(y, 1, place, place + 1), {y.size(0), y.size(2)});
  };
  switch (pooling) {
    case Pooling::class_token:
      if (first == 1) return vector_at(0);
      fail(ErrorCode::invalid_argument, "pool", "a class token is not there",
           "first-token or mean: the model was built without one", to_string(pooling));
    case Pooling::first_token: return vector_at(first);
    case Pooling::mean: break;
  }
  const Tensor tokens = first == 0 ? y : ops::slice(y, 1, first, y.size(1));
  const Tensor mask = lengths.defined() ? mask_of(lengths, tokens.size(1), y.device()) : Tensor();
  return ops::mean_pool(tokens, mask);
}

}  // namespace heddle::model
