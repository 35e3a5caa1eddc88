// Keys and names that Llama's relatives share.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "io/toml/toml.h"
#include "model/config.h"
#include "pretrained/family.h"

namespace heddle::pretrained {

// The names that all of them have; norms differ.
std::span<const TensorName> names_like_llama();

// Angles that follow from the configuration, and the head where it is the embedding.
inline constexpr std::array<std::string_view, 2> kUnusedLikeLlama = {"rotary_emb.inv_freq",
                                                                     "lm_head.weight"};

// Where a relative spells a key otherwise, or has another default.
struct LikeLlama {
  std::string_view activation_key = "hidden_act";
  std::string_view activation = "silu";
  bool tied = false;
  bool rope = true;  // whether rope_parameters are read here
};

// Sizes, norms, gates, positions; no biases.
model::ModelConfig read_like_llama(const io::TomlTable& settings, const LikeLlama& differs);

// The way back, of a configuration with biases or without.
Settings write_like_llama(const model::ModelConfig& config, const LikeLlama& differs);

}  // namespace heddle::pretrained
