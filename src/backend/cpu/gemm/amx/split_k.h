// Split-K: small products that sum over many k, such as the gradient of a small weight: Σ over all
// tokens.
//
// Cut by rows or columns of C, every thread would read all tokens, half of which are in the cache
// of the thread that wrote them. So their K is summed in two halves, each usually by the thread
// that wrote those tokens (threads cut the rows of other ops in halves, too). C is cut into pieces,
// and the sums of a piece, which are fewer bytes than its operands, are added by the thread that
// finishes second: s1 + s2 and s2 + s1 are the same bits. Whether K is cut, and where, depends on
// the shape and on the epilogue (only plain sums are cut), and so do the bits of the result.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "backend/cpu/gemm/amx/plan.h"
#include "backend/cpu/gemm/gemm.h"

namespace heddle::cpu::amx {

inline constexpr std::size_t kHalfSumBytes = std::size_t{256} << 10;  // of C at most

bool sums_in_halves(const GemmJob& job) noexcept;

enum class Half : std::uint8_t { first = 1, second = 2 };

// The halves of the pieces of C that are there.
class Meeting {
 public:
  // Before a half of a piece is computed: is the other one there?
  bool other_is_there(Half half, std::int64_t piece) const noexcept {
    return other(half, done_[at(piece)].load(std::memory_order_acquire));
  }
  // A half is written; is the other one there now? Both are told of one another or one of them is.
  bool arrive(Half half, std::int64_t piece) noexcept {
    const auto bit = static_cast<std::uint8_t>(half);
    return other(half, done_[at(piece)].fetch_or(bit, std::memory_order_acq_rel));
  }

 private:
  static std::size_t at(std::int64_t piece) noexcept { return static_cast<std::size_t>(piece); }
  static bool other(Half half, std::uint8_t done) noexcept {
    return (done & ~static_cast<std::uint8_t>(half)) != 0;
  }
  std::array<std::atomic<std::uint8_t>, kMostOwnUnits> done_{};
};

// A job whose K is summed in halves: the first go to its C, the second to `sums`, m × n floats,
// unless their other half is there already and they are added to it on their way.
class HalvedProduct {
 public:
  HalvedProduct(const GemmJob& job, float* sums, int threads) noexcept;

  // Of one B that an earlier product has packed in halves, too.
  void share_own_b(const HalvedProduct& before) noexcept;

  // The first halves of all pieces, then the second ones, from the last to the first piece: of two
  // threads that run in step each finds the other's half of a piece when it comes to it.
  std::int64_t chunks() const noexcept { return 2 * first_.chunks; }
  using RunChunk = void (*)(const Plan&, std::int64_t) noexcept;
  void run(std::int64_t chunk, RunChunk run_chunk) noexcept;

 private:
  Plan added(Half half) const noexcept;
  void add_sums(std::int64_t piece) const noexcept;

  Plan first_, second_;
  GemmJob job_;
  float* sums_;
  Meeting meeting_;
};

}  // namespace heddle::cpu::amx
