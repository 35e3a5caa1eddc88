// A device that lacks a routine: the reference computes the op, or it is refused.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backend/test_without.h"
#include "heddle/error.h"
#include "ops/adamw/adamw.call.h"
#include "ops/clip_grad/clip_grad.call.h"
#include "ops/glu/glu.call.h"
#include "ops/mean_pool/mean_pool.call.h"
#include "ops/norm/norm.call.h"
#include "ops/reduce/reduce.call.h"
#include "ops/sgd/sgd.call.h"
#include "ops/softmax/softmax.call.h"
#include "ops/unary/unary.call.h"

namespace heddle::backend {
namespace {

TEST(Routines, AnOpWithoutOneIsComputedByItsReference) {
  using In = const std::vector<Tensor>&;
  const Tensor x = drawn({3, 4}, 1), y = drawn({3, 4}, 2), gain = drawn({4}, 3),
               bias = drawn({4}, 4);
  constexpr double kEps = 1e-2;
  expect_reference_instead<ops::SoftmaxCall>("softmax", [](In in) { return ops::softmax(in[0]); },
                                             {x});
  expect_reference_instead<ops::SoftmaxCall>("log_softmax",
                                             [](In in) { return ops::log_softmax(in[0]); }, {x});
  expect_reference_instead<ops::GluCall>("glu", [](In in) { return ops::glu(in[0], in[1]); },
                                         {x, y});
  expect_reference_instead<ops::GluCall>("glu of both", [](In in) { return ops::glu(in[0]); }, {x});
  expect_reference_instead<ops::NormCall>(
      "rms_norm", [](In in) { return ops::rms_norm(in[0], in[1], kEps); }, {x, gain});
  expect_reference_instead<ops::NormCall>(
      "add_rms_norm", [](In in) { return ops::add_rms_norm(in[0], in[1], in[2], kEps).y; },
      {x, y, gain});
  expect_reference_instead<ops::NormCall>(
      "layer_norm", [](In in) { return ops::layer_norm(in[0], in[1], in[2], kEps); },
      {x, gain, bias});
  expect_reference_instead<ops::NormCall>(
      "add_layer_norm",
      [](In in) { return ops::add_layer_norm(in[0], in[1], in[2], in[3], kEps).y; },
      {x, y, gain, bias});
  const Tensor mask = Tensor::from<std::uint8_t>({2, 3}, {1, 0, 1, 0, 1, 0});
  expect_reference_instead<ops::MeanPoolCall>(
      "mean_pool", [&mask](In in) { return ops::mean_pool(in[0], mask); }, {drawn({2, 3, 4}, 5)});
}

// One step of each optimiser and a norm, from the same numbers: their results.
std::vector<double> optimised() {
  const Tensor grads[] = {drawn({3, 4}, 1), drawn({5}, 2)};
  const Tensor norm = ops::global_norm(grads);
  const Tensor scale = ops::clip_scale(norm, 0.5, std::span(&norm, 1));
  Tensor w = drawn({3, 4}, 3), m = drawn({3, 4}, 4), v = ops::square(m), b = drawn({3, 4}, 5);
  ops::adamw(w, grads[0], m, v, {.step = 3, .grad_scale = scale});
  ops::sgd(w, grads[0], b, {.momentum = 0.9, .weight_decay = 0.1, .grad_scale = scale});
  ops::scale_into(b, 3);
  std::vector<double> all = {norm.item(), scale.item()};
  for (const Tensor& x : {w, m, v, b})
    for (const double value : x.to_vector<double>()) all.push_back(value);
  return all;
}

TEST(Routines, OptimisersWithoutOneAreComputedByTheirReferences) {
  const std::vector<double> fused = optimised();
  const Without<ops::AdamWCall> adamw;
  const Without<ops::SgdCall> sgd;
  const Without<ops::GlobalNormCall> norm;
  const Without<ops::ClipScaleCall> scale;
  const Without<ops::ScaleIntoCall> into;
  const std::vector<double> plain = optimised();
  ASSERT_EQ(fused.size(), plain.size());
  for (std::size_t i = 0; i < fused.size(); ++i) EXPECT_NEAR(fused[i], plain[i], 1e-13) << i;
}

// Wrong arguments are refused as such, whoever would have computed.
TEST(Routines, AReferenceIsNoWayAroundTheChecks) {
  const Tensor x = drawn({3, 4}, 1);
  const Without<ops::NormCall> without;
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
