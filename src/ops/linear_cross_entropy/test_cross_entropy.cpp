// What the case table cannot say: refused calls, and that logits are never all in memory.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "heddle/tape.h"
#include "ops/linear_cross_entropy/linear_cross_entropy.h"

namespace heddle {
namespace {

Error refused_with(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e;
  }
  ADD_FAILURE() << "was not refused";
  return {ErrorCode::io, "", "", "", ""};
}

const Tensor kTargets = Tensor::from<std::int64_t>({3}, {0, 4, -100});

TEST(CrossEntropy, NamesATargetOutOfRange) {
  const Tensor z = Tensor::zeros({3, 5});
  for (const std::int64_t bad : {std::int64_t{5}, std::int64_t{-1}}) {
    const Tensor t = Tensor::from<std::int64_t>({3}, {0, bad, -100});
    const Error e = refused_with([&] { ops::cross_entropy(z, t); });
    EXPECT_EQ(e.code(), ErrorCode::out_of_range);
    EXPECT_NE(e.problem().find("position 1"), std::string::npos) << e.what();
    EXPECT_EQ(e.got(), std::to_string(bad));
  }
  ops::CrossEntropyOptions options;
  options.ignore_index = -1;
  EXPECT_EQ(refused_with([&] { ops::cross_entropy(z, kTargets, options); }).code(),
            ErrorCode::out_of_range);
}

TEST(CrossEntropy, RefusesWhatDoesNotFit) {
  const Tensor x = Tensor::zeros({3, 8});
  const Tensor w = Tensor::zeros({5, 8});
  const auto fused = [](const Tensor& a, const Tensor& b, const Tensor& bias, const Tensor& t) {
    return refused_with([&] { ops::linear_cross_entropy(a, b, bias, t); }).code();
  };
  using enum ErrorCode;
  EXPECT_EQ(fused(Tensor(), w, {}, kTargets), invalid_argument);
  EXPECT_EQ(fused(x, Tensor(), {}, kTargets), invalid_argument);
  EXPECT_EQ(fused(x, w, {}, Tensor()), invalid_argument);
  EXPECT_EQ(fused(x, Tensor::zeros({5, 7}), {}, kTargets), shape_mismatch);
  EXPECT_EQ(fused(x, Tensor::zeros({5, 8}, DType::f64), {}, kTargets), dtype_mismatch);
  EXPECT_EQ(fused(x, w, Tensor::zeros({4}), kTargets), shape_mismatch);
  EXPECT_EQ(fused(x, w, {}, Tensor::zeros({3})), dtype_mismatch);
  EXPECT_EQ(fused(x, w, {}, Tensor::zeros({4}, DType::i64)), shape_mismatch);
  EXPECT_EQ(fused(x, w, {}, Tensor::zeros({3}, DType::i64, Device::meta)), device_mismatch);
  ops::CrossEntropyOptions options;
  options.label_smoothing = 1.5;
  const Error e = refused_with([&] { ops::linear_cross_entropy(x, w, {}, kTargets, options); });
  EXPECT_EQ(e.code(), invalid_argument);
  EXPECT_EQ(refused_with([&] { ops::cross_entropy(Tensor::zeros({}), kTargets); }).code(),
            shape_mismatch);
}

// 64k rows of 50257 logits would be 13 GB.
TEST(CrossEntropy, LogitsAreNeverAllInMemory) {
  Tensor x = Tensor::zeros({65536, 64}, DType::bf16, Device::meta);
  Tensor w = Tensor::zeros({50257, 64}, DType::f32, Device::meta);
  const Tensor t = Tensor::zeros({65536}, DType::i32, Device::meta);
  x.set_requires_grad(true);
  w.set_requires_grad(true);
  reset_peak_memory(Device::meta);
  const std::int64_t before = memory_use(Device::meta).live;
  Tape tape;
  tape.backward(ops::linear_cross_entropy(x, w, {}, t));
  EXPECT_LT(memory_use(Device::meta).peak - before, std::int64_t{250} << 20);
}

}  // namespace
}  // namespace heddle
