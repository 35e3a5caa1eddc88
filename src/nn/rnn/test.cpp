#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "heddle/ops.h"
#include "heddle/tape.h"
#include "nn/attention/test_support.h"
#include "nn/rnn/stack.h"

namespace heddle::nn {
namespace {

// A layer by the book, in plain numbers: h_t = tanh(W x_t + b + U h_{t-1}) for one sequence.
std::vector<Doubles> by_the_book(const std::vector<Doubles>& xs, const std::vector<Tensor>& p,
                                 Doubles h) {
  const Doubles w = doubles(p[0]), b = doubles(p[1]), u = doubles(p[2]);
  const std::size_t width = b.size(), inputs = xs[0].size();
  std::vector<Doubles> out;
  for (const Doubles& x : xs) {
    Doubles next(width);
    for (std::size_t n = 0; n < width; ++n) {
      double sum = b[n];
      for (std::size_t k = 0; k < inputs; ++k) sum += w[n * inputs + k] * x[k];
      for (std::size_t k = 0; k < width; ++k) sum += u[n * width + k] * h[k];
      next[n] = std::tanh(sum);
    }
    h = next;
    out.push_back(next);
  }
  return out;
}

std::vector<Doubles> rows_of(const Tensor& x, std::int64_t b, std::int64_t length) {
  std::vector<Doubles> rows;
  for (std::int64_t t = 0; t < length; ++t)
    rows.push_back(doubles(ops::slice(ops::slice(x, 0, b, b + 1), 1, t, t + 1)));
  return rows;
}

// All parameters of a store, none of them zero.
std::vector<Tensor> randomise(Parameters& store) {
  std::vector<Tensor> out;
  std::uint32_t stream = 50;
  for (Parameter& p : store.all()) {
    if (p.tensor.rank() == 1) ops::copy_into(p.tensor, normal(p.tensor.shape(), 0.5, ++stream));
    out.push_back(p.tensor);
  }
  return out;
}

TEST(Elman, IsTheNetworkOfTheBookBothWays) {
  Parameters store({.seed = 5, .dtype = DType::f64});
  const BiElman layer({.inputs = 5, .width = 6}, store.root());
  const std::vector<Tensor> p = randomise(store);
  ASSERT_EQ(p.size(), 6u);
  EXPECT_EQ(store.all()[0].name, "forward.in.weight");
  EXPECT_EQ(store.all()[5].name, "backward.recurrent.weight");
  const Tensor x = normal({2, 4, 5}, 1, 1);
  const ops::ElmanResult r = layer.forward(x, integers({2}, {4, 3}));
  for (const std::int64_t b : {0, 1}) {
    const std::int64_t length = b == 0 ? 4 : 3;
    std::vector<Doubles> xs = rows_of(x, b, length);
    const auto ahead = by_the_book(xs, {p[0], p[1], p[2]}, Doubles(3, 0));
    std::reverse(xs.begin(), xs.end());
    auto back = by_the_book(xs, {p[3], p[4], p[5]}, Doubles(3, 0));
    std::reverse(back.begin(), back.end());
    const auto rows = rows_of(r.y, b, length);
    for (std::size_t t = 0; t < rows.size(); ++t) {
      Doubles expected = ahead[t];
      expected.insert(expected.end(), back[t].begin(), back[t].end());
      EXPECT_LE(distance(rows[t], expected), 1e-14) << b << " " << t;
    }
    Doubles expected = ahead.back();
    expected.insert(expected.end(), back.front().begin(), back.front().end());
    EXPECT_LE(distance(doubles(ops::slice(r.last, 0, b, b + 1)), expected), 1e-14);
  }
}

TEST(Elman, GoesOnFromAState) {
  for (const bool norm : {false, true}) {
    ElmanStackConfig config{.layers = 3, .width = 6};
    if (norm) config.norm = NormConfig{.kind = NormKind::layer, .width = 6};
    Parameters store({.seed = 5, .dtype = DType::f64});
    const ElmanStack stack(config, store.root());
    randomise(store);
    const Tensor x = normal({2, 7, 6}, 1, 1);
    const NoGrad no_grad;
    const ElmanStackResult all = stack.forward(x, {}, {.precision = DType::f64});
    std::vector<Tensor> states = stack.zero_states(2, DType::f64, Device::cpu);
    std::int64_t done = 0;
    for (const std::int64_t n : {1, 4, 2}) {
      const ElmanStackResult r =
          stack.forward(ops::slice(x, 1, done, done + n), {}, {.precision = DType::f64}, states);
      EXPECT_LE(distance(doubles(r.y), doubles(ops::slice(all.y, 1, done, done + n))), 1e-14);
      states = r.last;
      done += n;
    }
    for (std::size_t i = 0; i < states.size(); ++i)
      EXPECT_LE(distance(doubles(states[i]), doubles(all.last[i])), 1e-14);
  }
}

TEST(Elman, TheRecurrentWeightBeginsOrthogonalUnlessARuleIsAskedFor) {
  for (const std::int64_t n : {1, 2, 33, 130}) {
    Parameters store({.seed = 7});
    const Tensor u = store.root().recurrent_weight("u", n);
    EXPECT_EQ(u.dtype(), DType::f32);
    const Tensor wide = ops::cast(u.detach(), DType::f64);
    const Doubles gram = doubles(ops::matmul(wide, ops::transpose(wide, 0, 1)));
    for (std::int64_t i = 0; i < n * n; ++i)
      EXPECT_NEAR(gram[static_cast<std::size_t>(i)], i % (n + 1) == 0 ? 1 : 0, 1e-6) << n;
  }
  Parameters same({.seed = 7}), other({.seed = 8});
  Parameters again({.seed = 7});
  EXPECT_EQ(doubles(same.root().recurrent_weight("u", 9)),
            doubles(again.root().recurrent_weight("u", 9)));
  EXPECT_NE(doubles(same.root().recurrent_weight("v", 9)),
            doubles(other.root().recurrent_weight("v", 9)));
  Parameters plain({.seed = 7, .init = {.rule = InitRule::normal, .deviation = 0.01}});
  EXPECT_LE(largest(doubles(plain.root().recurrent_weight("u", 9))), 0.06);
}

TEST(Elman, WrongOnesAreRefused) {
  Parameters store({.seed = 5});
  EXPECT_THROW(ElmanLayer({.inputs = 0, .width = 4}, store.root() / "a"), Error);
  EXPECT_THROW(ElmanLayer({.inputs = 4, .width = 0}, store.root() / "b"), Error);
  EXPECT_THROW(BiElman({.inputs = 4, .width = 5}, store.root() / "c"), Error);
  EXPECT_THROW(ElmanStack({.layers = 0, .width = 4}, store.root() / "d"), Error);
  const ElmanStack both({.layers = 1, .width = 4, .both_ways = true}, store.root() / "e");
  const ElmanStack one({.layers = 2, .width = 4}, store.root() / "f");
  const Tensor x = Tensor::zeros({2, 3, 4});
  const std::vector<Tensor> states = {Tensor::zeros({2, 4})};
  EXPECT_THROW(both.forward(x, {}, {}, states), Error);
  EXPECT_THROW(one.forward(x, {}, {}, states), Error);
}

}  // namespace
}  // namespace heddle::nn
