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
  const PurposeScope purpose(Purpose::optimizer);
  for (const nn::Parameter& p : parameters.all()) {
    Slots slots;
    const bool adamw = config.optimizer == recipe::OptimizerKind::adamw;
    if (adamw || config.momentum > 0) slots.first = zeros_like(p.tensor);
    if (adamw) slots.second = zeros_like(p.tensor);
    slots_.push_back(slots);
  }
}

Tensor Optimizer::gradient_norm() const {
  std::vector<Tensor> grads;
  for (const nn::Parameter& p : parameters_.all())
    if (Tensor grad = p.tensor.grad(); grad.defined()) grads.push_back(std::move(grad));
  if (grads.empty() && !slots_.empty())
    return Tensor::zeros({}, DType::f64, parameters_.all().front().tensor.device());
  return ops::global_norm(grads);
}

void Optimizer::step(std::int64_t step, double rate, const Tensor& norm,
                     std::span<const Tensor> losses) {
  const double limit = config_.clip > 0 ? config_.clip : std::numeric_limits<double>::infinity();
  const Tensor scale = ops::clip_scale(norm, limit, losses);
  if (config_.optimizer == recipe::OptimizerKind::adamw)
    adamw(step, rate, scale);
  else
    sgd(rate, scale);
  for (nn::Parameter& p : parameters_.all()) p.tensor.clear_grad();
}

Tensor Optimizer::gradient_of(const Tensor& weight) {
  if (Tensor grad = weight.grad(); grad.defined()) return grad;
  const PurposeScope purpose(Purpose::gradients);
  return zeros_like(weight);
}

// Gains and biases belong at 1 and wherever they are needed, not at 0.
double Optimizer::decay_of(const Tensor& weight) const {
  return weight.rank() >= 2 ? config_.weight_decay : 0;
}

void Optimizer::adamw(std::int64_t step, double rate, const Tensor& scale) {
  ops::AdamWOptions options;
  options.lr = rate;
  options.beta1 = config_.beta1;
  options.beta2 = config_.beta2;
  options.eps = config_.epsilon;
  options.step = step;
  options.grad_scale = scale;
  const std::vector<nn::Parameter>& all = parameters_.all();
  std::vector<ops::AdamWParameter> updates;
  updates.reserve(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Tensor& weight = all[i].tensor;
    updates.push_back(
        {weight, gradient_of(weight), slots_[i].first, slots_[i].second, decay_of(weight)});
  }
  ops::adamw(updates, options);
}

void Optimizer::sgd(double rate, const Tensor& scale) {
  ops::SgdOptions options;
  options.lr = rate;
  options.momentum = config_.momentum;
  options.nesterov = config_.nesterov;
  options.grad_scale = scale;
  const std::vector<nn::Parameter>& all = parameters_.all();
  std::vector<ops::SgdParameter> updates;
  updates.reserve(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Tensor& weight = all[i].tensor;
    updates.push_back({weight, gradient_of(weight), slots_[i].first, decay_of(weight)});
  }
  ops::sgd(updates, options);
}

std::vector<nn::Parameter> Optimizer::state() const {
  const bool adamw = config_.optimizer == recipe::OptimizerKind::adamw;
  std::vector<nn::Parameter> all;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const std::string& name = parameters_.all()[i].name;
    if (slots_[i].first.defined())
      all.push_back({(adamw ? "adamw.m." : "sgd.momentum.") + name, slots_[i].first});
    if (slots_[i].second.defined()) all.push_back({"adamw.v." + name, slots_[i].second});
  }
  return all;
}

}  // namespace heddle::optim
