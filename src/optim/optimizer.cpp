#include "optim/optimizer.h"

#include <limits>

#include "heddle/memory.h"
#include "ops/adamw/adamw.h"
#include "ops/clip_grad/clip_grad.h"
#include "ops/sgd/sgd.h"

namespace heddle::optim {

namespace {

Tensor zeros_like(const Tensor& x) { return Tensor::zeros(x.shape(), x.dtype(), x.device()); }

}  // namespace

Optimizer::Optimizer(const recipe::TrainConfig& config, nn::Parameters& parameters)
    : config_(config), parameters_(parameters) {
  for (std::size_t i = 0; i < parameters.all().size(); ++i)
    add_slots(i, parameters.all()[i].tensor);
}

Optimizer::Optimizer(const recipe::TrainConfig& config, nn::Parameters& parameters,
                     std::span<const ParameterSlice> slices)
    : config_(config), parameters_(parameters) {
  for (const ParameterSlice& s : slices) {
    const Tensor& whole = parameters.all()[s.parameter].tensor;
    const Tensor flat = views::reshape(whole.detach(), {whole.elements()});
    add_slots(s.parameter, views::slice(flat, 0, s.begin, s.end));
  }
}

void Optimizer::add_slots(std::size_t parameter, const Tensor& weight) {
  const PurposeScope purpose(Purpose::optimizer);
  Slots slots;
  slots.parameter = parameter;
  slots.weight = weight;
  // Gains and biases belong at 1 and wherever they are needed, not at 0.
  const Tensor& whole = parameters_.all()[parameter].tensor;
  slots.decay = whole.rank() >= 2 ? config_.weight_decay : 0;
  const bool adamw = config_.optimizer == recipe::OptimizerKind::adamw;
  if (adamw || config_.momentum > 0) slots.first = zeros_like(weight);
  if (adamw) slots.second = zeros_like(weight);
  slots_.push_back(slots);
}

Tensor Optimizer::gradient_norm() const {
  std::vector<Tensor> grads;
  for (const nn::Parameter& p : parameters_.all())
    if (Tensor grad = p.tensor.grad(); grad.defined()) grads.push_back(std::move(grad));
  if (grads.empty() && !slots_.empty())
    return Tensor::zeros({}, DType::f64, parameters_.all().front().tensor.device());
  return ops::global_norm(grads);
}

Tensor Optimizer::clip_scale(const Tensor& norm, std::span<const Tensor> losses) const {
  const double limit = config_.clip > 0 ? config_.clip : std::numeric_limits<double>::infinity();
  return ops::clip_scale(norm, limit, losses);
}

void Optimizer::step(std::int64_t step, double rate, const Tensor& norm,
                     std::span<const Tensor> losses) {
  const Tensor scale = clip_scale(norm, losses);
  std::vector<Tensor> gradients;
  gradients.reserve(slots_.size());
  for (const Slots& s : slots_) gradients.push_back(gradient_of(s.weight));
  update(step, rate, scale, gradients);
  gradients.clear();
  for (nn::Parameter& p : parameters_.all()) p.tensor.clear_grad();
}

void Optimizer::step_slices(std::int64_t step, double rate, const Tensor& norm,
                            std::span<const Tensor> losses, std::span<const Tensor> gradients) {
  if (slots_.empty()) return;
  update(step, rate, clip_scale(norm, losses), gradients);
}

Tensor Optimizer::gradient_of(const Tensor& weight) {
  if (Tensor grad = weight.grad(); grad.defined()) return grad;
  const PurposeScope purpose(Purpose::gradients);
  return zeros_like(weight);
}

void Optimizer::update(std::int64_t step, double rate, const Tensor& scale,
                       std::span<const Tensor> gradients) {
  if (config_.optimizer == recipe::OptimizerKind::adamw) {
    ops::AdamWOptions options;
    options.lr = rate;
    options.beta1 = config_.beta1;
    options.beta2 = config_.beta2;
    options.eps = config_.epsilon;
    options.step = step;
    options.grad_scale = scale;
    std::vector<ops::AdamWParameter> updates;
    updates.reserve(slots_.size());
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      const Slots& s = slots_[i];
      updates.push_back({s.weight, gradients[i], s.first, s.second, s.decay});
    }
    ops::adamw(updates, options);
    return;
  }
  ops::SgdOptions options;
  options.lr = rate;
  options.momentum = config_.momentum;
  options.nesterov = config_.nesterov;
  options.grad_scale = scale;
  std::vector<ops::SgdParameter> updates;
  updates.reserve(slots_.size());
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const Slots& s = slots_[i];
    updates.push_back({s.weight, gradients[i], s.first, s.decay});
  }
  ops::sgd(updates, options);
}

std::vector<nn::Parameter> Optimizer::state() const {
  const bool adamw = config_.optimizer == recipe::OptimizerKind::adamw;
  std::vector<nn::Parameter> all;
  for (const Slots& s : slots_) {
    const std::string& name = parameters_.all()[s.parameter].name;
    if (s.first.defined()) all.push_back({(adamw ? "adamw.m." : "sgd.momentum.") + name, s.first});
    if (s.second.defined()) all.push_back({"adamw.v." + name, s.second});
  }
  return all;
}

}  // namespace heddle::optim
