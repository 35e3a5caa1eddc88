// Small blocks that were freed are kept for their size, but not for ever.
#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "base/process_memory.h"
#include "base/sanitizers.h"
#include "heddle/tensor.h"

namespace heddle {
namespace {

// A sanitizer keeps nothing here, and what was freed elsewhere.
#if !HEDDLE_SANITIZED_MEMORY
constexpr std::int64_t kBlock = 131072, kMany = 60;  // 0.5 MB each

// Hands 60 blocks out, takes them back, uses one of them again and then asks for one of a new
// size. How many bytes of the process went back by that.
std::int64_t use_blocks(std::int64_t new_size) {
  {
    std::vector<Tensor> many;
    for (std::int64_t i = 0; i < kMany; ++i) many.push_back(Tensor::full({kBlock}, 1));
  }
  Tensor::full({kBlock}, 1);
  trim_heap();
  const std::int64_t before = resident_bytes();
  Tensor::full({new_size}, 1);
  trim_heap();
  return before - resident_bytes();
}

[[noreturn]] void use_blocks_again_and_again() {
  bool freed = true;
  for (const std::int64_t new_size : {90000, 70000, 60000})
    freed = use_blocks(new_size) > (kMany / 2) * kBlock * 4 && freed;
  std::_Exit(freed ? 0 : 1);
}

// In a process of its own: what is kept follows the most that ever was out.
TEST(BlockCacheDeathTest, BlocksThatAreNotAskedForAnyMoreGoBackToTheSystem) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(use_blocks_again_and_again(), testing::ExitedWithCode(0), "");
}
#endif

}  // namespace
}  // namespace heddle
