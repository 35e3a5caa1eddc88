#include "data/order/mixture.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <numeric>
#include <utility>

#include "data/order/draw.h"

namespace heddle::data {
namespace {

constexpr int kRounds = 6;  // of the Feistel network; four would do for numbers that pass tests

// The corpus of each window of a round.
std::vector<std::size_t> corpora_of_round(const std::vector<std::int64_t>& shares,
                                          std::int64_t round, std::uint64_t seed) {
  std::vector<std::size_t> ordered;
  for (std::size_t corpus = 0; corpus < shares.size(); ++corpus)
    ordered.insert(ordered.end(), static_cast<std::size_t>(shares[corpus]), corpus);
  std::vector<std::size_t> drawn;
  drawn.reserve(ordered.size());
  for (const std::int64_t slot : permutation(static_cast<std::int64_t>(ordered.size()),
                                             stream_key(seed, round, Stream::mixture)))
    drawn.push_back(ordered[static_cast<std::size_t>(slot)]);
  return drawn;
}

}  // namespace

// By the largest remainders; of equal ones the first.
std::vector<std::int64_t> mixture_shares(std::span<const double> weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<std::int64_t> shares;
  std::vector<std::pair<double, std::size_t>> rest;
  std::int64_t given = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double exact = weights[i] / sum * static_cast<double>(kMixtureRound);
    shares.push_back(static_cast<std::int64_t>(exact));
    rest.emplace_back(static_cast<double>(shares.back()) - exact, i);
    given += shares.back();
  }
  std::ranges::sort(rest);
  for (std::size_t i = 0; given < kMixtureRound && i < rest.size(); ++i, ++given)
    ++shares[rest[i].second];
  return shares;
}

// A Feistel network over the next power of four, walked until it is back below `count`.
std::int64_t shuffled(std::int64_t i, std::int64_t count, std::uint64_t seed, std::int64_t epoch,
                      std::size_t stream) {
  if (count <= 1) return 0;
  const RandomKey key = stream_key(seed, epoch, Stream::walks);
  const int half = (std::bit_width(static_cast<std::uint64_t>(count - 1)) + 1) / 2;
  const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
  auto number = static_cast<std::uint64_t>(i);
  do {
    std::uint64_t left = number >> half, right = number & mask;
    for (std::uint64_t round = 0; round < kRounds; ++round) {
      const PhiloxBlock random = philox(key, (right * 8 + round) * kMostCorpora + stream);
      const std::uint64_t bits = (std::uint64_t{random[1]} << 32) | random[0];
      left = std::exchange(right, left ^ (bits & mask));
    }
    number = (left << half) | right;
  } while (number >= static_cast<std::uint64_t>(count));
  return static_cast<std::int64_t>(number);
}

Mixture::Mixture(std::span<const double> weights, std::vector<std::int64_t> tokens,
                 std::int64_t context)
    : shares_(mixture_shares(weights)), tokens_(std::move(tokens)), context_(context) {}

std::vector<Mixture::Place> Mixture::windows(std::int64_t first, std::int64_t count,
                                             std::uint64_t seed) const {
  std::vector<Place> places;
  std::int64_t round = -1;
  std::vector<std::size_t> corpora;
  std::vector<std::int64_t> before;  // windows of each corpus in this round so far
  for (std::int64_t number = first; number < first + count; ++number) {
    const std::int64_t slot = number % kMixtureRound;
    if (number / kMixtureRound != round) {
      round = number / kMixtureRound;
      corpora = corpora_of_round(shares_, round, seed);
      before.assign(shares_.size(), 0);
      for (std::int64_t i = 0; i < slot; ++i) ++before[corpora[static_cast<std::size_t>(i)]];
    }
    const std::size_t corpus = corpora[static_cast<std::size_t>(slot)];
    places.push_back(place_of(corpus, round * shares_[corpus] + before[corpus]++, seed));
  }
  return places;
}

// Where the tokens are no whole number of windows, the first one begins anywhere in what is left
// over, another place each time.
Mixture::Place Mixture::place_of(std::size_t corpus, std::int64_t number,
                                 std::uint64_t seed) const {
  const std::int64_t windows = tokens_[corpus] / context_;
  const std::int64_t epoch = number / windows;
  const std::int64_t window = shuffled(number % windows, windows, seed, epoch, corpus);
  const auto over = static_cast<std::uint64_t>(tokens_[corpus] % context_);
  const RandomKey key = stream_key(seed, epoch, Stream::mixture);
  const std::uint64_t shift = draw(key, (std::uint64_t{1} << 32) + corpus, over + 1);
  return {corpus, static_cast<std::int64_t>(shift) + window * context_};
}

}  // namespace heddle::data
