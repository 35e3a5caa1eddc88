#include <gtest/gtest.h>

#include <numeric>

#include "heddle/ops.h"
#include "heddle/tape.h"
#include "nn/ffn/moe.h"

namespace heddle::nn {
namespace {

MoeConfig small(std::int64_t experts, std::int64_t active) {
  MoeConfig c;
  c.expert = {FfnKind::gelu, 6, 10, true};
  c.experts = experts;
  c.active = active;
  return c;
}

std::vector<double> doubles_of(const Tensor& t) { return t.detach().to_vector<double>(); }

Tensor tokens() { return ops::random_normal({2, 7, 6}, 0, 1, {1, 1, 1}, DType::f64); }

TEST(MixtureOfExperts, OneExpertIsAFeedForwardLayer) {
  ParameterStore store({.seed = 2, .dtype = DType::f64});
  const MixtureOfExperts moe(small(1, 1), store.root());
  ParameterStore again({.seed = 2, .dtype = DType::f64});
  const FeedForward plain(small(1, 1).expert, again.root() / "experts" / 0);
  const MoeResult r = moe.forward(tokens());
  EXPECT_EQ(doubles_of(r.y), doubles_of(plain.forward(tokens())));
  EXPECT_NEAR(r.balance.item(), 0.01, 1e-15);
  EXPECT_EQ(r.load, std::vector<std::int64_t>{14});
}

TEST(MixtureOfExperts, EqualsTheSumOverAllExpertsByHand) {
  MoeConfig c = small(5, 2);
  c.shared = 1;
  ParameterStore store({.seed = 2, .dtype = DType::f64});
  const MixtureOfExperts moe(c, store.root());
  ParameterStore again({.seed = 2, .dtype = DType::f64});
  const Tensor router = again.root().weight("router.weight", {5, 6});
  std::vector<FeedForward> experts;
  for (int e = 0; e < 5; ++e) experts.emplace_back(c.expert, again.root() / "experts" / e);
  const FeedForward shared(c.expert, again.root() / "shared" / 0);

  const Tensor x = tokens();
  const MoeResult r = moe.forward(x);
  const std::vector<double> p = doubles_of(ops::softmax(ops::linear(x, router)));
  std::vector<std::vector<double>> outputs;
  for (const FeedForward& f : experts) outputs.push_back(doubles_of(f.forward(x)));
  const std::vector<double> common = doubles_of(shared.forward(x)), y = doubles_of(r.y);
  std::vector<double> choices(5, 0.0), mean(5, 0.0);
  for (std::size_t t = 0; t < 14; ++t) {
    std::vector<std::size_t> order = {0, 1, 2, 3, 4};
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return p[t * 5 + a] > p[t * 5 + b]; });
    const double pa = p[t * 5 + order[0]], pb = p[t * 5 + order[1]];
    for (std::size_t i = 0; i < 6; ++i) {
      const double expected =
          (pa * outputs[order[0]][t * 6 + i] + pb * outputs[order[1]][t * 6 + i]) / (pa + pb);
      EXPECT_NEAR(y[t * 6 + i], expected + common[t * 6 + i], 1e-12);
    }
    choices[order[0]] += 1.0 / 28;
    choices[order[1]] += 1.0 / 28;
    for (std::size_t e = 0; e < 5; ++e) mean[e] += p[t * 5 + e] / 14;
  }
  EXPECT_NEAR(r.balance.item(),
              0.01 * 5 * std::inner_product(choices.begin(), choices.end(), mean.begin(), 0.0),
              1e-14);
  EXPECT_EQ(std::accumulate(r.load.begin(), r.load.end(), std::int64_t{0}), 28);
}

// The same weights with every capacity; none: dropless.
MixtureOfExperts with_capacity(std::optional<double> capacity) {
  MoeConfig c = small(4, 2);
  c.capacity = capacity;
  ParameterStore store({.seed = 2, .dtype = DType::f64});
  return {c, store.root()};
}

TEST(MixtureOfExperts, CapacityLimitsEveryExpert) {
  const MoeResult r = with_capacity(0.5).forward(tokens());
  for (const std::int64_t n : r.load) EXPECT_LE(n, 4);  // ⌈0.5 · 28 / 4⌉ = 4
  const auto dropless = doubles_of(with_capacity({}).forward(tokens()).y);
  EXPECT_EQ(doubles_of(with_capacity(4).forward(tokens()).y), dropless);
  EXPECT_NE(doubles_of(r.y), dropless);
}

// What padding holds changes nothing of what counts, and it takes nobody's place.
TEST(MixtureOfExperts, PaddingIsNoToken) {
  const Tensor lengths = Tensor::from<std::int64_t>({2}, {3, 7});
  const Tensor x = tokens();
  Tensor other = ops::clone(x);
  for (std::int64_t i = 3 * 6; i < 7 * 6; ++i) other.mutable_data<double>()[i] = 5;
  ASSERT_NE(doubles_of(x), doubles_of(other));
  for (const double capacity : {0.0, 0.5}) {
    MoeConfig c = small(4, 2);
    if (capacity > 0) c.capacity = capacity;  // ⌈0.5 · 20 / 4⌉ = 3
    ParameterStore store({.seed = 2, .dtype = DType::f64});
    const MixtureOfExperts moe(c, store.root());
    const MoeResult a = moe.forward(x, {lengths}), b = moe.forward(other, {lengths});
    EXPECT_EQ(doubles_of(a.y), doubles_of(b.y));
    EXPECT_EQ(a.balance.item(), b.balance.item());
    EXPECT_EQ(a.load, b.load);
    const std::int64_t taken = std::accumulate(a.load.begin(), a.load.end(), std::int64_t{0});
    if (capacity > 0) {
      EXPECT_LE(*std::max_element(a.load.begin(), a.load.end()), 3);
      continue;
    }
    EXPECT_EQ(taken, 20);
    const Tensor alone = ops::slice(ops::slice(x, 0, 0, 1), 1, 0, 3);
    EXPECT_EQ(doubles_of(ops::slice(ops::slice(a.y, 0, 0, 1), 1, 0, 3)),
              doubles_of(moe.forward(alone).y));
  }
  ParameterStore store({.seed = 2, .dtype = DType::f64});
  const MixtureOfExperts moe(small(4, 2), store.root());
  EXPECT_THROW(moe.forward(ops::reshape(x, {14, 6}), {lengths}), Error);
}

TEST(MixtureOfExperts, WithoutALimitNothingIsDropped) {
  EXPECT_EQ(doubles_of(with_capacity(0.5).forward(tokens(), {.limited = false}).y),
            doubles_of(with_capacity({}).forward(tokens()).y));
}

TEST(MixtureOfExperts, TheMetaDeviceKnowsTheSizes) {
  ParameterStore store({.device = Device::meta});
  const MixtureOfExperts moe(small(4, 2), store.root());
  // The second is more than any memory could list.
  for (const Shape& shape : {Shape{2, 7, 6}, Shape{1 << 20, 1 << 20, 6}}) {
    const Tensor x = Tensor::empty(shape, DType::f32, Device::meta);
    EXPECT_EQ(moe.forward(x).y.shape(), shape);
    const Tensor lengths = Tensor::empty({shape[0]}, DType::i64, Device::meta);
    EXPECT_EQ(moe.forward(x, {lengths}).y.shape(), shape);
  }
}

TEST(MixtureOfExperts, RefusesWhatMakesNoSense) {
  const auto refused = [](const auto& change, const char* key) {
    MoeConfig c = small(4, 2);
    change(c);
    try {
      validate(c);
      ADD_FAILURE() << key << " was accepted";
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(key), std::string::npos) << e.what();
    }
  };
  refused([](MoeConfig& c) { c.experts = 0; }, "experts");
  refused([](MoeConfig& c) { c.active = 5; }, "active");
  refused([](MoeConfig& c) { c.active = 0; }, "active");
  refused([](MoeConfig& c) { c.capacity = 0; }, "capacity");
  refused([](MoeConfig& c) { c.shared = -1; }, "shared");
  refused([](MoeConfig& c) { c.balance = -1; }, "balance");
  refused([](MoeConfig& c) { c.expert.hidden = 0; }, "ffn_width");
}

}  // namespace
}  // namespace heddle::nn
