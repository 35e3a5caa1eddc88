#include "bench/models.h"

namespace heddle::bench {

bool ModelBenchOptions::wants(const DecoderShape& shape) const {
  if (!only.empty()) return only == shape.name;
  return !quick || shape.name == kTiny.name;
}

model::ModelConfig config_of(const DecoderShape& shape, std::int64_t context) {
  model::ModelConfig m;
  m.layers = shape.layers;
  m.width = shape.width;
  m.attention.heads = shape.heads;
  m.attention.position = nn::LearnedPosition{};
  m.ffn = nn::FfnKind::gelu_tanh;
  m.tied = true;
  m.init = nn::InitRule::normal;
  m.sizes.vocabulary = shape.vocabulary;
  m.sizes.context = context;
  return m;
}

Tensor random_ids(const Shape& shape, std::int64_t limit, const RandomKey& key) {
  Tensor t = Tensor::empty(shape, DType::i32);
  auto* ids = t.mutable_data<std::int32_t>();
  for (std::int64_t i = 0; i < t.elements(); ++i)
    ids[i] = static_cast<std::int32_t>(philox(key, static_cast<std::uint64_t>(i))[0] %
                                       static_cast<std::uint64_t>(limit));
  return t;
}

}  // namespace heddle::bench
