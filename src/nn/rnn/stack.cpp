#include "nn/rnn/stack.h"

#include <string>
#include <utility>

#include "heddle/tape.h"
#include "nn/require.h"
#include "ops/binary/binary.h"
#include "ops/dropout/dropout.h"

namespace heddle::nn {

namespace {

constexpr std::uint32_t kState = 0;  // site of dropout within a layer

}  // namespace

ElmanStack::ElmanStack(const ElmanStackConfig& config, const Scope& scope) : config_(config) {
  require(config.layers > 0, "elman", "layers", "1 or more", static_cast<double>(config.layers));
  const ElmanConfig elman{config.width, config.width, config.bias};
  for (std::int64_t i = 0; i < config.layers; ++i) {
    const Scope own = scope / "layers" / i;
    std::optional<Norm> norm;
    if (config.norm) norm.emplace(*config.norm, own / "norm");
    if (config.both_ways)
      layers_.push_back({BiElman(elman, own), std::move(norm)});
    else
      layers_.push_back({ElmanLayer(elman, own), std::move(norm)});
  }
  if (config.norm && config.norm_first) norm_.emplace(*config.norm, scope / "norm");
}

std::vector<Tensor> ElmanStack::zero_states(std::int64_t batch, DType dtype, Device device) const {
  std::vector<Tensor> states(layers_.size());
  for (Tensor& h : states) h = Tensor::zeros({batch, config_.width}, dtype, device);
  return states;
}

ops::ElmanResult ElmanStack::run(std::size_t i, const Tensor& x, const ops::ElmanOptions& options,
                                 const Pass& pass) const {
  const Layer& layer = layers_[i];
  const bool before = layer.norm && config_.norm_first;
  const Tensor in = before ? layer.norm->forward(x) : x;
  ops::ElmanResult r = config_.both_ways
                           ? std::get<BiElman>(layer.elman).forward(in, options.lengths)
                           : std::get<ElmanLayer>(layer.elman).forward(in, options);
  const auto key = pass.layer(config_.first_layer + static_cast<std::int64_t>(i)).site(kState);
  if (key && config_.dropout > 0) r.y = ops::dropout(r.y, config_.dropout, *key);
  if (!layer.norm) return r;
  r.y = before ? ops::add(x, r.y) : layer.norm->join(r.y, x).y;
  return r;
}

// Keeps the inputs of the layer only; the backward pass makes the rest again.
ops::ElmanResult ElmanStack::run_again(std::size_t i, const Tensor& x,
                                       const ops::ElmanOptions& options, const Pass& pass) const {
  std::vector<Tensor> inputs = {x};
  if (options.h0.defined()) inputs.push_back(options.h0);
  const Region region = [this, i, options, pass](std::span<const Tensor> in) {
    ops::ElmanOptions own = options;
    if (own.h0.defined()) own.h0 = in[1];
    const ops::ElmanResult r = run(i, in[0], own, pass);
    return std::vector<Tensor>{r.y, r.last};
  };
  const std::vector<Tensor> out = heddle::recompute(region, inputs);
  return {out[0], out[1]};
}

ElmanStackResult ElmanStack::forward(const Tensor& input, const Tensor& lengths, const Pass& pass,
                                     std::span<const Tensor> states) const {
  require(states.empty() || !config_.both_ways, "elman", "states",
          "none: a backward layer begins at a token that is not there yet", "states");
  require(states.empty() || states.size() == layers_.size(), "elman", "states",
          "one for each of the " + std::to_string(layers_.size()) + " layers",
          static_cast<double>(states.size()));
  ElmanStackResult out{input, {}};
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    ops::ElmanOptions options;
    options.lengths = lengths;
    if (!states.empty()) options.h0 = states[i];
    const ops::ElmanResult r =
        pass.recompute ? run_again(i, out.y, options, pass) : run(i, out.y, options, pass);
    out.y = r.y;
    out.last.push_back(r.last);
  }
  if (norm_) out.y = norm_->forward(out.y);
  return out;
}

}  // namespace heddle::nn
