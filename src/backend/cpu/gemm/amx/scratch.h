// Buffers of a thread while it computes, in the scratch that belongs to it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heddle::cpu::amx {

inline constexpr std::size_t kPackedABytes = std::size_t{1} << 20;
inline constexpr std::size_t kPackedBBytes = std::size_t{1} << 20;
inline constexpr std::size_t kPartialBytes = std::size_t{1} << 20;

struct Scratch {
  std::uint16_t* packed_a = nullptr;  // blocks of A
  std::uint16_t* packed_b = nullptr;  // blocks of B, where a chunk packs its own
  float* partial = nullptr;           // sums between two blocks of K
  float* staging[2] = {};             // finished 32 × 32 sums on their way through the epilogue
  // Which part of A `packed_a` holds, so that chunks of the same rows share it. Jobs count from 1.
  std::uint64_t packed_job = 0;
  std::int64_t packed_unit = 0;
  // The same for `packed_b`.
  std::uint64_t packed_b_job = 0;
  std::int64_t packed_b_unit = 0;
};

// The calling thread's, inside of a parallel section.
Scratch& amx_scratch() noexcept;

// Where products that the calling thread starts keep the sums of a half of K (split_k.h), for the
// i-th of those that run together. Behind what its own chunks use. Throws Error(out_of_memory).
float* room_for_half_sums(std::int64_t i);

}  // namespace heddle::cpu::amx
