// What happens on a device that lacks a routine: the reference computes the op, or it is refused.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "heddle/error.h"
#include "heddle/ops.h"
#include "heddle/tape.h"
#include "ops/layer_norm/layer_norm.call.h"
#include "ops/mean_pool/mean_pool.call.h"
#include "ops/reduce/reduce.call.h"
#include "ops/rms_norm/rms_norm.call.h"
#include "ops/softmax/softmax.call.h"
#include "ops/swiglu/swiglu.call.h"
#include "ops/unary/unary.call.h"

namespace heddle::backend {
namespace {

// While it lives, the CPU has no routine for the call.
template <class Call>
class Without {
 public:
  Without() : kept_(routine_of<Call>(Device::cpu)) { add_routine<Call>(Device::cpu, {}); }
  ~Without() { add_routine<Call>(Device::cpu, kept_); }
  Without(const Without&) = delete;
  Without& operator=(const Without&) = delete;

 private:
  Routine<Call> kept_;
};

Tensor drawn(const Shape& shape, std::uint64_t seed) {
  return ops::random_normal(shape, 0, 1, {seed, 1, 2}, DType::f64);
}

using Op = std::function<Tensor(const std::vector<Tensor>&)>;

// The op's result and the gradients of its inputs, one after the other.
std::vector<double> computed(const Op& op, std::vector<Tensor> inputs) {
  for (Tensor& x : inputs) x.set_requires_grad(true);
  Tape tape;
  const Tensor y = op(inputs);
  const Tensor weighted = ops::mul(y, drawn(y.shape(), 99));
  tape.backward(ops::sum_all(weighted));
  std::vector<double> all = y.to_vector<double>();
  for (Tensor& x : inputs) {
    const std::vector<double> grad = x.grad().to_vector<double>();
    all.insert(all.end(), grad.begin(), grad.end());
    x.clear_grad();
    x.set_requires_grad(false);
  }
  return all;
}

template <class Call>
void expect_reference_instead(const char* name, const Op& op, const std::vector<Tensor>& inputs) {
  SCOPED_TRACE(name);
  EXPECT_TRUE(has_routine<Call>(Device::cpu));
  const std::vector<double> fused = computed(op, inputs);
  std::vector<double> plain;
  {
    const Without<Call> without;
    EXPECT_FALSE(has_routine<Call>(Device::cpu));
    EXPECT_FALSE(has_routine<Call>(Device::meta));  // it imitates the CPU
    plain = computed(op, inputs);
  }
  ASSERT_EQ(fused.size(), plain.size());
  for (std::size_t i = 0; i < fused.size(); ++i) EXPECT_NEAR(fused[i], plain[i], 1e-10) << i;
}

TEST(Routines, AnOpWithoutOneIsComputedByItsReference) {
  using In = const std::vector<Tensor>&;
  const Tensor x = drawn({3, 4}, 1), y = drawn({3, 4}, 2), gain = drawn({4}, 3),
               bias = drawn({4}, 4);
  constexpr double kEps = 1e-2;
  expect_reference_instead<ops::SoftmaxCall>("softmax", [](In in) { return ops::softmax(in[0]); },
                                             {x});
  expect_reference_instead<ops::SoftmaxCall>("log_softmax",
                                             [](In in) { return ops::log_softmax(in[0]); }, {x});
  expect_reference_instead<ops::SwigluCall>(
      "swiglu", [](In in) { return ops::swiglu(in[0], in[1]); }, {x, y});
  expect_reference_instead<ops::SwigluCall>("swiglu of both",
                                            [](In in) { return ops::swiglu(in[0]); }, {x});
  expect_reference_instead<ops::RmsNormCall>(
      "rms_norm", [](In in) { return ops::rms_norm(in[0], in[1], kEps); }, {x, gain});
  expect_reference_instead<ops::RmsNormCall>(
      "add_rms_norm", [](In in) { return ops::add_rms_norm(in[0], in[1], in[2], kEps).y; },
      {x, y, gain});
  expect_reference_instead<ops::LayerNormCall>(
      "layer_norm", [](In in) { return ops::layer_norm(in[0], in[1], in[2], kEps); },
      {x, gain, bias});
  expect_reference_instead<ops::LayerNormCall>(
      "add_layer_norm",
      [](In in) { return ops::add_layer_norm(in[0], in[1], in[2], in[3], kEps).y; },
      {x, y, gain, bias});
  const Tensor mask = Tensor::from<std::uint8_t>({2, 3}, {1, 0, 1, 0, 1, 0});
  expect_reference_instead<ops::MeanPoolCall>(
      "mean_pool", [&mask](In in) { return ops::mean_pool(in[0], mask); }, {drawn({2, 3, 4}, 5)});
}

// Wrong arguments are refused as such, whoever would have computed.
TEST(Routines, AReferenceIsNoWayAroundTheChecks) {
  const Tensor x = drawn({3, 4}, 1);
  const Without<ops::RmsNormCall> without;
  EXPECT_THROW(ops::rms_norm(x, drawn({5}, 2), 1e-2), Error);
  EXPECT_THROW(ops::rms_norm(x, {}, -1), Error);
}

TEST(Routines, ACallThatNobodyComputesIsRefusedByName) {
  const Tensor x = drawn({3}, 1);
  const Without<ops::UnaryCall> without;
  try {
    ops::exp(x);
    ADD_FAILURE() << "computed";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::unsupported);
    EXPECT_NE(std::string(e.what()).find("unary"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("cpu"), std::string::npos) << e.what();
  }
}

// The plan of a call runs on the meta device too. A sum over 200,000 elements in blocks of 16,384
// has 13 partial sums.
TEST(Routines, AMetaDevicePlansTheWorkspaceOfTheDeviceItImitates) {
  const auto partial_of = [](Device device) {
    const Tensor x = Tensor::zeros({200000}, DType::f32, device);
    Tensor y = Tensor::empty({1}, DType::f32, device);
    ops::ReduceCall call{ops::Reduce::sum, {1, 200000, 1}, 1, x, y};
    routine_of<ops::ReduceCall>(device).plan(call);
    EXPECT_EQ(call.partial.device(), device);
    return call.partial.shape();
  };
  EXPECT_EQ(partial_of(Device::cpu), (Shape{1, 13, 1}));
  EXPECT_EQ(partial_of(Device::meta), (Shape{1, 13, 1}));
}

}  // namespace
}  // namespace heddle::backend
