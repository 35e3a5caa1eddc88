// Philox4x32-10 on vectors, for kernels (see simd.h): the same numbers as philox() of
// heddle/random.h, many blocks at a time.
#pragma once

#include "backend/cpu/simd.h"
#include "heddle/random.h"

namespace heddle::cpu::HEDDLE_ISA {

// The part that does not depend on the counter: ten round keys and two upper counter words.
struct PhiloxKeys {
  explicit PhiloxKeys(const RandomKey& key) : step(key.step), op(key.op) {
    auto low = static_cast<std::uint32_t>(key.seed);
    auto high = static_cast<std::uint32_t>(key.seed >> 32);
    for (int round = 0; round < 10; ++round) {
      k0[round] = low;
      k1[round] = high;
      low += 0x9E3779B9u;
      high += 0xBB67AE85u;
    }
  }

  std::uint64_t k0[10], k1[10];
  std::uint64_t step, op;
};

// Whether vectors are single numbers: the instruction set of the generic build.
template <class D>
inline constexpr bool kOneLane = hn::MaxLanes(D{}) == 1;

// The four words of block `index`, one number at a time.
HWY_INLINE void philox_block(const PhiloxKeys& keys, std::uint64_t index, std::uint32_t* out) {
  constexpr std::uint64_t kLow = 0xffffffffu;
  std::uint64_t c0 = index & kLow, c1 = index >> 32, c2 = keys.step, c3 = keys.op;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = c0 * 0xD2511F53u;
    const std::uint64_t p1 = c2 * 0xCD9E8D57u;
    c0 = (p1 >> 32) ^ c1 ^ keys.k0[round];
    c1 = p1 & kLow;
    c2 = (p0 >> 32) ^ c3 ^ keys.k1[round];
    c3 = p0 & kLow;
  }
  out[0] = static_cast<std::uint32_t>(c0);
  out[1] = static_cast<std::uint32_t>(c1);
  out[2] = static_cast<std::uint32_t>(c2);
  out[3] = static_cast<std::uint32_t>(c3);
}

// Groups of as many blocks as d has lanes, in their order. A lane of 64 bits holds one word of one
// block in its lower half; the upper half is never looked at, so that no round has to clean it.
// `blocks` holds block k in lane 2k and block lanes / 2 + k in lane 2k + 1: interleaving the
// results then leaves all words in the order of the blocks. Several groups in step: a round waits
// for the one before, and the processor does not look as far ahead as the next group.
template <int Groups, class D>
HWY_INLINE void philox_groups(D d, const PhiloxKeys& keys, Vec<D> blocks, std::uint32_t* out) {
  const hn::Repartition<std::uint32_t, D> d32;
  const auto m0 = hn::BitCast(d32, hn::Set(d, std::uint64_t{0xD2511F53u}));
  const auto m1 = hn::BitCast(d32, hn::Set(d, std::uint64_t{0xCD9E8D57u}));
  Vec<D> c0[Groups], c1[Groups], c2[Groups], c3[Groups];
  for (int g = 0; g < Groups; ++g) {
    c0[g] = hn::Add(blocks, hn::Set(d, static_cast<std::uint64_t>(g * lanes(d))));
    c1[g] = hn::ShiftRight<32>(c0[g]);
    c2[g] = hn::Set(d, keys.step);
    c3[g] = hn::Set(d, keys.op);
  }
  for (int round = 0; round < 10; ++round) {
    const auto k0 = hn::Set(d, keys.k0[round]);
    const auto k1 = hn::Set(d, keys.k1[round]);
    for (int g = 0; g < Groups; ++g) {
      const auto p0 = hn::MulEven(hn::BitCast(d32, c0[g]), m0);
      const auto p1 = hn::MulEven(hn::BitCast(d32, c2[g]), m1);
      c0[g] = hn::Xor3(hn::ShiftRight<32>(p1), c1[g], k0);
      c1[g] = p1;
      c2[g] = hn::Xor3(hn::ShiftRight<32>(p0), c3[g], k1);
      c3[g] = p0;
    }
  }
  // (c0, c1) and (c2, c3) of a block side by side. Names without hn:: do not exist for one lane,
  // where this is never instantiated.
  for (int g = 0; g < Groups; ++g, out += 4 * lanes(d)) {
    const auto a = hn::BitCast(
        d, hn::OddEven(hn::BitCast(d32, hn::ShiftLeft<32>(c1[g])), hn::BitCast(d32, c0[g])));
    const auto b = hn::BitCast(
        d, hn::OddEven(hn::BitCast(d32, hn::ShiftLeft<32>(c3[g])), hn::BitCast(d32, c2[g])));
    hn::StoreU(hn::BitCast(d32, InterleaveLower(d, a, b)), d32, out);
    hn::StoreU(hn::BitCast(d32, InterleaveUpper(d, a, b)), d32, out + 2 * lanes(d));
  }
}

// Writes the words of `blocks` blocks from number `first` on, and up to kPhiloxOverrun words more.
inline constexpr std::int64_t kPhiloxOverrun = 4 * (HWY_MAX_BYTES / 8);

template <class D>
HWY_INLINE void philox_words(D d, const PhiloxKeys& keys, std::uint64_t first, std::int64_t blocks,
                             std::uint32_t* out) {
  if constexpr (kOneLane<D>) {
    for (std::int64_t b = 0; b < blocks; ++b)
      philox_block(keys, first + static_cast<std::uint64_t>(b), out + 4 * b);
  } else {
    const std::int64_t n = lanes(d);
    HWY_ALIGN std::uint64_t order[kMaxLanes<D>];
    for (std::int64_t i = 0; i < n; ++i)
      order[i] = static_cast<std::uint64_t>(i % 2 == 0 ? i / 2 : n / 2 + i / 2);
    const auto lane = hn::Load(d, order);
    const auto at = [&](std::int64_t b) {
      return hn::Add(lane, hn::Set(d, first + static_cast<std::uint64_t>(b)));
    };
    constexpr int kGroups = 4;
    std::int64_t b = 0;
    for (; b + kGroups * n <= blocks; b += kGroups * n)
      philox_groups<kGroups>(d, keys, at(b), out + 4 * b);
    for (; b < blocks; b += n) philox_groups<1>(d, keys, at(b), out + 4 * b);
  }
}

// Calls f(at, words, count) for pieces of the elements [begin, end), kPiece long (a multiple of 4):
// words[j] is the word of element at + j. Element i has word i % 4 of block i / 4; begin must be a
// multiple of 4.
template <std::int64_t kPiece = 1024, class F>
HWY_INLINE void for_random_words(const PhiloxKeys& keys, std::int64_t begin, std::int64_t end,
                                 F f) {
  HWY_ALIGN std::uint32_t words[kPiece + kPhiloxOverrun];
  for (std::int64_t at = begin; at < end; at += kPiece) {
    const std::int64_t count = end - at < kPiece ? end - at : kPiece;
    philox_words(hn::ScalableTag<std::uint64_t>(), keys, static_cast<std::uint64_t>(at) / 4,
                 (count + 3) / 4, words);
    f(at, words, count);
  }
}

// The upper 24 bits of a vector of words, as whole numbers in the compute type.
template <class D>
HWY_INLINE Vec<D> upper_bits(D d, const std::uint32_t* words) {
  const hn::Rebind<std::uint32_t, D> du;
  const hn::Rebind<std::int32_t, D> di;
  const auto bits = hn::BitCast(di, hn::ShiftRight<8>(hn::LoadU(du, words)));
  if constexpr (sizeof(hn::TFromD<D>) == 8)
    return hn::PromoteTo(d, bits);
  else
    return hn::ConvertTo(d, bits);
}

}  // namespace heddle::cpu::HEDDLE_ISA
