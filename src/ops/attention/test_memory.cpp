// A second proof that memory grows linearly, by what the system says a process had in use.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "bench/resident.h"
#include "heddle/ops.h"
#include "heddle/tape.h"

namespace heddle::ops {
namespace {

// Forward and backward over n tokens. The additive score, which is slow, has a window.
void attend(std::int64_t n, bool additive) {
  const auto random = [&](std::int64_t width, std::uint32_t stream) {
    return random_normal({1, n, 1, width}, 0, 1, {1, 0, stream}).set_requires_grad(true);
  };
  const Tensor q = random(additive ? 2 : 32, 1), k = random(additive ? 2 : 32, 2),
               v = random(32, 3);
  const Tensor w = random_normal({1, 2}, 0, 1, {1, 0, 4});
  AttentionOptions options;
  options.mask.causal = true;
  if (additive) options.mask.look_back = 100;
  Tape tape;
  const Tensor y = additive ? additive_attention(q, k, w, v, options) : attention(q, k, v, options);
  const Tensor dy = Tensor::full(y.shape(), 1);
  tape.backward(std::span(&y, 1), std::span(&dy, 1));
}

// What the child below is told by: a fork would begin with the memory of all tests before.
constexpr const char* kCase = "HEDDLE_TEST_RESIDENT";

// The largest resident size, in bytes, of a process of its own that does it; 0: it failed.
double resident_bytes(std::int64_t n, bool additive) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command = std::string(kCase) + "='" + std::to_string(n) + " " +
                              std::to_string(additive ? 1 : 0) + "' '" + self +
                              "' --gtest_also_run_disabled_tests" +
                              " --gtest_filter=ResidentMemoryChild.DISABLED_Attends";
  std::FILE* const output = popen(command.c_str(), "r");
  if (output == nullptr) return 0;
  double bytes = 0;
  std::array<char, 256> line{};
  while (std::fgets(line.data(), static_cast<int>(line.size()), output) != nullptr)
    if (std::sscanf(line.data(), "resident %lf", &bytes) == 1) break;
  while (std::fgets(line.data(), static_cast<int>(line.size()), output) != nullptr) {
  }
  return pclose(output) == 0 ? bytes : 0;
}

// Not a test of its own: it runs in the processes that the tests below start.
TEST(ResidentMemoryChild, DISABLED_Attends) {
  const char* const what = std::getenv(kCase);
  if (what == nullptr) GTEST_SKIP() << "started by ResidentMemory";
  long long n = 0;
  int additive = 0;
  ASSERT_EQ(std::sscanf(what, "%lld %d", &n, &additive), 2);
  attend(n, additive != 0);
  std::printf("resident %.0f\n", static_cast<double>(bench::resident_peak()));
}

class ResidentMemory : public testing::TestWithParam<bool> {};

TEST_P(ResidentMemory, GrowsLinearly) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's memory is not ours";
#endif
  const double base = resident_bytes(64, GetParam());
  const std::int64_t small = GetParam() ? 16384 : 4096, large = 8 * small;
  const double first = resident_bytes(small, GetParam()) - base;
  const double last = resident_bytes(large, GetParam()) - base;
  ASSERT_GT(base, 0);
  ASSERT_GT(first, 0);
  // Beside tensors of whole huge pages a number per pair would be seen: at least 67 MB and 4 GB.
  const double exponent = std::log(last / first) / std::log(8.0);
  EXPECT_LE(exponent, 1.05) << first << " and " << last << " bytes";
}

INSTANTIATE_TEST_SUITE_P(Scores, ResidentMemory, testing::Bool(), [](const auto& additive) {
  return std::string(additive.param ? "additive" : "dot");
});

}  // namespace
}  // namespace heddle::ops
