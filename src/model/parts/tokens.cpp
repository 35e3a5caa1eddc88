#include "model/parts/tokens.h"

#include <cmath>
#include <vector>

#include "nn/position/learned.h"
#include "nn/position/sinusoidal.h"
#include "ops/binary/binary.h"
#include "ops/concat/concat.h"
#include "ops/dropout/dropout.h"
#include "ops/embedding/embedding.h"
#include "ops/unary/unary.h"

namespace heddle::model {

namespace {

// Site of dropout (nn::Pass::site); layers have their own sixteen.
constexpr std::uint32_t kTokenDropout = 0;

}  // namespace

Positions::Positions(const ModelConfig& config, std::int64_t count, const nn::Scope& scope) {
  if (const auto* waves = std::get_if<nn::SinusoidalPosition>(&config.attention.position))
    sinusoidal_ = *waves;
  if (std::holds_alternative<nn::LearnedPosition>(config.attention.position))
    table_ = scope.table("position.weight", {count, config.width});
}

Tensor Positions::add(const Tensor& x, std::int64_t first) const {
  const std::int64_t count = x.size(1), width = x.size(2);
  if (sinusoidal_)
    return ops::add(
        x, nn::sinusoidal(first, count, width, x.dtype(), x.device(), sinusoidal_->halves));
  if (table_.defined()) return ops::add(x, nn::learned(table_, first, count, x.dtype()));
  return x;
}

Tensor Positions::add(const Tensor& x, std::span<const std::int64_t> positions) const {
  if (!sinusoidal_ && !table_.defined()) return x;
  std::vector<Tensor> rows;  // of each position, [1, C]
  rows.reserve(positions.size());
  for (const std::int64_t p : positions)
    rows.push_back(sinusoidal_
                       ? nn::sinusoidal(p, 1, x.size(2), x.dtype(), x.device(), sinusoidal_->halves)
                       : nn::learned(table_, p, 1, x.dtype()));
  return ops::add(x, ops::concat(rows, 0));
}

Tensor Positions::add(const Tensor& x, const Tensor& at) const {
  if (!table_.defined()) return x;
  return ops::add(x, ops::embedding(table_, at, x.dtype()));  // [1, C]
}

std::optional<nn::Norm> embedding_norm(const ModelConfig& config, const nn::Scope& scope) {
  if (!config.embedding_norm) return std::nullopt;
  return nn::Norm(norm_config(config), scope / "embed_norm");
}

TokenInput::TokenInput(const ModelConfig& config, std::int64_t vocabulary, const nn::Scope& scope,
                       const Tensor& shared_table)
    : embedding_(shared_table.defined()
                     ? nn::Embedding(shared_table)
                     : nn::Embedding({vocabulary, config.width}, scope / "embed")),
      positions_(config, positions_of(config), scope),
      norm_(model::embedding_norm(config, scope)),
      scale_(config.scales_embedding() ? std::sqrt(static_cast<double>(config.width))
                                       : config.embedding_scale.value_or(1)),
      dropout_(config.embedding_dropout) {}

Tensor TokenInput::embedded(const Tensor& ids, const nn::Pass& pass) const {
  const Tensor x = embedding_.forward(ids, pass.precision);  // [B, T, C]
  return scale_ != 1 ? ops::scale(x, scale_) : x;
}

Tensor TokenInput::forward(const Tensor& ids, std::span<const std::int64_t> positions,
                           const nn::Pass& pass) const {
  const Tensor x = positions_.add(embedded(ids, pass), positions);
  return norm_ ? norm_->forward(x) : x;
}

Tensor TokenInput::forward(const Tensor& ids, std::int64_t first, const nn::Pass& pass) const {
  Tensor x = embedded(ids, pass);
  x = positions_.add(x, first);
  if (norm_) x = norm_->forward(x);
  const auto key = pass.site(kTokenDropout);
  return key && dropout_ > 0 ? ops::dropout(x, dropout_, *key) : x;
}

Tensor TokenInput::forward_step(const Tensor& ids, const Tensor& at, const nn::Pass& pass) const {
  const Tensor x = positions_.add(embedded(ids, pass), at);  // [B, 1, C]
  return norm_ ? norm_->forward(x) : x;
}

}  // namespace heddle::model
