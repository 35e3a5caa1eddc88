#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "heddle/memory.h"
#include "heddle/ops.h"
#include "heddle/tape.h"
#include "nn/ffn/moe.h"
#include "nn/ffn/slots.h"

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

using Loads = std::vector<std::int64_t>;
Loads loads_of(const MoeResult& r) { return r.load.to_vector<std::int64_t>(); }
std::int64_t all_loads(const MoeResult& r) {
  const Loads loads = loads_of(r);
  return std::accumulate(loads.begin(), loads.end(), std::int64_t{0});
}

Tensor tokens() { return ops::random_normal({2, 7, 6}, 0, 1, {1, 1, 1}, DType::f64); }

TEST(MixtureOfExperts, OneExpertIsAFeedForwardLayer) {
  Parameters store({.seed = 2, .dtype = DType::f64});
  const MixtureOfExperts moe(small(1, 1), store.root());
  Parameters again({.seed = 2, .dtype = DType::f64});
  const FeedForward plain(small(1, 1).expert, again.root() / "experts" / 0);
  const MoeResult r = moe.forward(tokens());
  EXPECT_EQ(doubles_of(r.y), doubles_of(plain.forward(tokens())));
  EXPECT_NEAR(r.balance.item(), 0.01, 1e-15);
  EXPECT_EQ(loads_of(r), Loads{14});
}

TEST(MixtureOfExperts, EqualsTheSumOverAllExpertsByHand) {
  MoeConfig c = small(5, 2);
  c.shared = 1;
  Parameters store({.seed = 2, .dtype = DType::f64});
  const MixtureOfExperts moe(c, store.root());
  Parameters again({.seed = 2, .dtype = DType::f64});
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
  EXPECT_EQ(all_loads(r), 28);
}

// The same with every choice of routing: sigmoids, chosen with a correction that is in no share.
TEST(MixtureOfExperts, RoutingIsWhatItSays) {
  MoeConfig c = small(4, 2);
  c.shared = 2;
  c.shared_gate = true;
  c.routing = {Router::sigmoid, false, 2.5, true, true};
  const ParameterOptions options{.seed = 2, .dtype = DType::f64};
  Parameters store(options);
  const MixtureOfExperts moe(c, store.root());
  const std::vector<double> correction = {0, 3, 0, -3}, bias = {0.5, -0.25, 1, 0};
  Tensor router, gate;
  for (nn::Parameter& p : store.all()) {
    if (p.name == "router.correction")
      ops::copy_into(p.tensor, Tensor::from<double>({4}, std::span<const double>(correction)));
    if (p.name == "router.bias")
      ops::copy_into(p.tensor, Tensor::from<double>({4}, std::span<const double>(bias)));
    if (p.name == "router.weight") router = p.tensor;
    if (p.name == "shared_gate.weight") gate = p.tensor;
  }
  Parameters again(options);
  std::vector<FeedForward> experts;
  for (int e = 0; e < 4; ++e) experts.emplace_back(c.expert, again.root() / "experts" / e);
  for (int s = 0; s < 2; ++s) experts.emplace_back(c.expert, again.root() / "shared" / s);
  const Tensor x = tokens();
  std::vector<std::vector<double>> outputs;
  for (const FeedForward& f : experts) outputs.push_back(doubles_of(f.forward(x)));
  const std::vector<double> logits = doubles_of(ops::linear(x, router));
  const std::vector<double> open = doubles_of(ops::linear(x, gate));
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  for (const bool slots : {false, true}) {
    const std::vector<double> y = doubles_of(moe.forward(x, {{}, true, slots}).y);
    for (std::size_t t = 0; t < 14; ++t) {
      std::vector<double> p;
      for (std::size_t e = 0; e < 4; ++e) p.push_back(sigmoid(logits[t * 4 + e] + bias[e]));
      // Expert 1 is always chosen, expert 3 never, and one of the others by its score.
      const std::size_t other = p[0] > p[2] ? 0 : 2;
      for (std::size_t i = 0; i < 6; ++i) {
        const std::size_t at = t * 6 + i;
        const double routed = 2.5 * (p[1] * outputs[1][at] + p[other] * outputs[other][at]);
        EXPECT_NEAR(y[at], routed + sigmoid(open[t]) * (outputs[4][at] + outputs[5][at]), 1e-12);
      }
    }
  }
}

// The same weights with every capacity; none: dropless.
MixtureOfExperts with_capacity(std::optional<double> capacity) {
  MoeConfig c = small(4, 2);
  c.capacity = capacity;
  Parameters store({.seed = 2, .dtype = DType::f64});
  return {c, store.root()};
}

TEST(MixtureOfExperts, CapacityLimitsEveryExpert) {
  // Without a limit the four take 9, 7, 5 and 7 of the 28 choices or so; what is beyond the limit
  // is lost, and no more than that.
  const Loads wanted = loads_of(with_capacity({}).forward(tokens()));
  for (const double capacity : {0.01, 0.5, 0.9, 1.0, 1.2, 4.0}) {
    const auto limit = static_cast<std::int64_t>(std::ceil(capacity * 28 / 4));
    const MoeResult r = with_capacity(capacity).forward(tokens());
    const Loads loads = loads_of(r);
    ASSERT_EQ(loads.size(), 4u);
    for (std::size_t e = 0; e < 4; ++e)
      EXPECT_EQ(loads[e], std::min(wanted[e], limit)) << "expert " << e << " at " << capacity;
  }
  const auto dropless = doubles_of(with_capacity({}).forward(tokens()).y);
  EXPECT_EQ(doubles_of(with_capacity(4).forward(tokens()).y), dropless);
  EXPECT_NE(doubles_of(with_capacity(0.5).forward(tokens()).y), dropless);
}

// Two experts and eight tokens whose first number says where they go: 1 to the first expert, -1 to
// the second. At capacity 0.7 an expert takes ⌈0.7 · 8 / 2⌉ = 3 tokens, the first that ask.
TEST(MixtureOfExperts, AtCapacityTheFirstThatAskAreTaken) {
  MoeConfig c = small(2, 1);
  c.capacity = 0.7;
  Parameters store({.seed = 2, .dtype = DType::f64});
  const MixtureOfExperts moe(c, store.root());
  for (Parameter& p : store.all()) {
    if (p.name != "router.weight") continue;
    double* router = p.tensor.mutable_data<double>();  // [2, 6]
    std::fill_n(router, 12, 0.0);
    router[0] = 1;
    router[6] = -1;
  }
  const std::vector<double> asks = {1, 1, -1, 1, 1, -1, 1, 1};  // six and two
  Tensor x = ops::random_normal({8, 6}, 0, 1, {3, 1, 1}, DType::f64);
  for (std::size_t t = 0; t < asks.size(); ++t) x.mutable_data<double>()[6 * t] = asks[t];
  const MoeResult r = moe.forward(x);
  EXPECT_EQ(loads_of(r), (Loads{3, 2}));
  const std::vector<bool> taken = {true, true, true, true, false, true, false, false};
  const std::vector<double> y = doubles_of(r.y);
  for (std::size_t t = 0; t < taken.size(); ++t) {
    double size = 0;
    for (std::size_t i = 0; i < 6; ++i) size += std::abs(y[6 * t + i]);
    if (taken[t])
      EXPECT_GT(size, 1e-3) << "token " << t;
    else
      EXPECT_EQ(size, 0) << "token " << t;
  }
  EXPECT_EQ(loads_of(moe.forward(x, {.limited = false})), (Loads{6, 2}));
}

// The contents of padding change no valid result, and padding takes up no capacity.
TEST(MixtureOfExperts, PaddingIsNoToken) {
  const Tensor lengths = Tensor::from<std::int64_t>({2}, {3, 7});
  const Tensor x = tokens();
  Tensor other = ops::clone(x);
  for (std::int64_t i = 3 * 6; i < 7 * 6; ++i) other.mutable_data<double>()[i] = 5;
  ASSERT_NE(doubles_of(x), doubles_of(other));
  for (const double capacity : {0.0, 0.5}) {
    MoeConfig c = small(4, 2);
    if (capacity > 0) c.capacity = capacity;  // ⌈0.5 · 20 / 4⌉ = 3
    Parameters store({.seed = 2, .dtype = DType::f64});
    const MixtureOfExperts moe(c, store.root());
    const MoeResult a = moe.forward(x, {lengths}), b = moe.forward(other, {lengths});
    EXPECT_EQ(doubles_of(a.y), doubles_of(b.y));
    EXPECT_EQ(a.balance.item(), b.balance.item());
    EXPECT_EQ(loads_of(a), loads_of(b));
    const Loads loads = loads_of(a);
    const std::int64_t taken = all_loads(a);
    if (capacity > 0) {
      EXPECT_EQ(*std::max_element(loads.begin(), loads.end()), 3);
      continue;
    }
    EXPECT_EQ(taken, 20);
    const Tensor alone = ops::slice(ops::slice(x, 0, 0, 1), 1, 0, 3);
    EXPECT_EQ(doubles_of(ops::slice(ops::slice(a.y, 0, 0, 1), 1, 0, 3)),
              doubles_of(moe.forward(alone).y));
  }
  Parameters store({.seed = 2, .dtype = DType::f64});
  const MixtureOfExperts moe(small(4, 2), store.root());
  EXPECT_THROW(moe.forward(ops::reshape(x, {14, 6}), {lengths}), Error);
}

TEST(MixtureOfExperts, WithoutALimitNothingIsDropped) {
  EXPECT_EQ(doubles_of(with_capacity(0.5).forward(tokens(), {.limited = false}).y),
            doubles_of(with_capacity({}).forward(tokens()).y));
}

TEST(MixtureOfExperts, TheMetaDeviceKnowsTheSizes) {
  Parameters store({.device = Device::meta});
  const MixtureOfExperts moe(small(4, 2), store.root());
  // The second is more than any memory could list.
  for (const Shape& shape : {Shape{2, 7, 6}, Shape{1 << 20, 1 << 20, 6}}) {
    const Tensor x = Tensor::empty(shape, DType::f32, Device::meta);
    EXPECT_EQ(moe.forward(x).y.shape(), shape);
    const Tensor lengths = Tensor::empty({shape[0]}, DType::i64, Device::meta);
    EXPECT_EQ(moe.forward(x, {lengths}).y.shape(), shape);
  }
}

// Peak bytes of a forward and a backward pass beyond weights and input. Token t has a 1 in the
// column columns[t] and so goes to the experts whose router rows are largest there.
std::int64_t peak_of_routing(const MoeConfig& c, Device device,
                             const std::vector<std::int64_t>& columns,
                             const std::vector<float>& router) {
  Parameters store({.seed = 2, .device = device});
  const MixtureOfExperts moe(c, store.root());
  const Shape shape{static_cast<std::int64_t>(columns.size()), c.expert.width};
  Tensor x = device == Device::meta ? Tensor::empty(shape, DType::f32, device)
                                    : Tensor::zeros(shape, DType::f32);
  if (device == Device::cpu) {
    auto* rows = x.mutable_data<float>();
    for (const std::int64_t column : columns) {
      rows[column] = 1;
      rows += c.expert.width;
    }
    for (Parameter& p : store.all())
      if (p.name == "router.weight")
        std::copy(router.begin(), router.end(), p.tensor.mutable_data<float>());
  }
  x.set_requires_grad(true);
  std::int64_t peak = 0;
  for (int pass = 0; pass < 2; ++pass) {  // the first leaves packed weights behind
    const std::int64_t before = memory_use(device).live;
    reset_peak_memory(device);
    {
      Tape tape;
      const Tensor y = moe.forward(x).y;
      const Tensor dy = Tensor::full(y.shape(), 1, DType::f32, device);
      tape.backward(std::span(&y, 1), std::span(&dy, 1));
    }
    peak = memory_use(device).peak - before;
    x.clear_grad();
    for (Parameter& p : store.all()) p.tensor.clear_grad();
  }
  return peak;
}

// Three columns, four experts of which two are active. With `favourite` it is in all choices, and
// the other choice goes around.
TEST(MixtureOfExperts, NoRoutingNeedsMoreThanTheMetaDeviceBooks) {
  MoeConfig c;
  c.expert = {FfnKind::gelu, 16, 48, true};
  c.experts = 4;
  c.active = 2;
  std::vector<std::int64_t> columns;
  for (int t = 0; t < 96; ++t) columns.push_back(t % 3);
  const std::int64_t booked = peak_of_routing(c, Device::meta, columns, {});
  std::vector<std::int64_t> peaks;
  for (std::size_t favourite = 0; favourite < 4; ++favourite) {
    std::vector<float> router(4 * 16, 0.0f);
    std::size_t column = 0;
    for (std::size_t e = 0; e < 4; ++e) {
      if (e == favourite) continue;
      for (std::size_t i = 0; i < 3; ++i) router[favourite * 16 + i] = 3;
      router[e * 16 + column++] = 2;
    }
    peaks.push_back(peak_of_routing(c, Device::cpu, columns, router));
    EXPECT_LE(peaks.back(), booked) << "all to expert " << favourite;
  }
  EXPECT_EQ(peaks[3], booked);  // 96 to the last and 32 to each other: what the meta device takes
  // Evenly, and all to the same two.
  std::vector<float> even(4 * 16, 0.0f), same(4 * 16, 0.0f);
  for (std::size_t i = 0; i < 3; ++i) {
    even[i * 16 + i] = 3;
    even[(i + 1) * 16 + i] = 2;
    same[0 * 16 + i] = 3;
    same[1 * 16 + i] = 2;
  }
  EXPECT_LT(peak_of_routing(c, Device::cpu, columns, even), booked);
  EXPECT_LE(peak_of_routing(c, Device::cpu, columns, same), booked);
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

// Four tokens with two choices each of three experts that have two slots: tokens 2 and 3 come too
// late for expert 1. Then token 1 is padding, and token 2 is not too late.
TEST(Slots, GoToTheFirstThatAsk) {
  const Tensor chosen = Tensor::from<std::int64_t>({4, 2}, {1, 0, 1, 2, 0, 1, 2, 1});
  const Slots all = make_slots(chosen, {}, {3, 2});
  EXPECT_EQ(all.choices.to_vector<std::int64_t>(), (Loads{2, 0, 3, 4, 1, 0, 5, 0}));
  EXPECT_EQ(all.kept.to_vector<float>(), (std::vector<float>{1, 1, 1, 1, 1, 0, 1, 0}));
  EXPECT_EQ(all.tokens.to_vector<std::int64_t>(), (Loads{0, 2, 0, 1, 1, 3}));
  EXPECT_EQ(all.asked.to_vector<float>(), (std::vector<float>{2, 4, 2}));
  EXPECT_EQ(all.load.to_vector<std::int64_t>(), (Loads{2, 2, 2}));

  const Tensor counted = Tensor::from<float>({8, 1}, {1, 1, 0, 0, 1, 1, 1, 1});
  const Slots real = make_slots(chosen, counted, {3, 2});
  EXPECT_EQ(real.kept.to_vector<float>(), (std::vector<float>{1, 1, 0, 0, 1, 1, 1, 0}));
  EXPECT_EQ(real.tokens.to_vector<std::int64_t>(), (Loads{0, 2, 0, 2, 3, 0}));
  EXPECT_EQ(real.asked.to_vector<float>(), (std::vector<float>{2, 3, 1}));
  EXPECT_EQ(real.load.to_vector<std::int64_t>(), (Loads{2, 2, 1}));
}

// Slots against rows: y, balance, loads, and all gradients.
TEST(Slots, ComputeWhatRowsCompute) {
  const Tensor lengths = Tensor::from<std::int64_t>({2}, {3, 7});
  for (const bool padded : {false, true})
    for (const double capacity : {0.0, 0.6}) {
      const auto outcome = [&](bool slots) {
        MoeConfig c = small(4, 2);
        c.shared = 1;
        if (capacity > 0) c.capacity = capacity;
        Parameters store({.seed = 2, .dtype = DType::f64});
        const MixtureOfExperts moe(c, store.root());
        Tensor x = tokens();
        x.set_requires_grad(true);
        Tape tape;
        MoeCall call;
        if (padded) call.lengths = lengths;
        call.slots = slots;
        const MoeResult r = moe.forward(x, call);
        const Tensor weighted =
            ops::mul(r.y, ops::random_normal(r.y.shape(), 0, 1, {5, 5, 5}, DType::f64));
        tape.backward(ops::add(ops::sum_all(weighted), r.balance));
        std::vector<double> all = doubles_of(r.y);
        all.push_back(r.balance.item());
        for (const std::int64_t n : loads_of(r)) all.push_back(static_cast<double>(n));
        const auto add = [&all](const Tensor& g) {
          const std::vector<double> v = doubles_of(g);
          all.insert(all.end(), v.begin(), v.end());
        };
        add(x.grad());
        for (const Parameter& p : store.all()) add(p.tensor.grad());
        return all;
      };
      const std::vector<double> rows = outcome(false), slots = outcome(true);
      ASSERT_EQ(rows.size(), slots.size());
      for (std::size_t i = 0; i < rows.size(); ++i)
        EXPECT_NEAR(rows[i], slots[i], 1e-12) << i << ", capacity " << capacity;
    }
}

}  // namespace
}  // namespace heddle::nn
