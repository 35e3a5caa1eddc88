#include "nn/ffn/moe.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "nn/require.h"
#include "ops/binary/binary.h"
#include "ops/concat/concat.h"
#include "ops/copy/copy.h"
#include "ops/gather/gather.h"
#include "ops/linear/linear.h"
#include "ops/reduce/reduce.h"
#include "ops/softmax/softmax.h"
#include "ops/unary/unary.h"
#include "ops/view/view.h"

namespace heddle::nn {

namespace {

using Integers = std::vector<std::int64_t>;

Tensor integers(const Integers& values, Device device) {
  const Shape shape{static_cast<std::int64_t>(values.size())};
  if (device == Device::meta) return Tensor::empty(shape, DType::i64, device);
  return Tensor::from<std::int64_t>(shape, std::span<const std::int64_t>(values));
}

// The `count` largest of a row, largest first; of equals the first.
template <class T>
void choose(const T* row, std::int64_t experts, std::span<std::int64_t> chosen) {
  Integers order(static_cast<std::size_t>(experts));
  std::iota(order.begin(), order.end(), 0);
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(chosen.size());
  std::partial_sort(order.begin(), end, order.end(), [row](std::int64_t a, std::int64_t b) {
    return row[a] != row[b] ? row[a] > row[b] : a < b;
  });
  std::copy(order.begin(), end, chosen.begin());
}

// Experts of each token, [N · A]. The meta device knows no probabilities: there the choices go
// around.
Integers choose_experts(const Tensor& probabilities, std::int64_t active) {
  const std::int64_t tokens = probabilities.size(0), experts = probabilities.size(1);
  Integers chosen(static_cast<std::size_t>(tokens * active));
  if (probabilities.device() == Device::meta) {
    for (std::size_t i = 0; i < chosen.size(); ++i)
      chosen[i] = static_cast<std::int64_t>(i) % experts;
    return chosen;
  }
  const Tensor dense = ops::contiguous(probabilities.detach());
  for (std::int64_t t = 0; t < tokens; ++t) {
    const std::span<std::int64_t> own(chosen.data() + t * active, static_cast<std::size_t>(active));
    if (dense.dtype() == DType::f64)
      choose(dense.data<double>() + t * experts, experts, own);
    else
      choose(dense.data<float>() + t * experts, experts, own);
  }
  return chosen;
}

// Which of the N · A choices each expert takes, in the order of the tokens.
std::vector<Integers> assign(const Integers& chosen, const MoeConfig& c) {
  std::vector<Integers> taken(static_cast<std::size_t>(c.experts));
  auto limit = static_cast<double>(chosen.size());
  if (c.capacity)
    limit = std::ceil(*c.capacity * static_cast<double>(chosen.size()) /
                      static_cast<double>(c.experts));
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    Integers& own = taken[static_cast<std::size_t>(chosen[i])];
    if (static_cast<double>(own.size()) < limit) own.push_back(static_cast<std::int64_t>(i));
  }
  return taken;
}

// balance · E · Σ_e share_e · mean probability of e. The shares are counts and have no gradient.
Tensor balance_loss(const Tensor& probabilities, const Integers& chosen, double weight) {
  const std::int64_t experts = probabilities.size(1);
  std::vector<double> shares(static_cast<std::size_t>(experts), 0.0);
  for (const std::int64_t e : chosen)
    shares[static_cast<std::size_t>(e)] += 1 / static_cast<double>(chosen.size());
  const Device device = probabilities.device();
  const Tensor share =
      device == Device::meta
          ? Tensor::empty({experts}, probabilities.dtype(), device)
          : ops::cast(Tensor::from<double>({experts}, std::span<const double>(shares)),
                      probabilities.dtype());
  const Tensor mean = ops::mean(probabilities, 0);  // [E]
  return ops::scale(ops::sum_all(ops::mul(mean, share)), weight * static_cast<double>(experts));
}

std::vector<FeedForward> make_experts(const FfnConfig& config, const ParamScope& scope,
                                      std::int64_t count) {
  std::vector<FeedForward> experts;
  experts.reserve(static_cast<std::size_t>(count));
  for (std::int64_t e = 0; e < count; ++e) experts.emplace_back(config, scope / e);
  return experts;
}

}  // namespace

void validate(const MoeConfig& c) {
  constexpr const char* where = "mixture of experts";
  validate(c.expert);
  require(c.experts > 0, where, "experts", "1 or more", static_cast<double>(c.experts));
  require(c.active > 0 && c.active <= c.experts, where, "active",
          "1 to the " + std::to_string(c.experts) + " experts", static_cast<double>(c.active));
  if (c.capacity)
    require(std::isfinite(*c.capacity) && *c.capacity > 0, where, "capacity", "above 0",
            *c.capacity);
  require(c.shared >= 0, where, "shared", "0 or more", static_cast<double>(c.shared));
  require(std::isfinite(c.balance) && c.balance >= 0, where, "balance", "0 or more", c.balance);
}

MixtureOfExperts::MixtureOfExperts(const MoeConfig& config, const ParamScope& scope)
    : config_(config) {
  validate(config);
  router_ = scope.weight("router.weight", {config.experts, config.expert.width});
  experts_ = make_experts(config.expert, scope / "experts", config.experts);
  shared_ = make_experts(config.expert, scope / "shared", config.shared);
}

MoeResult MixtureOfExperts::forward(const Tensor& x) const {
  const std::int64_t width = config_.expert.width, active = config_.active;
  const Tensor tokens = ops::reshape(x, {-1, width});  // [N, C]
  // Close probabilities decide where a token goes, so they are made in full precision.
  const DType exact = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Tensor probabilities = ops::softmax(ops::linear(ops::cast(tokens, exact), router_));
  const Integers chosen = choose_experts(probabilities, active);
  const Tensor index = ops::reshape(integers(chosen, x.device()), {-1, active});
  const Tensor strength = ops::gather(probabilities, 1, index);  // [N, A]
  const Tensor shares = ops::div(strength, ops::sum(strength, 1, true));

  MoeResult result;
  if (config_.balance > 0) result.balance = balance_loss(probabilities, chosen, config_.balance);
  std::vector<Tensor> parts;
  Integers places, rows;  // of each row of the parts: its choice, its token
  const std::vector<Integers> taken = assign(chosen, config_);
  for (std::size_t e = 0; e < taken.size(); ++e) {
    if (x.device() != Device::meta)
      result.load.push_back(static_cast<std::int64_t>(taken[e].size()));
    if (taken[e].empty()) continue;
    Integers own;
    for (const std::int64_t place : taken[e]) own.push_back(place / active);
    const Tensor inputs = ops::index_select(tokens, integers(own, x.device()));
    parts.push_back(experts_[e].forward(inputs));
    places.insert(places.end(), taken[e].begin(), taken[e].end());
    rows.insert(rows.end(), own.begin(), own.end());
  }
  Tensor y = Tensor::zeros(tokens.shape(), x.dtype(), x.device());
  if (!parts.empty()) {
    const Tensor weights =
        ops::index_select(ops::reshape(shares, {-1, 1}), integers(places, x.device()));
    const Tensor weighted = ops::mul(ops::concat(parts, 0), ops::cast(weights, x.dtype()));
    y = ops::index_add(y, integers(rows, x.device()), weighted);
  }
  for (const FeedForward& expert : shared_) y = ops::add(y, expert.forward(tokens));
  result.y = ops::reshape(y, x.shape());
  return result;
}

}  // namespace heddle::nn
