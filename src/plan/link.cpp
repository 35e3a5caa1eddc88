#include "plan/link.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>
#include <string_view>

#include "base/divide.h"
#include "distributed/reduce.h"
#include "heddle/error.h"

namespace heddle::plan {

namespace {

struct Suffix {
  std::string_view text;
  double factor;
};
constexpr std::array kPowers = {Suffix{"", 1},    Suffix{"k", 1e3}, Suffix{"K", 1e3},
                                Suffix{"M", 1e6}, Suffix{"G", 1e9}, Suffix{"T", 1e12},
                                Suffix{"P", 1e15}};
constexpr std::array kTimes = {Suffix{"s", 1}, Suffix{"ms", 1e-3}, Suffix{"us", 1e-6},
                               Suffix{"µs", 1e-6}, Suffix{"ns", 1e-9}};

// What an option may say: a number and one of these, within limits.
struct Amount {
  std::span<const Suffix> suffixes;
  double least, most;
  const char* problem;
  const char* expected;
};

double parse_amount(std::string_view given, const Amount& amount, const std::string& text,
                    const std::string& option) {
  double number = 0;
  const auto parsed = std::from_chars(given.data(), given.data() + given.size(), number);
  const std::string_view rest = given.substr(static_cast<std::size_t>(parsed.ptr - given.data()));
  if (parsed.ec == std::errc())
    for (const Suffix& suffix : amount.suffixes) {
      const double value = number * suffix.factor;
      if (rest == suffix.text && value >= amount.least && value <= amount.most) return value;
    }
  fail(ErrorCode::invalid_argument, option, amount.problem, amount.expected, "\"" + text + "\"");
}

}  // namespace

double parse_bits_per_s(const std::string& text, const std::string& option) {
  std::string_view number = text;
  if (number.ends_with("B") || number.ends_with("B/s"))
    fail(ErrorCode::invalid_argument, option, "is in bytes, and a link is told in bits a second",
         "bits a second, eight times as many: 80G for 10 gigabytes a second", "\"" + text + "\"");
  for (const std::string_view unit : {"bit/s", "bits/s", "bps", "b/s", "bit", "b"})
    if (number.ends_with(unit)) {
      number.remove_suffix(unit.size());
      break;
    }
  return parse_amount(number,
                      {kPowers, 1e3, 1e15, "is not the speed of a link",
                       "bits a second from 1k to 1000T, as in 10G, 400G or 100M"},
                      text, option);
}

double parse_seconds(const std::string& text, const std::string& option) {
  return parse_amount(
      text, {kTimes, 0, 10, "is not a time", "a number with its unit, to 10 s: 2us, 1.5ms or 0s"},
      text, option);
}

double parse_flops_per_s(const std::string& text, const std::string& option) {
  return parse_amount(text,
                      {kPowers, 1e6, 1e18, "is not a speed of arithmetic",
                       "FLOP a second from 1M to 1000P, as in 500G, 20T or 1P"},
                      text, option);
}

// Buffers hold kBufferElements on each side, of which those for the rank itself are not sent. Two
// more exchanges are small: the length of the gradient, and the losses.
Talk talk_of(std::int64_t sent_bytes, int ranks) {
  if (ranks <= 1) return {};
  const std::int64_t others = ranks - 1;
  const std::int64_t buffer =
      distributed::kBufferElements * static_cast<std::int64_t>(sizeof(float)) / ranks * others;
  const std::int64_t exchanges = ceil_div(sent_bytes, buffer) + 2;
  return {sent_bytes, exchanges, 2 * exchanges * others};
}

double seconds_on(const Link& link, const Talk& talk) {
  return static_cast<double>(talk.bytes) * (8 / link.bits_per_s + 1 / kBufferRate) +
         static_cast<double>(talk.exchanges) * link.latency +
         static_cast<double>(talk.messages) * kMessageSeconds;
}

namespace {

StepTime step_time(const Link& link, const RankWork& work, std::int64_t ranks, double whole) {
  return {whole * work.share, seconds_on(link, talk_of(work.sent_bytes, static_cast<int>(ranks)))};
}

// The configuration with as many parts as so many ranks need.
recipe::TrainConfig config_for(recipe::TrainConfig config, int ranks) {
  if (config.parts && *config.parts >= ranks) return config;
  if (!config.parts && ranks == 1) return config;
  config.accumulate = std::max<std::int64_t>(
      1, std::min(config.accumulate,
                  config.batch / std::max<std::int64_t>(ranks, recipe::kUsualParts)));
  config.parts = recipe::usual_parts(config, ranks);
  return config;
}

}  // namespace

Scaling scaling_on(const Link& link, const recipe::Recipe& recipe, int ranks, double compute) {
  const RankWork own = rank_work(recipe.model, recipe.train, ranks);
  const double whole = compute / own.share;
  Scaling found{.here = step_time(link, own, ranks, whole)};
  double shortest = whole;
  bool pays = true;
  constexpr std::int64_t kMostRanks = 4096;  // as train.parts
  for (std::int64_t n = 2; n <= std::min(recipe.train.batch, kMostRanks); n *= 2) {
    const auto count = static_cast<int>(n);
    const recipe::TrainConfig config = config_for(recipe.train, count);
    const double step = step_time(link, rank_work(recipe.model, config, count), n, whole).seconds();
    // tokens/s of a rank there : tokens/s of one alone = (1 / (n · step)) : (1 / whole)
    pays = pays && whole >= 0.5 * static_cast<double>(n) * step;
    if (pays) found.pays_to = n;
    if (step < shortest) {
      shortest = step;
      found.fastest = n;
    }
    found.tried = n;
  }
  return found;
}

}  // namespace heddle::plan
