// Choices of single layers and of the ways in and out, for tests over all kinds of Transformers.
#pragma once

#include <functional>
#include <string>

#include "model/config.h"

namespace heddle::model {

// A window with its own angles, then all tokens without positions; caps and scales differ too.
inline void local_and_global(ModelConfig& c) {
  nn::LayerAttention local = nn::layer_part(c.attention), global = local;
  local.look_back = 1;
  local.position = nn::RopePosition{.base = 100};
  local.scale = 0.7;
  global.softcap = 3;
  c.attention_layers = {local, global};
}

using AddVariant = std::function<void(const char*, const std::function<void(ModelConfig&)>&)>;

inline void add_feed_forward_axes(const AddVariant& add) {
  for (const nn::FfnKind kind : nn::kFfnKinds)
    add(std::string(to_string(kind)).c_str(), [kind](ModelConfig& c) {
      c.ffn = kind;
      c.ffn_clamp = 0.6;
    });
  add("attention alone", [](ModelConfig& c) { c.ffn = nn::FfnKind::none; });
  add("sigmoid router", [](ModelConfig& c) {
    c.moe = nn::MoeOptions{.experts = 4, .active = 2, .shared = 2, .balance = 0.1};
    c.moe->routing = {nn::Router::sigmoid, true, 1.5, true, true};
    c.moe->shared_gate = true;
  });
  add("raw shares, a dense layer", [](ModelConfig& c) {
    c.moe = nn::MoeOptions{.experts = 3, .active = 2, .balance = 0.1};
    c.moe->routing.renormalise = false;
    c.moe->dense_layers = 1;
    c.moe->dense_width = 5;
  });
}

inline void add_norm_axes(Kind kind, const AddVariant& add) {
  add("branch, norm of all queries", [](ModelConfig& c) {
    c.norm_place = nn::NormPlace::branch;
    c.norm = nn::NormKind::rms;
    c.qk_norm = nn::QkNorm::full;
    c.attention.kv_heads = 1;
    c.attention.position = nn::RopePosition{};
  });
  add("sandwich, norm of each head, capped scores", [kind](ModelConfig& c) {
    c.norm_place = nn::NormPlace::sandwich;
    c.qk_norm = nn::QkNorm::head;
    c.logit_softcap = 1.5;
    c.logit_scale = 0.6;
    if (kind != Kind::vit) c.embedding_scale = 1.7;
  });
  add("embedding norm, no last norm, scaled branches", [](ModelConfig& c) {
    c.embedding_norm = true;
    c.last_norm = false;
    c.residual_scale = 0.7;
    c.layer_scale = 0.5;
  });
  if (kind == Kind::encoder_decoder) {
    add("one table for both sides", [](ModelConfig& c) { c.shared_embedding = true; });
    add("a table for each side", [](ModelConfig& c) {
      c.tied = true;
      c.shared_embedding = false;
    });
    return;  // cross-attention stands between the two that would be in parallel
  }
  add("parallel, one norm", [](ModelConfig& c) {
    c.parallel = nn::ParallelResidual::one_norm;
    c.norm_bias = false;
  });
  add("parallel, two norms", [](ModelConfig& c) { c.parallel = nn::ParallelResidual::two_norms; });
}

inline void add_axes(Kind kind, const AddVariant& add) {
  add_feed_forward_axes(add);
  add_norm_axes(kind, add);
  add("biases apart", [](ModelConfig& c) {
    c.bias = false;
    c.qkv_bias = c.head_bias = true;
    c.key_bias = false;
    c.ffn_bias = true;
  });
  add("biases the other way round", [](ModelConfig& c) {
    c.qkv_bias = c.ffn_bias = c.norm_bias = false;
    c.key_bias = true;
  });
  add("classifier of two layers, no first norm", [](ModelConfig& c) {
    c.head_transform = HeadTransform::gelu;
    c.head_norm = c.embedding_norm = true;
    c.first_norm = false;
    if (c.kind != Kind::vit) c.pooling = Pooling::first_token;
  });
  add("tanh before the classifier, a bias apart", [](ModelConfig& c) {
    c.head_transform = HeadTransform::tanh;
    c.head_transform_bias = false;
    c.logit_scale = 0.7;
  });
  if (kind == Kind::vit) {
    add("extra tokens, class and mean", [](ModelConfig& c) {
      c.pooling = Pooling::class_mean;
      c.extra_tokens = 2;
      c.head_transform = HeadTransform::gelu;
    });
    add("a distillation token", [](ModelConfig& c) {
      c.pooling = Pooling::class_extra;
      c.extra_tokens = 1;
    });
  }
  add("local and global", local_and_global);
  add("sines and cosines in halves",
      [](ModelConfig& c) { c.attention.position = nn::SinusoidalPosition{.halves = true}; });
  add("one t5 table", [](ModelConfig& c) {
    c.attention.position = nn::T5Position{.buckets = 8, .max_distance = 6, .shared = true};
  });
}

}  // namespace heddle::model
