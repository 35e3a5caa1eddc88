// Tiles are given back where others could meet them. Needs real tiles.
#include <gtest/gtest.h>

#include "backend/cpu/gemm/amx/small/small.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/probe/probe.h"
#include "backend/cpu/threads.h"
#include "backend/cpu/tiles/tile_state.h"

namespace heddle::cpu {
namespace {

bool has_tiles() {
  for (const Isa isa : available_isas())
    if (isa == Isa::amx) return true;
  return false;
}

// Ones times ones, on tiles.
float product_on_tiles() {
  constexpr std::int64_t kSize = 32, kSteps = 16;
  static std::uint32_t ones[kSize * kSteps];
  for (std::uint32_t& word : ones) word = 0x3f803f80u;
  float c[kSize * kSize];
  amx_small_product({ones, kSteps, ones, kSize, kSize, kSize, kSteps, kSize, c, kSize, false});
  return c[kSize * kSize - 1];
}

TEST(TileState, ASectionGivesTheCallersTilesBack) {
  if (!has_tiles()) GTEST_SKIP() << "needs AMX";
  bool kept_inside = false;
  parallel_chunks(1, [&](std::int64_t) {
    EXPECT_EQ(product_on_tiles(), 32.0f);
    kept_inside = amx::tiles_are_configured();
  });
  EXPECT_TRUE(kept_inside);
  EXPECT_FALSE(amx::tiles_are_configured());
}

TEST(TileState, ProductsGoOnAfterAProbe) {
  if (!has_tiles()) GTEST_SKIP() << "needs AMX";
  for (int i = 0; i < 2; ++i) {
    parallel_chunks(2L * thread_count(),
                    [](std::int64_t) { EXPECT_EQ(product_on_tiles(), 32.0f); });
    peak_flops(ProbeKind::amx_bf16, 0.001);
  }
}

}  // namespace
}  // namespace heddle::cpu
