#include "train/optimizer.h"

#include "heddle/memory.h"
#include "ops/adamw/adamw.h"
#include "ops/clip_grad/clip_grad.h"
#include "ops/sgd/sgd.h"

namespace heddle::train {

namespace {

Tensor zeros_like(const Tensor& x) { return Tensor::zeros(x.shape(), x.dtype(), x.device()); }

}  // namespace

Optimizer::Optimizer(const TrainConfig& config, nn::ParameterStore& parameters)
    : config_(config), parameters_(parameters) {
  const PurposeScope purpose(Purpose::optimizer);
  for (const nn::Parameter& p : parameters.all()) {
    Slots slots;
    const bool adamw = config.optimizer == OptimizerKind::adamw;
    if (adamw || config.momentum > 0) slots.first = zeros_like(p.tensor);
    if (adamw) slots.second = zeros_like(p.tensor);
    slots_.push_back(slots);
  }
}

double Optimizer::gradient_norm() const {
  std::vector<Tensor> grads;
  for (const nn::Parameter& p : parameters_.all())
    if (Tensor grad = p.tensor.grad(); grad.defined()) grads.push_back(std::move(grad));
  return ops::global_norm(grads);
}

void Optimizer::step(std::int64_t step, double rate, double norm) {
  const double scale = config_.clip > 0 ? ops::clip_scale(norm, config_.clip) : 1;
  std::vector<nn::Parameter>& all = parameters_.all();
  for (std::size_t i = 0; i < all.size(); ++i) {
    update(all[i], slots_[i], step, rate, scale);
    all[i].tensor.clear_grad();
  }
}

void Optimizer::update(nn::Parameter& parameter, Slots& slots, std::int64_t step, double rate,
                       double scale) {
  Tensor& weight = parameter.tensor;
  Tensor grad = weight.grad();
  if (!grad.defined()) {
    const PurposeScope purpose(Purpose::gradients);
    grad = zeros_like(weight);
  }
  // Gains and biases belong at 1 and wherever they are needed, not at 0.
  const double decay = weight.rank() >= 2 ? config_.weight_decay : 0;
  if (config_.optimizer == OptimizerKind::adamw) {
    ops::AdamWOptions options;
    options.lr = rate;
    options.beta1 = config_.beta1;
    options.beta2 = config_.beta2;
    options.eps = config_.epsilon;
    options.weight_decay = decay;
    options.step = step;
    options.grad_scale = scale;
    ops::adamw(weight, grad, slots.first, slots.second, options);
  } else {
    ops::SgdOptions options;
    options.lr = rate;
    options.momentum = config_.momentum;
    options.nesterov = config_.nesterov;
    options.weight_decay = decay;
    options.grad_scale = scale;
    ops::sgd(weight, grad, slots.first, options);
  }
}

std::vector<nn::Parameter> Optimizer::state() const {
  const bool adamw = config_.optimizer == OptimizerKind::adamw;
  std::vector<nn::Parameter> all;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const std::string& name = parameters_.all()[i].name;
    if (slots_[i].first.defined())
      all.push_back({(adamw ? "adamw.m." : "sgd.momentum.") + name, slots_[i].first});
    if (slots_[i].second.defined()) all.push_back({"adamw.v." + name, slots_[i].second});
  }
  return all;
}

}  // namespace heddle::train
