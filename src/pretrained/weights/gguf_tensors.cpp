#include "pretrained/weights/gguf_tensors.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "heddle/error.h"

namespace heddle::pretrained {
namespace {

void read_biases(const WeightFiles& file, model::ModelConfig& config) {
  const auto any = [&](std::initializer_list<std::string_view> names) {
    return std::ranges::any_of(names, [&](std::string_view name) { return file.contains(name); });
  };
  config.qkv_bias = any({"blk.0.attn_q.bias", "blk.0.attn_qkv.bias"});
  config.out_bias = any({"blk.0.attn_output.bias"});
  config.ffn_bias = any({"blk.0.ffn_up.bias", "blk.0.ffn_up_exps.bias"});
  if (config.norm == nn::NormKind::layer) config.norm_bias = any({"output_norm.bias"});
  if (config.moe) config.moe->routing.bias = any({"blk.0.ffn_gate_inp.bias"});
}

// A list of factors that a tensor holds, for the angles of every layer that has rotary positions.
// A position that was scaled already would be scaled twice.
void set_factors(std::vector<double> factors, const std::string& where, std::string_view name,
                 nn::Position& position) {
  auto* rope = std::get_if<nn::RopePosition>(&position);
  if (rope == nullptr) return;
  nn::FactorScaling list;
  if (const auto* begun = std::get_if<nn::FactorScaling>(&rope->scaling))
    list.attention_factor = begun->attention_factor;
  else if (!std::holds_alternative<nn::NoScaling>(rope->scaling))
    fail(ErrorCode::io, where,
         "tensor " + std::string(name) + " scales rotary positions that metadata scale too",
         "one of the two");
  list.factors = std::move(factors);
  rope->scaling = std::move(list);
}

void read_factors(const WeightFiles& file, model::ModelConfig& config) {
  constexpr std::int64_t kMostFactors = 65536;
  for (const std::string_view name : {"rope_freqs.weight", "rope_factors_short.weight"}) {
    if (!file.contains(name)) continue;
    const Shape shape = file.shape(name);
    if (shape.rank() != 1 || shape[0] > kMostFactors)
      fail(ErrorCode::io, file.where(), "tensor " + std::string(name) + ": not a list of factors",
           "one dimension", to_string(shape));
    const std::vector<float> values = file.load(name, DType::f32).to_vector<float>();
    const std::vector<double> factors(values.begin(), values.end());
    set_factors(factors, file.where(), name, config.attention.position);
    for (nn::LayerAttention& layer : config.attention_layers)
      set_factors(factors, file.where(), name, layer.position);
  }
}

}  // namespace

void read_from_tensors(const WeightFiles& file, model::ModelConfig& config) {
  const Shape embedding = file.shape("token_embd.weight");
  if (embedding.rank() == 2) config.sizes.vocabulary = embedding[0];
  config.tied = !file.contains("output.weight");
  if (config.parallel == nn::ParallelResidual::one_norm &&
      file.contains("blk.0.attn_norm_2.weight"))
    config.parallel = nn::ParallelResidual::two_norms;
  read_biases(file, config);
  read_factors(file, config);
}

}  // namespace heddle::pretrained
