// Products for which another one of cuBLASLt's heuristics than the first is faster: measured once
// (H200, version 13.1, all of the first ten in turns, medians of five rounds) and written down,
// never timed when a program runs, so that a product has the same bits everywhere. Sums of few
// terms are what the first heuristic is wrong about: it takes kernels whose two warpgroups share a
// tile and write it while nobody multiplies, where two tiles in turns would hide that.
#pragma once

#include <array>
#include <cstdint>

namespace heddle::cuda {

enum class LtRole : std::uint8_t { forward, input_gradient, weight_gradient };

// A product as the library is asked for it.
struct LtShape {
  LtRole role = LtRole::forward;
  std::int64_t m = 0, n = 0, k = 0;
  bool adds = false;  // to what y holds
};

// Numbers of the library's: the tile, its own option and the shape of a cluster.
struct LtChoice {
  std::int32_t tile = 0, custom = 0;
  std::uint16_t cluster = 0;

  bool operator==(const LtChoice&) const = default;
};

struct LtMeasured {
  LtShape shape;  // m: from this many rows on
  LtChoice choice;
};

inline constexpr std::array kLtMeasured = {
    // GPT-2's smallest: microseconds of the first heuristic and of this one, for 32,768 rows
    LtMeasured{{LtRole::forward, 16384, 768, 768}, {20, 1, 3}},               // 61.1, 58.2
    LtMeasured{{LtRole::forward, 16384, 3072, 768}, {29, 1, 3}},              // 221, 203
    LtMeasured{{LtRole::input_gradient, 16384, 768, 768}, {29, 1, 3}},        // 61.3, 57.6
    LtMeasured{{LtRole::input_gradient, 16384, 768, 768, true}, {20, 1, 3}},  // 71.5, 62.0
    LtMeasured{{LtRole::input_gradient, 16384, 3072, 768}, {29, 1, 3}},       // 261, 218
    LtMeasured{{LtRole::forward, 2048, 50304, 768}, {201, 2, 5}},             // 531, 452: 4096 rows
    // width 384, for 16,384 rows
    LtMeasured{{LtRole::forward, 8192, 1536, 384}, {201, 2, 5}},        // 36.4, 31.3
    LtMeasured{{LtRole::input_gradient, 8192, 1536, 384}, {29, 3, 5}},  // 42.9, 34.9
};

// The fastest choice measured for the shape; null: take the first heuristic.
constexpr const LtChoice* measured_choice(const LtShape& s) {
  for (const LtMeasured& entry : kLtMeasured) {
    const LtShape& e = entry.shape;
    if (e.role == s.role && e.n == s.n && e.k == s.k && e.adds == s.adds && s.m >= e.m)
      return &entry.choice;
  }
  return nullptr;
}

static_assert(measured_choice({LtRole::forward, 32768, 768, 768})->tile == 20);
static_assert(measured_choice({LtRole::forward, 32, 768, 768}) == nullptr);
static_assert(measured_choice({LtRole::weight_gradient, 768, 768, 32768}) == nullptr);

}  // namespace heddle::cuda
