// A second proof that memory grows linearly, by what the system says a process had in use.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>

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

// The largest resident size, in bytes, of a process of its own that does it; 0: it failed.
double resident_bytes(std::int64_t n, bool additive) {
  const pid_t child = fork();
  if (child == 0) {
    try {
      attend(n, additive);
    } catch (...) {
      _exit(1);
    }
    _exit(0);
  }
  int status = 0;
  rusage usage{};
  if (wait4(child, &status, 0, &usage) != child || status != 0) return 0;
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

class ResidentMemory : public testing::TestWithParam<bool> {};

TEST_P(ResidentMemory, GrowsLinearly) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's memory is not ours";
#endif
  const double base = resident_bytes(64, GetParam());
  const std::int64_t small = GetParam() ? 16384 : 4096, large = 4 * small;
  const double first = resident_bytes(small, GetParam()) - base;
  const double last = resident_bytes(large, GetParam()) - base;
  ASSERT_GT(base, 0);
  ASSERT_GT(first, 0);
  // Beside tensors of whole huge pages a number per pair would be seen: at least 67 MB and 1 GB.
  const double exponent = std::log(last / first) / std::log(4.0);
  EXPECT_LE(exponent, 1.05) << first << " and " << last << " bytes";
}

INSTANTIATE_TEST_SUITE_P(Scores, ResidentMemory, testing::Bool(), [](const auto& additive) {
  return std::string(additive.param ? "additive" : "dot");
});

}  // namespace
}  // namespace heddle::ops
