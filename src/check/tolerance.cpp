#include "check/tolerance.h"

#include <algorithm>
#include <cmath>

#include "check/spread.h"

namespace heddle::check {

namespace {

constexpr double kSafetyOfLargest = 12, kSafetyOfMean = 2;
constexpr double kMostSpreadOfLargest = 0.75, kMostSpreadOfMean = 0.15;
constexpr double kRoundingsOfLayer = 8;  // norms, projections, weights, branch, stream

// Dropout leaves a share of the terms, each as much larger. A sum of relu that attention divides by
// may be a small part of what it was summed of.
constexpr double kGainOfReluSums = 32;
double gain_of(const model::ModelConfig& c) {
  const double dropped = std::max({c.dropout, c.embedding_dropout, c.attention.dropout});
  const bool divides = !c.recurrent() && c.attention.normaliser == ops::Normaliser::relu;
  return (divides ? kGainOfReluSums : 1) / std::sqrt(1 - dropped);
}

// Scores behind a cap: none is above it, nor above the largest of many products of normal numbers.
constexpr double kLargestOfMany = 4;
double capped_scores(const model::ModelConfig& c) {
  double largest = 0;
  if (c.recurrent()) return largest;
  for (const nn::AttentionConfig& a : model::self_attentions(c, false)) {
    const double root = std::sqrt(static_cast<double>(a.width_of_head()));
    const double scores = kLargestOfMany * (a.scale > 0 ? a.scale : 1) * root;
    largest = std::max(largest, std::min(a.softcap, scores));
  }
  return largest;
}

// A layer norm of two columns gives the sign of their difference, an RMS norm of one column its
// own, and where that is nearly 0 it divides by norm_epsilon. Its gradient is what is left of terms
// that cancel up to there, and has the rounding of each of them, of which moved numbers show one or
// two.
constexpr double kTermsOfSigns = 64;
bool takes_sign(const model::ModelConfig& c) {
  if (c.recurrent() && !c.residual) return false;
  const std::int64_t columns = c.norm == nn::NormKind::layer ? 2 : 1;
  if (c.width == columns) return true;
  if (c.qk_norm == nn::QkNorm::none) return false;
  const nn::AttentionConfig a = model::self_attention(c, 0, false);
  const std::int64_t heads = c.qk_norm == nn::QkNorm::head ? 1 : a.key_heads();
  return heads * a.width_of_head() == columns;
}

// Of one result: ε + e · √terms / 4.
double rounding_of_sum(const Way& way, DType dtype) {
  const double summed = epsilon(dtype == DType::f64 ? DType::f64 : DType::f32);
  return epsilon(dtype) + summed * std::sqrt(way.terms) / 4;
}

}  // namespace

double epsilon(DType dtype) {
  switch (dtype) {
    case DType::f32: return 0x1p-23;
    case DType::bf16: return 0x1p-8;
    default: return 0x1p-52;
  }
}

double tolerance(const Way& way, DType dtype, Measure measure) {
  const double safety = measure == Measure::largest ? kSafetyOfLargest : kSafetyOfMean;
  const double summed = epsilon(dtype == DType::f64 ? DType::f64 : DType::f32);
  const double smooth =
      way.gain * safety *
      (std::sqrt(way.roundings) * rounding_of_sum(way, dtype) + summed * way.capped / 4);
  // In f32 and f64 so few terms are that close to a jump that there is none.
  return way.kinks && dtype == DType::bf16 ? smooth + std::sqrt(smooth / 3) : smooth;
}

std::optional<double> allowed_spread(const Allowance& allowance, const std::string& group,
                                     DType dtype, Measure measure) {
  const double largest = allowance.spreads->of(group, dtype, Measure::largest);
  const double mean = allowance.spreads->of(group, dtype, Measure::mean);
  // f64 is so fine that nothing legal comes near. Behind a jump of the derivative single elements
  // may be anything, but few are.
  const bool certain =
      mean <= kMostSpreadOfMean && (largest <= kMostSpreadOfLargest || allowance.way.kinks);
  if (!certain && dtype != DType::f64) return std::nullopt;
  return (measure == Measure::largest ? largest : mean) * allowance.way.cancels *
         rounding_of_sum(allowance.way, dtype) / epsilon(dtype);
}

std::optional<double> allowed(const Allowance& allowance, const std::string& group, DType dtype,
                              Measure measure) {
  const double on_the_way = tolerance(allowance.way, dtype, measure);
  if (allowance.spreads == nullptr) return on_the_way;
  const auto seen = allowed_spread(allowance, group, dtype, measure);
  return seen ? std::optional(std::max(on_the_way, *seen)) : std::nullopt;
}

double slack_of_few(std::int64_t elements) {
  return elements > 0 ? 1 + 1.2 / static_cast<double>(elements) : 1;
}

bool bends_sharply(nn::FfnKind kind) {
  return kind == nn::FfnKind::relu || kind == nn::FfnKind::swiglu_clamped;
}

bool has_kinks(const model::ModelConfig& c) {
  return (!c.recurrent() && bends_sharply(c.ffn)) ||
         c.attention.normaliser == ops::Normaliser::relu ||
         c.head_transform == model::HeadTransform::relu;
}

namespace {

// How much steeper than its scores a cap is at 0: all that passes it is a sign, and its gradient a
// spike that is as narrow.
double steepest_cap(const model::ModelConfig& c) {
  double steepest = 0;
  if (c.recurrent()) return steepest;
  for (const nn::AttentionConfig& a : model::self_attentions(c, false))
    if (a.softcap > 0)
      steepest =
          std::max(steepest, (a.scale > 0 ? a.scale : 1) *
                                 std::sqrt(static_cast<double>(a.width_of_head())) / a.softcap);
  return steepest;
}

}  // namespace

bool comparable(const model::ModelConfig& c, DType dtype) {
  if (dtype == DType::f64) return true;
  if (steepest_cap(c) > 1 / epsilon(dtype)) return false;
  return dtype != DType::bf16 || c.attention.normaliser == ops::Normaliser::softmax;
}

Way way_through(const model::ModelConfig& c) {
  const std::int64_t layers = c.layers + (c.two_stacks() ? c.layers_of_decoder() : 0);
  const std::int64_t tokens = std::max<std::int64_t>(model::positions_of(c), 1);
  Way way;
  way.gain = gain_of(c);
  way.capped = capped_scores(c);
  if (takes_sign(c)) way.cancels = kTermsOfSigns;
  way.roundings = kRoundingsOfLayer * static_cast<double>(layers + 1);
  // A state goes through every token; tanh takes back most of what was before.
  if (c.recurrent()) way.roundings += static_cast<double>(layers * tokens) / 4;
  const std::int64_t widest =
      c.recurrent() ? c.width : std::max(c.width, model::ffn_config(c).hidden);
  way.terms = static_cast<double>(std::max({widest, c.sizes.vocabulary, 3 * tokens}));
  return way;
}

Way there_and_back(const model::ModelConfig& c) {
  Way way = way_through(c);
  way.roundings *= 2;
  way.kinks = has_kinks(c);
  return way;
}

Way way_through_part(double roundings, const model::ModelConfig& c, std::int64_t tokens) {
  Way way = way_through(c);
  way.roundings = roundings;
  way.terms = std::max(way.terms, static_cast<double>(tokens));
  return way;
}

}  // namespace heddle::check
