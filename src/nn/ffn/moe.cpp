#include "nn/ffn/moe.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "nn/ffn/slots.h"
#include "nn/require.h"
#include "ops/binary/binary.h"
#include "ops/concat/concat.h"
#include "ops/copy/copy.h"
#include "ops/gather/gather.h"
#include "ops/linear/linear.h"
#include "ops/reduce/reduce.h"
#include "ops/softmax/softmax.h"
#include "ops/support/host.h"
#include "ops/unary/unary.h"
#include "ops/view/view.h"

namespace heddle::nn {

namespace {

using Integers = std::vector<std::int64_t>;

// Numbers of tokens or of choices. The meta device knows how many there are, and no more: its
// batches may be larger than any memory.
struct Numbers {
  std::int64_t count = 0;
  Integers values = {};  // none on the meta device

  void add(std::int64_t value) {
    values.push_back(value);
    ++count;
  }
  void add(const Numbers& others) {
    values.insert(values.end(), others.values.begin(), others.values.end());
    count += others.count;
  }
  Tensor tensor(Device device) const {
    if (device.is_meta()) return Tensor::empty({count}, DType::i64, device);
    return ops::from_host({count}, values, device);
  }
};

// Experts of each token, [N · A], as the host sees them.
Numbers read_choices(const Tensor& chosen) {
  if (chosen.device().is_meta()) return {chosen.elements()};
  return {chosen.elements(), chosen.to_vector<std::int64_t>()};
}

// The router's decisions for the tokens of a call.
struct Routes {
  Tensor probabilities;  // [N, E], of each token 1 in all
  Tensor shares;         // [N, A] of the chosen experts
  Tensor chosen;         // [N, A] i64
};

// The tokens of x that are no padding.
Numbers real_tokens(const Tensor& x, const Tensor& lengths, std::int64_t all) {
  if (x.device().is_meta()) return {all};
  Numbers real;
  if (!lengths.defined()) {
    real = {all, Integers(static_cast<std::size_t>(all))};
    std::iota(real.values.begin(), real.values.end(), std::int64_t{0});
    return real;
  }
  require(x.rank() == 3 && lengths.elements() == x.size(0), "mixture of experts", "lengths",
          "one for each sequence of x [B, T, C]", lengths.describe() + " for " + x.describe());
  const std::int64_t width = x.size(1);
  std::int64_t begin = 0;
  for (const std::int64_t length : ops::cast(lengths, DType::i64).to_vector<std::int64_t>()) {
    for (std::int64_t t = 0; t < std::min(length, width); ++t) real.add(begin + t);
    begin += width;
  }
  return real;
}

// The choices of some tokens among those of all.
Numbers choices_of(const Numbers& tokens, const Numbers& chosen, std::int64_t active) {
  Numbers own{tokens.count * active};
  for (const std::int64_t t : tokens.values)
    for (std::int64_t a = 0; a < active; ++a)
      own.values.push_back(chosen.values[static_cast<std::size_t>(t * active + a)]);
  return own;
}

// How many choices an expert takes at most.
std::int64_t limit_of(const MoeConfig& c, std::int64_t tokens, bool limited) {
  if (!c.capacity || !limited) return tokens;  // a token chooses an expert once
  const auto choices = static_cast<double>(tokens * c.active);
  const double limit = std::ceil(*c.capacity * choices / static_cast<double>(c.experts));
  return limit < static_cast<double>(tokens) ? static_cast<std::int64_t>(limit) : tokens;
}

// The meta device does not know where the router sends tokens, and takes the most that memory could
// need: no choice is lost as long as there is room, all experts are in use, and what is left after
// that goes to the last one. Its rows are there while all others' are kept, in both passes, so no
// other routing has more at any time.
std::vector<Numbers> assign_worst(std::int64_t choices, const MoeConfig& c, std::int64_t limit) {
  std::vector<Numbers> taken(static_cast<std::size_t>(c.experts));
  const std::int64_t others = c.experts - 1;
  choices = limit > choices / c.experts ? choices : limit * c.experts;
  const std::int64_t most = std::max(choices - others, std::min<std::int64_t>(choices, 1));
  const std::int64_t last = std::min(limit, most);
  const std::int64_t left = choices - last;
  for (std::int64_t e = 0; e < others; ++e)
    taken[static_cast<std::size_t>(e)].count = left / others + (e < left % others ? 1 : 0);
  taken.back().count = last;
  return taken;
}

// Which of the choices of `tokens` each expert takes, in their order, as places in `chosen`.
std::vector<Numbers> assign(const Numbers& chosen, const Numbers& tokens, const MoeConfig& c,
                            bool limited) {
  const std::int64_t limit = limit_of(c, tokens.count, limited);
  if (chosen.values.empty()) return assign_worst(tokens.count * c.active, c, limit);
  std::vector<Numbers> taken(static_cast<std::size_t>(c.experts));
  for (const std::int64_t t : tokens.values)
    for (std::int64_t place = t * c.active; place < (t + 1) * c.active; ++place) {
      Numbers& own =
          taken[static_cast<std::size_t>(chosen.values[static_cast<std::size_t>(place)])];
      if (own.count < limit) own.add(place);
    }
  return taken;
}

// Tokens of the places.
Numbers tokens_at(const Numbers& places, std::int64_t active) {
  Numbers tokens = places;
  for (std::int64_t& place : tokens.values) place /= active;
  return tokens;
}

// The part of the choices that fell on each expert, [E].
Tensor shares_of(const Numbers& chosen, const Tensor& probabilities) {
  const std::int64_t experts = probabilities.size(1);
  std::vector<double> shares(static_cast<std::size_t>(experts), 0.0);
  for (const std::int64_t e : chosen.values)
    shares[static_cast<std::size_t>(e)] += 1 / static_cast<double>(chosen.count);
  const Device device = probabilities.device();
  if (device.is_meta()) return Tensor::empty({experts}, probabilities.dtype(), device);
  return ops::cast(ops::from_host({experts}, shares, device), probabilities.dtype());
}

// balance · E · Σ_e share_e · mean probability of e. The shares are counts and have no gradient.
Tensor balance_loss(const Tensor& probabilities, const Tensor& shares, double weight) {
  const Tensor mean = ops::mean(probabilities, 0);  // [E]
  return ops::scale(ops::sum_all(ops::mul(mean, shares)),
                    weight * static_cast<double>(probabilities.size(1)));
}

// The router's parameters; the last two may be undefined.
struct RouterWeights {
  const Tensor& weight;
  const Tensor& bias;
  const Tensor& correction;
};

Routes route(const Tensor& tokens, const RouterWeights& router, const MoeConfig& c) {
  const Routing& routing = c.routing;
  Routes r;
  // Close probabilities decide where a token goes, so they are made in full precision.
  const DType exact = tokens.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Tensor logits = ops::linear(ops::cast(tokens, exact), router.weight, router.bias);
  const bool softmax = routing.router == Router::softmax;
  const Tensor scores = softmax ? ops::softmax(logits) : ops::sigmoid(logits);  // [N, E]
  r.probabilities = softmax ? scores : ops::div(scores, ops::sum(scores, 1, true));
  r.chosen = ops::top_k(
      router.correction.defined() ? ops::add(scores.detach(), router.correction.detach()) : scores,
      c.active);
  const Tensor strength = ops::gather(scores, 1, r.chosen);  // [N, A]
  r.shares = routing.renormalise ? ops::div(strength, ops::sum(strength, 1, true)) : strength;
  if (routing.scale != 1) r.shares = ops::scale(r.shares, routing.scale);
  return r;
}

// 1 for the choices of real tokens, 0 for those of padding, [N · A, 1]; undefined: all are real.
Tensor counted_choices(const Numbers& real, const Routes& routes) {
  const std::int64_t tokens = routes.chosen.size(0), active = routes.chosen.size(1);
  if (real.count == tokens) return {};
  std::vector<float> counted(static_cast<std::size_t>(tokens * active), 0.0F);
  for (const std::int64_t t : real.values) std::fill_n(counted.begin() + t * active, active, 1.0F);
  return ops::from_host({tokens * active, 1}, counted, routes.chosen.device());
}

std::vector<FeedForward> make_experts(const FfnConfig& config, const Scope& scope,
                                      std::int64_t count) {
  std::vector<FeedForward> experts;
  experts.reserve(static_cast<std::size_t>(count));
  for (std::int64_t e = 0; e < count; ++e) experts.emplace_back(config, scope / e);
  return experts;
}

// A call of the layer.
struct RoutedCall {
  const MoeConfig& config;
  const std::vector<FeedForward>& experts;
  const Tensor& tokens;  // [N, C]
  Routes routes;
  Numbers real;   // tokens that are no padding
  bool all_real;  // no lengths were given
  bool limited;
};

// The rows of each expert are those that it got, which the host must know.
Tensor by_rows(const RoutedCall& call, MoeResult& result) {
  const std::int64_t active = call.config.active;
  const Tensor& tokens = call.tokens;
  const Routes& routes = call.routes;
  const Device device = tokens.device();
  const Numbers chosen = read_choices(routes.chosen);
  if (call.config.balance > 0 && call.all_real)
    result.balance = balance_loss(routes.probabilities, shares_of(chosen, routes.probabilities),
                                  call.config.balance);
  if (call.config.balance > 0 && call.real.count > 0 && !call.all_real) {
    const Tensor own = ops::index_select(routes.probabilities, call.real.tensor(device));
    result.balance = balance_loss(own, shares_of(choices_of(call.real, chosen, active), own),
                                  call.config.balance);
  }
  Numbers places;  // of each row of the parts: its choice
  std::vector<std::int64_t> load;
  load.reserve(call.experts.size());
  for (const Numbers& taken : assign(chosen, call.real, call.config, call.limited)) {
    load.push_back(taken.count);
    places.add(taken);
  }
  // One index for all experts: memory is booked by the tensor, and so by how many rows there are,
  // not by which expert has them.
  const Tensor rows = tokens_at(places, active).tensor(device);  // the token of each
  std::vector<Tensor> parts;
  std::int64_t begin = 0;
  for (std::size_t e = 0; e < call.experts.size(); ++e) {
    if (load[e] == 0) continue;
    const Tensor own = ops::slice(rows, 0, begin, begin + load[e]);
    parts.push_back(call.experts[e].forward(ops::index_select(tokens, own)));
    begin += load[e];
  }
  result.load = ops::from_host({call.config.experts}, load, device);
  Tensor y = Tensor::zeros(tokens.shape(), tokens.dtype(), device);
  if (parts.empty()) return y;
  const Tensor weights =
      ops::index_select(ops::reshape(routes.shares, {-1, 1}), places.tensor(device));
  const Tensor weighted = ops::mul(ops::concat(parts, 0), ops::cast(weights, tokens.dtype()));
  return ops::index_add(y, rows, weighted);
}

Tensor by_slots(const RoutedCall& call, MoeResult& result) {
  const Tensor& tokens = call.tokens;
  const Routes& routes = call.routes;
  const std::int64_t count = tokens.size(0), width = tokens.size(1), active = call.config.active;
  const std::int64_t limit = limit_of(call.config, call.real.count, call.limited);
  const Slots slots =
      make_slots(routes.chosen, counted_choices(call.real, routes), {call.config.experts, limit});
  result.load = slots.load;
  if (call.config.balance > 0 && call.real.count > 0) {
    const Tensor own =
        call.all_real ? routes.probabilities
                      : ops::index_select(routes.probabilities, call.real.tensor(tokens.device()));
    const Tensor shares = ops::scale(ops::cast(slots.asked, own.dtype()),
                                     1 / static_cast<double>(call.real.count * active));
    result.balance = balance_loss(own, shares, call.config.balance);
  }
  if (limit == 0) return Tensor::zeros(tokens.shape(), tokens.dtype(), tokens.device());
  const Tensor given = ops::index_select(tokens, slots.tokens);  // [E · L, C]
  std::vector<Tensor> parts;
  parts.reserve(call.experts.size());
  for (std::size_t e = 0; e < call.experts.size(); ++e) {
    const auto first = static_cast<std::int64_t>(e) * limit;
    parts.push_back(call.experts[e].forward(ops::slice(given, 0, first, first + limit)));
  }
  const Tensor answers = ops::index_select(ops::concat(parts, 0), slots.choices);  // [N · A, C]
  const Tensor weights =
      ops::mul(ops::reshape(routes.shares, {-1, 1}), ops::cast(slots.kept, routes.shares.dtype()));
  const Tensor weighted = ops::mul(answers, ops::cast(weights, tokens.dtype()));
  return ops::sum(ops::reshape(weighted, {count, active, width}), 1);
}

}  // namespace

std::string_view to_string(Router router) {
  return router == Router::softmax ? "softmax" : "sigmoid";
}

void validate(const MoeConfig& c) {
  constexpr const char* where = "mixture of experts";
  validate(c.expert);
  require(c.experts > 0, where, "experts", "1 or more", static_cast<double>(c.experts));
  require(c.active > 0 && c.active <= c.experts, where, {"active", "experts"},
          "1 to the " + std::to_string(c.experts) + " experts", static_cast<double>(c.active));
  if (c.capacity)
    require(std::isfinite(*c.capacity) && *c.capacity > 0, where, "capacity", "above 0",
            *c.capacity);
  require(c.shared >= 0, where, "shared", "0 or more", static_cast<double>(c.shared));
  require(std::isfinite(c.balance) && c.balance >= 0, where, "balance", "0 or more", c.balance);
  require(std::isfinite(c.routing.scale) && c.routing.scale > 0, where, "routed_scale", "above 0",
          c.routing.scale);
  require(!c.shared_gate || c.shared > 0, where, {"shared_gate", "shared"},
          "false without shared experts", "true");
}

MixtureOfExperts::MixtureOfExperts(const MoeConfig& config, const Scope& scope) : config_(config) {
  validate(config);
  router_ = scope.weight("router.weight", {config.experts, config.expert.width});
  if (config.routing.bias) router_bias_ = scope.zeros("router.bias", {config.experts});
  if (config.routing.correction) correction_ = scope.zeros("router.correction", {config.experts});
  experts_ = make_experts(config.expert, scope / "experts", config.experts);
  shared_ = make_experts(config.expert, scope / "shared", config.shared);
  if (config.shared_gate)
    shared_gate_ = scope.weight("shared_gate.weight", {1, config.expert.width});
}

// y + Σ expert(x), times sigmoid(w · x) where there is a gate.
Tensor MixtureOfExperts::add_shared(const Tensor& y, const Tensor& tokens) const {
  if (!shared_gate_.defined()) {
    Tensor sum = y;
    for (const FeedForward& expert : shared_) sum = ops::add(sum, expert.forward(tokens));
    return sum;
  }
  Tensor all = shared_.front().forward(tokens);
  for (std::size_t s = 1; s < shared_.size(); ++s) all = ops::add(all, shared_[s].forward(tokens));
  return ops::add(y, ops::mul(all, ops::sigmoid(ops::linear(tokens, shared_gate_))));
}

MoeResult MixtureOfExperts::forward(const Tensor& x, const MoeCall& call) const {
  const Tensor tokens = ops::reshape(x, {-1, config_.expert.width});  // [N, C]
  const RoutedCall own{config_,
                       experts_,
                       tokens,
                       route(tokens, {router_, router_bias_, correction_}, config_),
                       real_tokens(x, call.lengths, tokens.size(0)),
                       !call.lengths.defined(),
                       call.limited};
  MoeResult result;
  const bool slots = call.slots || !ops::host_sees(x.device());
  Tensor y = slots ? by_slots(own, result) : by_rows(own, result);
  y = add_shared(y, tokens);
  result.y = ops::reshape(y, x.shape());
  return result;
}

}  // namespace heddle::nn
