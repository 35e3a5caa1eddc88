#include "nn/attention/config.h"

#include <array>
#include <string>

#include "nn/position/t5.h"
#include "nn/require.h"

namespace heddle::nn {

namespace {

constexpr const char* kConfig = "attention";

void refuse_unless(bool ok, Keys keys, std::string_view expected, std::string_view got) {
  require(ok, kConfig, keys, expected, got);
}

void check_number(bool ok, Keys keys, std::string_view expected, double got) {
  require(ok, kConfig, keys, expected, got);
}

void check_heads(const AttentionConfig& c) {
  check_number(c.width > 0, {"width"}, "1 or more", static_cast<double>(c.width));
  check_number(c.heads > 0, {"heads"}, "1 or more", static_cast<double>(c.heads));
  const std::int64_t groups = c.key_heads();
  check_number(groups > 0 && c.heads % groups == 0, {"kv_heads", "heads"},
               "a divisor of the " + std::to_string(c.heads) +
                   " heads: each key head serves equally many of them",
               static_cast<double>(groups));
  if (c.head_width)
    check_number(*c.head_width > 0, {"head_width"}, "1 or more",
                 static_cast<double>(*c.head_width));
  else
    check_number(c.width % c.heads == 0, {"heads", "width"},
                 "a divisor of the width " + std::to_string(c.width) + ", or a head_width",
                 static_cast<double>(c.heads));
}

void check_score(const AttentionConfig& c) {
  if (c.score_width) {
    refuse_unless(c.score == Score::additive, {"score_width", "score"},
                  "score = additive: no other score has a hidden layer", to_string(c.score));
    check_number(*c.score_width > 0, {"score_width"}, "1 or more",
                 static_cast<double>(*c.score_width));
  }
  // Scores are f32: so must these be, and the cap's inverse.
  const auto in_range = [](double v) { return v == 0 || (v >= 1e-30 && v <= 1e30); };
  check_number(in_range(c.scale), {"scale"},
               "a positive number (1e-30 to 1e30), or 0 for the score's own", c.scale);
  check_number(in_range(c.softcap), {"softcap"}, "a positive number (1e-30 to 1e30), or 0 for none",
               c.softcap);
  check_number(c.dropout >= 0 && c.dropout < 1, {"dropout"}, "0 or more and below 1", c.dropout);
  refuse_unless(!c.sinks || c.normaliser == ops::Normaliser::softmax, {"sinks", "normaliser"},
                "normaliser = softmax: a sink takes its share of that sum", "relu");
}

void check_mask(const AttentionConfig& c) {
  if (c.look_back)
    check_number(*c.look_back >= 0, {"look_back"}, "0 or more", static_cast<double>(*c.look_back));
  if (c.look_ahead) {
    check_number(*c.look_ahead >= 0, {"look_ahead"}, "0 or more",
                 static_cast<double>(*c.look_ahead));
    refuse_unless(!c.causal, {"look_ahead", "causal"},
                  "causal = false: a causal token sees no later one", "causal = true");
  }
  refuse_unless(!c.prefix || c.causal, {"prefix", "causal"},
                "causal = true: without it every token sees all tokens anyway", "causal = false");
  const char* const apart = "self-attention: positions of two sequences cannot be compared";
  refuse_unless(!(c.cross && c.causal), {"causal", "cross"}, apart, "cross = true");
  refuse_unless(!(c.cross && c.look_back), {"look_back", "cross"}, apart, "cross = true");
  refuse_unless(!(c.cross && c.look_ahead), {"look_ahead", "cross"}, apart, "cross = true");
}

// Requirements that each kind of position places on the rest of the configuration.
struct PositionRules {
  const AttentionConfig& c;

  void within_one_sequence(std::string_view kind) const {
    refuse_unless(!c.cross, {"position", "cross"},
                  "none, sinusoidal or learned: tokens of two sequences have no distance",
                  std::string(kind) + " in cross-attention");
  }

  void operator()(const NoPosition&) const {}
  void operator()(const SinusoidalPosition&) const {
    check_number(c.width % 2 == 0, {"width", "position"},
                 "an even number: sinusoidal positions are pairs", static_cast<double>(c.width));
  }
  void operator()(const LearnedPosition& p) const {
    check_number(p.positions > 0, {"position.positions"}, "1 or more",
                 static_cast<double>(p.positions));
  }
  void operator()(const T5Position& p) const {
    within_one_sequence("t5");
    validate(T5Options{p.buckets, p.max_distance, c.both_directions()});
  }
  void operator()(const AlibiPosition&) const { within_one_sequence("alibi"); }
  void operator()(const RopePosition& p) const {
    within_one_sequence("rope");
    refuse_unless(c.score == Score::scaled_dot || c.score == Score::multiplicative,
                  {"position", "score"},
                  "a score that is a dot product: only there rotations leave the distance",
                  "rope with score = " + std::string(to_string(c.score)));
    validate(p, c.width_of_head());
  }
};

}  // namespace

std::string_view to_string(Score score) {
  switch (score) {
    case Score::scaled_dot: return "scaled-dot";
    case Score::multiplicative: return "multiplicative";
    case Score::concat: return "concat";
    case Score::additive: return "additive";
  }
  return "unknown";
}

std::string_view to_string(const Position& position) {
  constexpr std::array<std::string_view, std::variant_size_v<Position>> names = {
      "none", "sinusoidal", "learned", "t5", "alibi", "rope"};
  return names[position.index()];
}

LayerAttention layer_part(const AttentionConfig& c) {
  return {c.look_back, c.look_ahead, c.position, c.scale, c.softcap};
}

AttentionConfig with_layer(AttentionConfig c, const LayerAttention& layer) {
  c.look_back = layer.look_back;
  c.look_ahead = layer.look_ahead;
  c.position = layer.position;
  c.scale = layer.scale;
  c.softcap = layer.softcap;
  return c;
}

std::string_view to_string(QkNorm norm) {
  switch (norm) {
    case QkNorm::none: return "none";
    case QkNorm::head: return "head";
    case QkNorm::full: return "full";
  }
  return "unknown";
}

void validate(const AttentionConfig& config) {
  check_heads(config);
  check_score(config);
  check_mask(config);
  std::visit(PositionRules{config}, config.position);
}

void validate_cached(const AttentionConfig& config) {
  validate(config);
  refuse_unless(config.cross || config.causal, {"causal"},
                "true for a cache: otherwise earlier tokens would change with every new one",
                "causal = false");
}

}  // namespace heddle::nn
