// Random numbers by counter (Philox4x32-10, Salmon et al. 2011): element i of a random tensor is a
// function of (key, i) alone. There is no generator state, so nothing depends on the number of
// threads or on where a run was resumed.
#pragma once

#include <array>
#include <cstdint>

namespace heddle {

// Names one stream of random numbers: a run's seed, the training step, and the op within the step.
struct RandomKey {
  std::uint64_t seed = 0;
  std::uint32_t step = 0;
  std::uint32_t op = 0;

  friend bool operator==(const RandomKey&, const RandomKey&) = default;
};

using PhiloxBlock = std::array<std::uint32_t, 4>;

// Block `index` of the key's stream: four independent uniform 32-bit numbers.
constexpr PhiloxBlock philox(const RandomKey& key, std::uint64_t index) {
  constexpr std::uint64_t kMul0 = 0xD2511F53u;
  constexpr std::uint64_t kMul1 = 0xCD9E8D57u;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9u;
  constexpr std::uint32_t kWeyl1 = 0xBB67AE85u;
  std::uint32_t c0 = static_cast<std::uint32_t>(index);
  std::uint32_t c1 = static_cast<std::uint32_t>(index >> 32);
  std::uint32_t c2 = key.step;
  std::uint32_t c3 = key.op;
  std::uint32_t k0 = static_cast<std::uint32_t>(key.seed);
  std::uint32_t k1 = static_cast<std::uint32_t>(key.seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = kMul0 * c0;
    const std::uint64_t p1 = kMul1 * c2;
    c0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<std::uint32_t>(p1);
    c2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<std::uint32_t>(p0);
    k0 += kWeyl0;
    k1 += kWeyl1;
  }
  return {c0, c1, c2, c3};
}

// The upper 24 bits as a float in [0, 1).
constexpr float unit_float(std::uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }

}  // namespace heddle
