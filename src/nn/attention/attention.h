// The attention layer: projections, positions and the fused kernels, for every legal
// AttentionConfig.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "heddle/random.h"
#include "heddle/tensor.h"
#include "nn/attention/cache.h"
#include "nn/attention/config.h"
#include "nn/attention/observer.h"
#include "nn/parameters.h"

namespace heddle::nn {

// A sequence among those that share a call: its tokens follow those of its cache.
struct AttentionRows {
  KvCache* cache = nullptr;
  std::int64_t count = 0;      // of its tokens in this call
  Tensor prefix_lengths = {};  // [1]; as AttentionCall has them
  ops::VisibleKeys keys = {};  // likewise
};

// Optional arguments of a call besides its tokens. Lengths count from the first token of the
// sequence, whether it is in this call or in the cache.
struct AttentionCall {
  Tensor memory = {};            // cross-attention: where keys and values come from. [B, Tk, C]
  Tensor key_lengths = {};       // keys from key_lengths[b] on are padding. [B]
  Tensor documents = {};         // of the tokens: they see their own document only. [B, T]
  Tensor memory_documents = {};  // cross-attention: of the memory. [B, Tk]
  Tensor prefix_lengths = {};    // with config.prefix. [B]; the first block must hold the prefix
  // The result of visible_keys() for this call, from this layer or from another with the same
  // configuration and as many tokens in its cache; absent: computed by the call.
  ops::VisibleKeys keys = {};
  // The tokens follow its contents, and are added to it. In cross-attention the first call passes
  // the memory, and later ones do not.
  KvCache* cache = nullptr;
  // Instead: x is [1, Σ count, C], the tokens of these sequences one after the other, at these
  // positions, [Σ count] i64. Every sequence has the bits that it has alone.
  std::span<const AttentionRows> sequences = {};
  Tensor positions = {};
  // One token whose position is a number of the device, [1] i32, behind a cache that can_step();
  // `keys` must be given (step_keys). The cache's host part is the caller's.
  Tensor at = {};
  std::optional<RandomKey> dropout = {};  // absent: no dropout (evaluation)
  AttentionObserver* observer = nullptr;  // sees intermediate results; not with a cache
  std::int64_t layer = 0;                 // number passed to the observer
};

// Undefined where the configuration has no use for them. H heads, G key heads, D head_width,
// S score_width, C width.
struct AttentionParameters {
  Tensor q, k, v, out;                      // [H·D, C], [G·D, C], [G·D, C], [C, H·D]
  Tensor q_bias, k_bias, v_bias, out_bias;  // [H·D], [G·D], [G·D], [C]
  Tensor score;  // multiplicative W [H, D, D]; concat w [H, 2D], keys first; additive w [H, S]
  Tensor score_query, score_key;  // additive W: [H, S, D], [G, S, D]
  Tensor q_norm, k_norm;          // gains: [D], or of all heads [H·D], [G·D]
  Tensor t5_table;                // [buckets, H]
  Tensor sinks;                   // [H]
};

class Attention {
 public:
  // The layers of a model share their rotary tables by sharing `rotary`, and one table of T5's
  // positions by sharing `t5_table`, which is no parameter of this layer then.
  Attention(const AttentionConfig& config, const Scope& scope,
            std::shared_ptr<const Rotary> rotary = {}, const Tensor& t5_table = {});

  // x: [B, T, C] -> [B, T, C]. Parameters are f32 when x is f32 or bf16, f64 when x is f64.
  Tensor forward(const Tensor& x, const AttentionCall& call = {}) const;

  // The keys that the tokens of x see, to be shared by layers. Absent where it depends on what a
  // layer's own cache holds: documents.
  ops::VisibleKeys visible_keys(const Tensor& x, const AttentionCall& call) const;

  // Of the next token of a cache, among all rows that it has taken: on the CPU, for a step that is
  // repeated.
  ops::VisibleKeys step_keys(std::int64_t batch, const KvCache& cache) const;
  const std::shared_ptr<const Rotary>& rotary() const { return rotary_; }  // null: none

  // The map of these rows, [B, rows, Tk], as forward() uses it but for dropout. Takes no cache.
  Tensor weights(const Tensor& x, const ops::MapRows& rows, const AttentionCall& call = {}) const;

  // fn(std::string_view name, Tensor& parameter), for those that the configuration has.
  template <class F>
  void for_each_parameter(F&& fn);

  const AttentionConfig& config() const { return config_; }
  const AttentionParameters& parameters() const { return p_; }

 private:
  struct Inputs;  // of the fused op

  void make_parameters(const Scope& scope);
  void make_norms(const Scope& scope);
  Tensor normalised(const Tensor& x, const Tensor& gain) const;
  Inputs inputs(const Tensor& x, const AttentionCall& call) const;
  // Queries of x; keys and values of `source`, unless that is undefined.
  void project(Inputs& in, const Tensor& x, const Tensor& source) const;
  void finish_queries(Inputs& in, const RotaryPlaces& places) const;
  void finish_keys(Inputs& in, const RotaryPlaces& places) const;
  void use_cache(Inputs& in, const AttentionCall& call) const;
  Tensor forward_each(const Tensor& x, const AttentionCall& call) const;
  Inputs part_of(const Inputs& all, std::int64_t begin, const AttentionRows& sequence) const;
  void check_call(const Tensor& x, const AttentionCall& call) const;
  ops::AttentionOptions options(const AttentionCall& call) const;
  void add_positions(Inputs& in) const;

  AttentionConfig config_;
  AttentionParameters p_;
  std::shared_ptr<const Rotary> rotary_;
};

template <class F>
void Attention::for_each_parameter(F&& fn) {
  const auto visit = [&fn](std::string_view name, Tensor& t) {
    if (t.defined()) fn(name, t);
  };
  visit("q.weight", p_.q);
  visit("q.bias", p_.q_bias);
  visit("k.weight", p_.k);
  visit("k.bias", p_.k_bias);
  visit("v.weight", p_.v);
  visit("v.bias", p_.v_bias);
  visit("out.weight", p_.out);
  visit("out.bias", p_.out_bias);
  visit("score.weight", p_.score);
  visit("score.query", p_.score_query);
  visit("score.key", p_.score_key);
  visit("q_norm.weight", p_.q_norm);
  visit("k_norm.weight", p_.k_norm);
  visit("t5.table", p_.t5_table);
  visit("sinks", p_.sinks);
}

}  // namespace heddle::nn
