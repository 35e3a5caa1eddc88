// Which windows of several corpora a training reads, as a function of the seed and of the window's
// number in the run alone.
//
// Windows come in rounds of 4096. Each corpus has its share of a round by its weight, and where in
// the round its windows are is drawn anew for each. A corpus is cut into windows side by side,
// which are gone through in random order: none comes again before all have come.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace heddle::data {

inline constexpr std::int64_t kMixtureRound = 4096;
inline constexpr std::size_t kMostCorpora = 64;

// The windows of a round that each corpus has: in proportion to the weights, to one window; all of
// the round in sum. A weight that is too small for one has none.
std::vector<std::int64_t> mixture_shares(std::span<const double> weights);

// Number i of 0 … count - 1 in random order, without a list of them: a bijection. `stream` is below
// kMostCorpora.
std::int64_t shuffled(std::int64_t i, std::int64_t count, std::uint64_t seed, std::int64_t epoch,
                      std::size_t stream);

class Mixture {
 public:
  struct Place {
    std::size_t corpus = 0;
    std::int64_t begin = 0;  // of the window's tokens
    bool operator==(const Place&) const = default;
  };

  // `tokens` that windows of each corpus may cover; at least `context`.
  Mixture(std::span<const double> weights, std::vector<std::int64_t> tokens, std::int64_t context);

  // Windows number `first` and following of the run.
  std::vector<Place> windows(std::int64_t first, std::int64_t count, std::uint64_t seed) const;

 private:
  Place place_of(std::size_t corpus, std::int64_t number, std::uint64_t seed) const;

  std::vector<std::int64_t> shares_, tokens_;
  std::int64_t context_;
};

}  // namespace heddle::data
