// Random choices about data. Each kind of choice has a stream of its own, far from those of dropout
// (nn::Pass), so that none repeats another's numbers.
#pragma once

#include <cstdint>
#include <vector>

#include "heddle/random.h"

namespace heddle::data {

enum class Stream : std::uint32_t {
  windows = 0xDA7A0001,  // where windows of a text begin
  order,                 // of the examples of an epoch
  batches,               // order of an epoch's batches
  masks,                 // which tokens are hidden, and by what
  images,                // flips and shifts
  held_out,              // which examples are for validation
  prompts,               // how long the prompts of windows are
  mixture,               // which corpus a window comes from
  walks,                 // the order in which a corpus is gone through
};

// `step` is a training step, an epoch or the number of a window; Error when it is negative or does
// not fit the counter (2^32).
RandomKey stream_key(std::uint64_t seed, std::int64_t step, Stream stream);

// Draw `index` of the key's stream, a number in [0, below); below > 0.
std::uint64_t draw(const RandomKey& key, std::uint64_t index, std::uint64_t below);

// The numbers 0 … count - 1 in random order.
std::vector<std::int64_t> permutation(std::int64_t count, const RandomKey& key);

}  // namespace heddle::data
