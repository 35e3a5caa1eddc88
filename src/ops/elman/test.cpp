#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "harness/harness.h"
#include "harness/values.h"
#include "ops/elman/elman.h"
#include "ops/elman/elman.kernels.h"
#include "ops/unary/unary.h"

namespace heddle::harness::elman_cases {
namespace {

struct Variant {
  std::string name;
  bool h0 = false, lengths = false, reverse = false;
  bool y = true, last = true;  // which results are used
};

// A state of standard normal inputs and weights of that size would forget nothing and saturate:
// the recurrent weight is made smaller, as it is in use.
Tensor contracted(const Tensor& u) {
  return ops::scale(u, 0.7 / std::sqrt(static_cast<double>(std::max<std::int64_t>(u.size(0), 1))));
}

void add(const Variant& v, const Shape& shape, std::vector<double> lengths = {}) {
  Case c;
  c.op = "elman";
  c.name = v.name + " " + to_string(shape);
  c.inputs = {act(shape), param({shape[2], shape[2]})};
  if (v.h0) c.inputs.push_back(act({shape[0], shape[2]}));
  if (v.lengths)
    c.inputs.push_back(
        given_index({shape[0]}, std::move(lengths), v.reverse ? DType::i32 : DType::i64));
  const auto options = [v](std::span<const Tensor> in) {
    ops::ElmanOptions o;
    if (v.h0) o.h0 = in[2];
    if (v.lengths) o.lengths = in[v.h0 ? 3 : 2];
    o.reverse = v.reverse;
    return o;
  };
  const auto used = [v](const ops::ElmanResult& r) {
    Tensors out;
    if (v.y) out.push_back(r.y);
    if (v.last) out.push_back(r.last);
    return out;
  };
  c.run = [options, used](std::span<const Tensor> in) {
    return used(ops::elman(in[0], contracted(in[1]), options(in)));
  };
  c.reference = [options, used](std::span<const Tensor> in) {
    return used(ops::reference::elman(in[0], contracted(in[1]), options(in)));
  };
  // Sums over the width in each step, and over all steps of all sequences for U.
  c.reduction = shape[2] + shape[0] * shape[1];
  // A state is rounded at every step and goes on: what one step loses, some later ones see too.
  c.slack = 4;
  add_case(c);
}

const bool registered = [] {
  for (const Shape& shape : {Shape{1, 1, 1}, Shape{2, 5, 7}, Shape{3, 1, 33}, Shape{0, 3, 4},
                             Shape{2, 0, 3}, Shape{17, 9, 40}, Shape{33, 20, 65}}) {
    add({.name = "plain"}, shape);
    add({.name = "from h0", .h0 = true}, shape);
    add({.name = "reverse", .reverse = true}, shape);
    add({.name = "reverse from h0", .h0 = true, .reverse = true}, shape);
  }
  // More rows than one product of the recurrent gradient takes.
  add({.name = "long", .h0 = true}, {9, 600, 5});
  // Columns instead of rows are shared out.
  add({.name = "wide", .h0 = true}, {2, 3, 400});
  for (const bool reverse : {false, true}) {
    const std::string way = reverse ? "reverse " : "";
    add({.name = way + "lengths", .lengths = true, .reverse = reverse}, {4, 6, 9}, {3, 6, 0, 1});
    add({.name = way + "lengths and h0", .h0 = true, .lengths = true, .reverse = reverse},
        {5, 7, 35}, {2, 0, 7, 7, 4});
    add({.name = way + "lengths below T", .h0 = true, .lengths = true, .reverse = reverse},
        {3, 6, 10}, {2, 4, 3});
    add({.name = way + "only y", .h0 = true, .lengths = true, .reverse = reverse, .last = false},
        {3, 4, 8}, {4, 1, 2});
    add({.name = way + "only last", .h0 = true, .lengths = true, .reverse = reverse, .y = false},
        {3, 4, 8}, {4, 1, 2});
    std::vector<double> many;
    for (int i = 0; i < 37; ++i) many.push_back((i * 7) % 14);
    add({.name = way + "many lengths", .h0 = true, .lengths = true, .reverse = reverse},
        {37, 13, 48}, many);
  }

  using K = cpu::ElmanKernels;
  using G = cpu::ElmanGradientKernels;
  add_kernel_mutant<K>("elman", "h0 is not looked at", [](K& k) {
    k.forward = [](const cpu::ElmanArgs& a) noexcept {
      cpu::ElmanArgs b = a;
      b.h0 = nullptr;
      sound<K>().forward(b);
    };
  });
  add_kernel_mutant<K>("elman", "the direction is not looked at", [](K& k) {
    k.forward = [](const cpu::ElmanArgs& a) noexcept {
      cpu::ElmanArgs b = a;
      b.scan.reverse = false;
      sound<K>().forward(b);
    };
  });
  add_kernel_mutant<G>("elman", "the cotangent of the last state is dropped", [](G& k) {
    k.backward = [](const cpu::ElmanBackwardArgs& a) noexcept {
      cpu::ElmanBackwardArgs b = a;
      b.dlast = nullptr;
      sound<G>().backward(b);
    };
  });
  add_kernel_mutant<G>("elman", "back through time in the wrong direction", [](G& k) {
    k.backward = [](const cpu::ElmanBackwardArgs& a) noexcept {
      cpu::ElmanBackwardArgs b = a;
      b.scan.reverse = !a.scan.reverse;
      sound<G>().backward(b);
    };
  });
  add_kernel_mutant<G>("elman", "U's gradient forgets h0", [](G& k) {
    k.previous = [](const cpu::ElmanPreviousArgs& a) noexcept {
      cpu::ElmanPreviousArgs b = a;
      b.h0 = nullptr;
      sound<G>().previous(b);
    };
  });
  add_kernel_mutant<G>("elman", "U's gradient takes the states after the steps", [](G& k) {
    k.previous = [](const cpu::ElmanPreviousArgs& a) noexcept {
      cpu::ElmanPreviousArgs b = a;
      b.scan.reverse = !a.scan.reverse;
      sound<G>().previous(b);
    };
  });
  return true;
}();

// A longer batch around a sequence changes nothing about it, to the bit.
TEST(elman_padding, ChangesNothing) {
  const Tensor u = ops::scale(make_tensor({24, 24}, DType::f32, normals(576, 3)), 0.15);
  const std::vector<double> values = normals(3 * 8 * 24, 1);
  const Tensor all = make_tensor({3, 8, 24}, DType::f32, values);
  const std::vector<std::int64_t> lengths{5, 8, 3};
  for (const bool reverse : {false, true}) {
    ops::ElmanOptions options;
    options.reverse = reverse;
    options.lengths = Tensor::from<std::int64_t>({3}, std::span<const std::int64_t>(lengths));
    const ops::ElmanResult padded = ops::elman(all, u, options);
    options.lengths = {};
    for (std::int64_t b = 0; b < 3; ++b) {
      const std::int64_t n = lengths[static_cast<std::size_t>(b)];
      const Tensor alone = views::slice(views::slice(all, 0, b, b + 1), 1, 0, n);
      const ops::ElmanResult r = ops::elman(alone, u, options);
      EXPECT_EQ(to_doubles(r.y),
                to_doubles(views::slice(views::slice(padded.y, 0, b, b + 1), 1, 0, n)));
      EXPECT_EQ(to_doubles(r.last), to_doubles(views::slice(padded.last, 0, b, b + 1)));
      for (const double v : to_doubles(views::slice(views::slice(padded.y, 0, b, b + 1), 1, n, 8)))
        EXPECT_EQ(v, 0);
    }
  }
}

TEST(elman_calls, WrongOnesAreRefused) {
  const Tensor pre = Tensor::zeros({2, 3, 4});
  const Tensor u = Tensor::zeros({4, 4});
  EXPECT_THROW(ops::elman({}, u), Error);
  EXPECT_THROW(ops::elman(pre, {}), Error);
  EXPECT_THROW(ops::elman(Tensor::zeros({2, 4}), u), Error);
  EXPECT_THROW(ops::elman(Tensor::zeros({2, 3, 4}, DType::i32), u), Error);
  EXPECT_THROW(ops::elman(pre, Tensor::zeros({4, 3})), Error);
  EXPECT_THROW(ops::elman(pre, Tensor::zeros({4, 4}, DType::bf16)), Error);
  EXPECT_THROW(ops::elman(pre, Tensor::zeros({4, 4}, DType::f32, Device::meta)), Error);
  EXPECT_THROW(ops::elman(pre, u, {.h0 = Tensor::zeros({3, 4})}), Error);
  EXPECT_THROW(ops::elman(pre, u, {.h0 = Tensor::zeros({2, 4}, DType::bf16)}), Error);
  EXPECT_THROW(ops::elman(pre, u, {.lengths = Tensor::zeros({2})}), Error);
  EXPECT_THROW(ops::elman(pre, u, {.lengths = Tensor::from<std::int64_t>({3}, {1, 1, 1})}), Error);
  EXPECT_THROW(ops::elman(pre, u, {.lengths = Tensor::from<std::int64_t>({2}, {1, 4})}), Error);
  EXPECT_THROW(ops::elman(pre, u, {.lengths = Tensor::from<std::int64_t>({2}, {-1, 3})}), Error);
  EXPECT_NO_THROW(ops::elman(pre, u, {.lengths = Tensor::from<std::int64_t>({2}, {0, 3})}));
}

}  // namespace
}  // namespace heddle::harness::elman_cases
