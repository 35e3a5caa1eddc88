#include "optim/adamw.h"

#include <utility>

#include "optim/optimizer.h"
#include "recipe/train_config.h"

namespace heddle::optim {

namespace {

// A recipe's [train] knows what the numbers may be: a configuration that it would refuse is refused
// here in the same words.
recipe::TrainConfig checked(recipe::TrainConfig config) {
  config.steps = config.batch = 1;
  recipe::validate(config);
  return config;
}

recipe::TrainConfig train_config(const AdamWConfig& c) {
  recipe::TrainConfig t;
  t.optimizer = recipe::OptimizerKind::adamw;
  t.learning_rate = c.rate;
  t.beta1 = c.beta1;
  t.beta2 = c.beta2;
  t.epsilon = c.epsilon;
  t.weight_decay = c.weight_decay;
  t.clip = c.clip;
  return checked(t);
}

recipe::TrainConfig train_config(const SgdConfig& c) {
  recipe::TrainConfig t;
  t.optimizer = recipe::OptimizerKind::sgd;
  t.learning_rate = c.rate;
  t.momentum = c.momentum;
  t.nesterov = c.nesterov;
  t.weight_decay = c.weight_decay;
  t.clip = c.clip;
  return checked(t);
}

}  // namespace

StepByStep::StepByStep(std::unique_ptr<Optimizer> optimizer, double rate)
    : optimizer_(std::move(optimizer)), rate_(rate) {}
StepByStep::~StepByStep() = default;
StepByStep::StepByStep(StepByStep&&) noexcept = default;

Tensor StepByStep::step() { return step(rate_); }

Tensor StepByStep::step(double rate) {
  Tensor norm = optimizer_->gradient_norm();
  optimizer_->step(++steps_, rate, norm);
  return norm;
}

AdamW::AdamW(nn::Parameters& parameters, const AdamWConfig& config)
    : StepByStep(std::make_unique<Optimizer>(train_config(config), parameters), config.rate) {}

Sgd::Sgd(nn::Parameters& parameters, const SgdConfig& config)
    : StepByStep(std::make_unique<Optimizer>(train_config(config), parameters), config.rate) {}

}  // namespace heddle::optim
