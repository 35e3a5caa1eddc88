// Packed layouts, for one set of register operations `Ops`.
//
// K is cut into units: `pair` neighbouring elements that one lane of a multiply-add consumes (one
// f32, one f64, or two bf16), and into k-blocks of kBlockLines cache lines of units.
//
//   packed B   [k-block][panel of kColumns][unit][kColumns]    a row of a panel = kVectors loads
//   packed A   [panel of kRows][line of kLineUnits units][row][unit in line], or
//              [panel of kRows][unit][kAcross]                 from an A that is column-major
//
// A packed B that is kept may be held in fewer bytes than the kernel computes with (Ops::Stored,
// bf16 instead of f32): tiles widen it as they load, or read a panel that was widened for many of
// them.
//
// A is read by broadcasts of single units, in either order: packing it is copying, not transposing.
// B is padded with zeros to whole panels and whole units, A to whole lines.
//
// Everything in this folder's headers is a template over an Ops type that lives in an unnamed
// namespace of the file for its instruction set. So no function compiled with special flags has a
// name that other files could link to.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/gemm/kernels.h"
#include "base/divide.h"

namespace heddle::cpu {

template <class Ops>
struct Layout {
  using Element = typename Ops::Element;
  using Stored = typename Ops::Stored;
  using Sum = typename Ops::Sum;

  static constexpr std::int64_t kPair = Ops::kPair;
  static constexpr std::int64_t kRows = Ops::kRows;
  static constexpr std::int64_t kLanes = Ops::kLanes;
  static constexpr std::int64_t kVectors = Ops::kVectors;
  static constexpr std::int64_t kColumns = kLanes * kVectors;
  // A CRange begins at a multiple of this, also within a panel: few wide panels would not be shared
  // out evenly.
  static constexpr std::int64_t kColumnStep = kLanes * (kVectors < 2 ? kVectors : 2);
  static constexpr std::int64_t kUnitBytes = kPair * static_cast<std::int64_t>(sizeof(Element));
  static constexpr std::int64_t kLineUnits = kLineBytes / kUnitBytes;
  static constexpr std::int64_t kLineElements = kLineUnits * kPair;
  static constexpr std::int64_t kBlockDepth = kBlockLines * kLineElements;
  // Rows of a packed column-major panel: a power of two, so that they share few cache lines.
  static constexpr std::int64_t kAcross = kRows <= 4 ? 4 : kRows <= 8 ? 8 : 16;
  static constexpr bool kNarrow =
      sizeof(Stored) < sizeof(Element);  // is packed B held in fewer bytes?
  static constexpr std::int64_t kTileSums = kRows * kColumns;

  static_assert(kBlockRows % kRows == 0 && kRows <= kAcross);
  static_assert(kAcross * 3 <= kRows * 4, "kScratchABytes allows for a third of padding");

  static constexpr std::int64_t min(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
  static constexpr std::int64_t units(std::int64_t k) { return ceil_div(k, kPair); }
  static constexpr std::int64_t panels(std::int64_t n) { return ceil_div(n, kColumns); }
  static constexpr std::int64_t depth_blocks(std::int64_t k) { return ceil_div(k, kBlockDepth); }
  // Elements of K in block `b`.
  static constexpr std::int64_t depth_of(std::int64_t k, std::int64_t b) {
    return min(kBlockDepth, k - b * kBlockDepth);
  }

  // Where the column `column` of k-block `b` begins in packed B, in elements.
  static constexpr std::int64_t b_offset(std::int64_t k, std::int64_t n, std::int64_t b,
                                         std::int64_t column) {
    return b * kBlockDepth * panels(n) * kColumns + column / kColumns * b_panel(depth_of(k, b)) +
           column % kColumns * kPair;
  }

  // Elements of one panel of packed B with `depth` elements of K.
  static constexpr std::int64_t b_panel(std::int64_t depth) {
    return units(depth) * kPair * kColumns;
  }

  // Elements of one panel of packed A with `depth` elements of K.
  static constexpr std::int64_t a_panel(std::int64_t depth) {
    return ceil_div(depth, kLineElements) * kLineElements * kRows;
  }
  static constexpr std::int64_t a_panel_across(std::int64_t depth) {
    return ceil_div(depth, kLineElements) * kLineElements * kAcross;
  }
};

}  // namespace heddle::cpu
