// The grammar of attention: one choice per axis, and one place that refuses what makes no sense.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include "nn/norm/norm.h"
#include "nn/position/rope.h"
#include "ops/attention/attention.h"

namespace heddle::nn {

// Of a query q and a key k, both vectors of a head:
//   scaled_dot      kᵀ q / √D
//   multiplicative  kᵀ W q / √D
//   concat          wᵀ [k; q]: the query's share is the same for all keys, so under a softmax
//                   without softcap it has no influence
//   additive        wᵀ tanh(W [k; q])
enum class Score : std::uint8_t { scaled_dot, multiplicative, concat, additive };

std::string_view to_string(Score score);

struct NoPosition {
  bool operator==(const NoPosition&) const = default;
};
// These two are added to the tokens, once, before the first layer: by the code that makes x, with
// nn::sinusoidal or nn::learned. Attention only checks them.
struct SinusoidalPosition {
  bool halves = false;  // all sines, then all cosines; otherwise in turns

  bool operator==(const SinusoidalPosition&) const = default;
};
struct LearnedPosition {
  std::int64_t positions = 0;

  bool operator==(const LearnedPosition&) const = default;
};
// A learned number per head and bucket of distances. Both directions have buckets of their own
// where both are seen: without causal mask, and with a prefix.
struct T5Position {
  std::int64_t buckets = 32;
  std::int64_t max_distance = 128;
  bool shared = false;  // the layers of a stack have one table, the first one's

  bool operator==(const T5Position&) const = default;
};
struct AlibiPosition {
  bool operator==(const AlibiPosition&) const = default;
};
// The rotation makes a dot product depend on the distance; so it goes with scaled_dot and, applied
// after W, with multiplicative. The other scores of rotated vectors would depend on absolute
// positions.
using RopePosition = RopeOptions;

using Position = std::variant<NoPosition, SinusoidalPosition, LearnedPosition, T5Position,
                              AlibiPosition, RopePosition>;

std::string_view to_string(const Position& position);

// Queries and keys are normalised before they are turned by their position: each head for itself,
// over its own width, or all heads together.
enum class QkNorm : std::uint8_t { none, head, full };

std::string_view to_string(QkNorm norm);

struct AttentionConfig {
  std::int64_t width = 0;  // of the model
  Score score = Score::scaled_dot;
  ops::Normaliser normaliser = ops::Normaliser::softmax;

  std::int64_t heads = 1;
  std::optional<std::int64_t> kv_heads = {};     // absent: as many as heads
  std::optional<std::int64_t> head_width = {};   // absent: width / heads
  std::optional<std::int64_t> score_width = {};  // S of the additive score; absent: head_width

  bool causal = false;
  bool prefix = false;  // causal but for a prefix of each sequence, whose length the call gives
  std::optional<std::int64_t> look_back = {};   // earlier tokens a token may see; absent: all
  std::optional<std::int64_t> look_ahead = {};  // later tokens, without causal mask
  bool cross = false;                           // keys and values come from another sequence

  Position position = {};
  double scale = 0;       // of the scores; 0: 1/√D for scaled_dot and multiplicative, else 1
  double softcap = 0;     // cap · tanh(score / cap); 0: none
  double dropout = 0;     // of the weights, in calls that bring a key for it
  bool sinks = false;     // a learned logit per head that takes its share of the softmax
  bool bias = false;      // of the projections to queries, keys and values
  bool out_bias = false;  // of the projection back
  std::optional<bool> key_bias = {};  // of that to keys alone; absent: as bias

  QkNorm qk_norm = QkNorm::none;  // with a gain and no bias
  NormKind norm = NormKind::rms;  // the kind and epsilon of it
  double norm_epsilon = 1e-5;

  bool operator==(const AttentionConfig&) const = default;

  std::int64_t key_heads() const { return kv_heads.value_or(heads); }
  std::int64_t width_of_head() const { return head_width.value_or(heads > 0 ? width / heads : 0); }
  std::int64_t width_of_score() const { return score_width.value_or(width_of_head()); }
  bool has_key_bias() const { return key_bias.value_or(bias); }
  bool both_directions() const { return !causal || prefix; }
};

// The part of attention in which the layers of a stack may differ: what a token sees, and how
// scores are made of it. It takes the place of these fields in the stack's AttentionConfig.
struct LayerAttention {
  std::optional<std::int64_t> look_back = {};
  std::optional<std::int64_t> look_ahead = {};
  Position position = {};
  double scale = 0;
  double softcap = 0;

  bool operator==(const LayerAttention&) const = default;
};

LayerAttention layer_part(const AttentionConfig& config);
AttentionConfig with_layer(AttentionConfig config, const LayerAttention& layer);

// Throws Error naming the key, what it may be and what it was, when the configuration makes no
// sense. Everything that takes a configuration calls it.
void validate(const AttentionConfig& config);

// The same for generation with a cache of keys and values.
void validate_cached(const AttentionConfig& config);

}  // namespace heddle::nn
