#include "generate/decode/sampling/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "base/number_text.h"
#include "heddle/error.h"
#include "heddle/random.h"

namespace heddle::generate {

namespace {

constexpr std::string_view kSampler = "sampler";
constexpr std::uint32_t kSamplingOp = 0x53414D50;  // keeps these numbers apart from training's

void require(bool ok, std::string_view option, std::string_view expected, double got) {
  if (!ok)
    fail(ErrorCode::invalid_argument, kSampler, "option " + std::string(option), expected,
         number_text(got));
}

// 53 random bits in [0, 1).
double unit_double(const RandomKey& key, std::uint64_t index) {
  const PhiloxBlock bits = philox(key, index);
  const std::uint64_t high = bits[0] >> 5;  // 27 bits
  const std::uint64_t low = bits[1] >> 6;   // 26 bits
  return static_cast<double>((high << 26) | low) * 0x1p-53;
}

[[noreturn]] void refuse_score(std::size_t token, float score) {
  fail(ErrorCode::invalid_argument, kSampler, "score of token " + std::to_string(token),
       "a finite number or -inf", number_text(score));
}

// Drops what `stays` does not keep, from both lists. The order stays.
template <class Kept, class Stays>
void filter(std::vector<Kept>& kept, std::vector<double>& weights, const Stays& stays) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (!stays(weights[i])) continue;
    kept[count] = kept[i];
    weights[count++] = weights[i];
  }
  kept.resize(count);
  weights.resize(count);
}

}  // namespace

void validate(const SamplingOptions& o) {
  require(o.temperature >= 0 && std::isfinite(o.temperature), "temperature",
          "0 (the best token) or more", o.temperature);
  require(o.top_k >= 0, "top_k", "0 (all tokens) or more", static_cast<double>(o.top_k));
  require(o.top_p > 0 && o.top_p <= 1, "top_p", "more than 0, at most 1 (all tokens)", o.top_p);
  require(o.min_p >= 0 && o.min_p <= 1, "min_p", "0 (all tokens) to 1", o.min_p);
  require(o.repetition_penalty > 0 && std::isfinite(o.repetition_penalty), "repetition_penalty",
          "more than 0; 1 is none", o.repetition_penalty);
  require(std::isfinite(o.presence_penalty), "presence_penalty", "a number; 0 is none",
          o.presence_penalty);
  require(std::isfinite(o.frequency_penalty), "frequency_penalty", "a number; 0 is none",
          o.frequency_penalty);
  for (const LogitBias& b : o.logit_bias) {
    require(b.bias < std::numeric_limits<double>::infinity(), "logit_bias",
            "numbers, or -inf for a token that is never written", b.bias);
    require(std::ranges::count(o.logit_bias, b.token, &LogitBias::token) == 1, "logit_bias",
            "each token once", b.token);
  }
}

namespace {

constexpr std::size_t kPiece = 1024;

// The largest of them; +inf if one is NaN. Eight at a time without a branch: a vocabulary has tens
// of thousands, and a fast device waits for this before its next token.
float most_of(std::span<const float> scores) {
  constexpr std::size_t kLanes = 8;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::array<float, kLanes> most;
  most.fill(-kInfinity);
  const auto take = [](float& lane, float v) {
    const float known = v < kInfinity ? v : kInfinity;
    lane = lane > known ? lane : known;
  };
  std::size_t i = 0;
  for (; i + kLanes <= scores.size(); i += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane) take(most[lane], scores[i + lane]);
  for (; i < scores.size(); ++i) take(most[0], scores[i]);
  return *std::ranges::max_element(most);
}

}  // namespace

std::int32_t best_token(std::span<const float> logits) {
  if (logits.empty()) fail(ErrorCode::invalid_argument, kSampler, "scores", "one or more", "none");
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  float best = -kInfinity;
  std::span<const float> among;  // the first piece with the best
  for (std::size_t first = 0; first < logits.size(); first += kPiece) {
    const auto piece = logits.subspan(first, std::min(kPiece, logits.size() - first));
    const float most = most_of(piece);
    // NaN and +inf: the first of them is named.
    if (!(most < kInfinity))
      for (std::size_t i = 0; i < piece.size(); ++i)
        if (!(piece[i] < kInfinity)) refuse_score(first + i, piece[i]);
    if (most > best) best = most, among = piece;
  }
  if (best == -kInfinity)
    fail(ErrorCode::invalid_argument, kSampler, "scores", "at least one that is finite",
         "nothing but -inf");
  return static_cast<std::int32_t>(std::ranges::find(among, best) - among.begin() +
                                   (among.data() - logits.data()));
}

Sampler::Sampler(const SamplingOptions& options) : options_(options) { validate(options_); }

namespace {

// The score of a token, which must be one of the model's.
float& score_of(std::vector<float>& scores, std::int32_t token, std::string_view what) {
  if (token < 0 || static_cast<std::size_t>(token) >= scores.size())
    fail(ErrorCode::out_of_range, kSampler, what, "0 to " + std::to_string(scores.size() - 1),
         std::to_string(token));
  return scores[static_cast<std::size_t>(token)];
}

}  // namespace

// Once for each token, however often it was there.
void Sampler::penalise_repetition(std::span<const std::int32_t> tokens) {
  const auto penalty = static_cast<float>(options_.repetition_penalty);
  seen_.assign(changed_.size(), false);
  for (const std::int32_t token : tokens) {
    float& score = score_of(changed_, token, "token of the history");
    if (seen_[static_cast<std::size_t>(token)]) continue;
    seen_[static_cast<std::size_t>(token)] = true;
    score = score > 0 ? score / penalty : score * penalty;
  }
}

void Sampler::penalise_written(std::span<const std::int32_t> tokens) {
  counts_.assign(changed_.size(), 0);
  for (const std::int32_t token : tokens) {
    score_of(changed_, token, "token of the history");
    ++counts_[static_cast<std::size_t>(token)];
  }
  for (std::size_t i = 0; i < counts_.size(); ++i)
    if (counts_[i] > 0)
      changed_[i] -=
          static_cast<float>(options_.presence_penalty + options_.frequency_penalty * counts_[i]);
}

// The scores after biases and penalties.
std::span<const float> Sampler::changed(std::span<const float> logits, const History& history) {
  const bool repetition = options_.repetition_penalty != 1 && !history.tokens.empty();
  const auto written = history.tokens.subspan(std::min(history.prompt, history.tokens.size()));
  const bool again =
      (options_.presence_penalty != 0 || options_.frequency_penalty != 0) && !written.empty();
  if (!repetition && !again && options_.logit_bias.empty()) return logits;
  changed_.assign(logits.begin(), logits.end());
  for (const LogitBias& b : options_.logit_bias)
    score_of(changed_, b.token, "option logit_bias") += static_cast<float>(b.bias);
  if (repetition) penalise_repetition(history.tokens);
  if (again) penalise_written(written);
  return changed_;
}

// The `count` best, by id.
void Sampler::keep_top(std::span<const float> logits, std::size_t count) {
  kept_.clear();
  kept_.reserve(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i)
    if (logits[i] > -std::numeric_limits<float>::infinity())
      kept_.push_back({logits[i], static_cast<std::int32_t>(i)});
  if (count >= kept_.size()) return;
  std::nth_element(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(count), kept_.end(),
                   [](const Scored& a, const Scored& b) {
                     return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
                   });
  kept_.resize(count);
  std::sort(kept_.begin(), kept_.end(),
            [](const Scored& a, const Scored& b) { return a.token < b.token; });
}

// The smallest set of the best tokens whose weights reach the share top_p of all. It is usually
// small, so the order is found for the best 32, then 128, and so on, rather than for all.
void Sampler::keep_nucleus(double total) {
  const double enough = options_.top_p * total;
  std::vector<std::size_t> order(kept_.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  // kept_ is by id: of equal scores the lower place is the better.
  const auto better = [&](std::size_t a, std::size_t b) {
    return kept_[a].logit != kept_[b].logit ? kept_[a].logit > kept_[b].logit : a < b;
  };
  double sum = 0;
  std::size_t count = 0;
  for (std::size_t sorted = 0, size = 32; count < order.size() && sum < enough; size *= 4) {
    const std::size_t end = std::min(size, order.size());
    std::partial_sort(order.begin() + static_cast<std::ptrdiff_t>(sorted),
                      order.begin() + static_cast<std::ptrdiff_t>(end), order.end(), better);
    sorted = end;
    while (count < sorted && sum < enough) sum += weights_[order[count++]];
  }
  std::vector<bool> stays(kept_.size(), false);
  for (std::size_t i = 0; i < std::max<std::size_t>(count, 1); ++i) stays[order[i]] = true;
  std::size_t place = 0;
  filter(kept_, weights_, [&](double) { return bool(stays[place++]); });
}

double Sampler::keep(std::span<const float> logits) {
  const std::size_t all = logits.size();
  const auto best = static_cast<std::size_t>(best_token(logits));  // refuses what cannot be drawn
  const bool greedy = options_.temperature == 0;
  if (greedy) {
    kept_.assign(1, {logits[best], static_cast<std::int32_t>(best)});
    weights_.assign(1, 1.0);
    return 1;
  }
  keep_top(logits, options_.top_k == 0 ? all : static_cast<std::size_t>(options_.top_k));
  weights_.resize(kept_.size());
  double total = 0;
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    const double below = static_cast<double>(kept_[i].logit) - static_cast<double>(logits[best]);
    weights_[i] = std::exp(below / options_.temperature);
    total += weights_[i];
  }
  if (options_.top_p < 1) keep_nucleus(total);
  // The best weighs exp(0) = 1.
  if (options_.min_p > 0)
    filter(kept_, weights_, [&](double weight) { return weight >= options_.min_p; });
  total = 0;
  for (const double weight : weights_) total += weight;
  return total;
}

std::int32_t Sampler::draw(std::span<const float> logits, const History& history,
                           const DrawPlace& place) {
  const double total = keep(changed(logits, history));
  if (kept_.size() == 1) return kept_[0].token;
  const RandomKey key{options_.seed, place.stream, kSamplingOp};
  const double target = unit_double(key, static_cast<std::uint64_t>(place.position)) * total;
  double sum = 0;
  std::size_t last = 0;
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    if (weights_[i] == 0) continue;  // too improbable for a double: never drawn
    sum += weights_[i];
    last = i;
    if (target < sum) break;
  }
  return kept_[last].token;
}

std::vector<Candidate> Sampler::distribution(std::span<const float> logits,
                                             const History& history) {
  const double total = keep(changed(logits, history));
  std::vector<Candidate> result;
  result.reserve(kept_.size());
  for (std::size_t i = 0; i < kept_.size(); ++i)
    result.push_back({kept_[i].token, weights_[i] / total});
  return result;
}

}  // namespace heddle::generate
