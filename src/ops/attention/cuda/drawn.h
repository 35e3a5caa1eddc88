// Philox for a kernel that draws many blocks with one key: the numbers of philox()
// (heddle/random.h), proved on the host (test_cuda_layouts.cpp). The keys of the rounds come as
// arguments of the kernel, from where its instructions read them; the compiler would add them up
// for every block, a sixth of the work.
#pragma once

#include <cstdint>

#include "heddle/random.h"

namespace heddle::cuda::attention {

struct PhiloxRounds {
  static constexpr int kRounds = 10;
  std::uint32_t first[kRounds], second[kRounds];
};

constexpr PhiloxRounds rounds_of(std::uint64_t seed) {
  PhiloxRounds r = {};
  for (std::uint32_t i = 0; i < PhiloxRounds::kRounds; ++i) {
    r.first[i] = static_cast<std::uint32_t>(seed) + i * 0x9E3779B9u;
    r.second[i] = static_cast<std::uint32_t>(seed >> 32) + i * 0xBB67AE85u;
  }
  return r;
}

// philox({seed, step, op}, index)
constexpr PhiloxBlock philox_by(const PhiloxRounds& seed, std::uint32_t step, std::uint32_t op,
                                std::uint64_t index) {
  auto c0 = static_cast<std::uint32_t>(index);
  auto c1 = static_cast<std::uint32_t>(index >> 32);
  std::uint32_t c2 = step, c3 = op;
  for (int i = 0; i < PhiloxRounds::kRounds; ++i) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c0, p1 = std::uint64_t{0xCD9E8D57u} * c2;
    c0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ seed.first[i];
    c1 = static_cast<std::uint32_t>(p1);
    c2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ seed.second[i];
    c3 = static_cast<std::uint32_t>(p0);
  }
  return {c0, c1, c2, c3};
}

}  // namespace heddle::cuda::attention
