// Memory grows linearly with the tokens, for every score, forward and backward: by the byte
// accounting, and by what the system says a process had in use.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include "base/process_memory.h"
#include "base/sanitizers.h"
#include "heddle/memory.h"
#include "nn/attention/test_support.h"

namespace heddle::nn {
namespace {

constexpr std::array<std::int64_t, 6> kLengths = {1024, 2048, 4096, 8192, 16384, 32768};
constexpr std::array kScores = {Score::scaled_dot, Score::multiplicative, Score::concat,
                                Score::additive};

// b of the line log(bytes) = a + b · log(tokens) with the least squares.
double growth(const std::function<double(std::int64_t)>& bytes) {
  double mean_x = 0, mean_y = 0, xy = 0, xx = 0;
  std::vector<std::pair<double, double>> points;
  for (const std::int64_t n : kLengths) {
    points.emplace_back(std::log(static_cast<double>(n)), std::log(bytes(n)));
    mean_x += points.back().first / kLengths.size();
    mean_y += points.back().second / kLengths.size();
  }
  for (const auto& [x, y] : points) {
    xy += (x - mean_x) * (y - mean_y);
    xx += (x - mean_x) * (x - mean_x);
  }
  return xy / xx;
}

TEST(MemoryGrowth, IsTheExponent) {
  EXPECT_NEAR(growth([](std::int64_t n) { return 7.0 * static_cast<double>(n); }), 1, 1e-12);
  // A single byte for every hundred pairs would be seen.
  EXPECT_GT(growth([](std::int64_t n) {
              const auto x = static_cast<double>(n);
              return 1000 * x + 0.01 * x * x;
            }),
            1.05);
}

// Narrow heads, so that 32,768 tokens take seconds, in a wide model, so that 1,024 of them take
// megabytes.
AttentionConfig long_layer(Score score, const Position& position = NoPosition{}) {
  AttentionConfig c;
  c.width = 256;
  c.heads = 2;
  c.kv_heads = 1;
  c.head_width = 8;
  c.score = score;
  if (score == Score::additive) c.score_width = 1;
  c.causal = true;
  c.position = position;
  return c;
}

void forward_and_backward(const AttentionConfig& c, std::int64_t n, DType dtype, Device device) {
  const Attention layer = make_attention(c, parameter_type(dtype), device);
  Tensor x = Tensor::full({1, n, c.width}, 0.1, dtype, device);
  x.set_requires_grad(true);
  const Tensor dy = Tensor::full(x.shape(), 1, dtype, device);
  Tape tape;
  const Tensor y = layer.forward(x);
  tape.backward(std::span(&y, 1), std::span(&dy, 1));
}

// On the meta device, whose bytes are those of the CPU (CostsTheSameOnTheMetaDevice).
TEST(MemoryGrowth, IsLinearByTheAccounting) {
  for (const Score score : kScores)
    for (const Position& position : {Position(NoPosition{}), Position(T5Position{}),
                                     Position(AlibiPosition{}), Position(RopePosition{})})
      for (const DType dtype : {DType::f32, DType::bf16}) {
        const AttentionConfig c = long_layer(score, position);
        if (!refusal([&] { validate(c); }).empty()) continue;
        const double exponent = growth([&](std::int64_t n) {
          reset_peak_memory(Device::meta);
          const std::int64_t before = memory_use(Device::meta).live;
          forward_and_backward(c, n, dtype, Device::meta);
          return static_cast<double>(memory_use(Device::meta).peak - before);
        });
        EXPECT_LE(exponent, 1.05) << to_string(score) << ", " << to_string(position) << ", "
                                  << to_string(dtype);
        EXPECT_GE(exponent, 0.8);  // something is measured
      }
}

// Tells the child process below its case: a fork would begin with the memory of earlier tests.
constexpr const char* kResidentCase = "HEDDLE_TEST_RESIDENT";

// The largest resident size, in bytes, of a process of its own that does it; 0: it failed.
double resident_bytes(Score score, std::int64_t n) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command = std::string(kResidentCase) + "='" + std::to_string(n) + " " +
                              std::to_string(static_cast<int>(score)) + "' '" + self +
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
  const char* const what = std::getenv(kResidentCase);
  if (what == nullptr) GTEST_SKIP() << "started by ResidentMemory";
  long long n = 0;
  int score = 0;
  ASSERT_EQ(std::sscanf(what, "%lld %d", &n, &score), 2);
  forward_and_backward(long_layer(static_cast<Score>(score)), n, DType::f32, Device::cpu);
  std::printf("resident %.0f\n", static_cast<double>(resident_peak()));
}

class ResidentMemory : public testing::TestWithParam<Score> {};

TEST_P(ResidentMemory, GrowsLinearly) {
#if HEDDLE_SANITIZED_MEMORY
  GTEST_SKIP() << "a sanitizer's memory is not ours";
#endif
  const double base = resident_bytes(GetParam(), 64);
  ASSERT_GT(base, 0);
  std::string all;
  const double exponent = growth([&](std::int64_t n) {
    const double bytes = resident_bytes(GetParam(), n) - base;
    all += " " + std::to_string(static_cast<std::int64_t>(bytes));
    return bytes;
  });
  EXPECT_LE(exponent, 1.05) << "bytes:" << all;  // a number per pair would be 4 GB more
  EXPECT_GE(exponent, 0.8) << "bytes:" << all;
}

INSTANTIATE_TEST_SUITE_P(Scores, ResidentMemory, testing::ValuesIn(kScores), [](const auto& score) {
  std::string name(to_string(score.param));
  std::erase(name, '-');
  return name;
});

}  // namespace
}  // namespace heddle::nn
