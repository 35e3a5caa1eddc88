// The optimiser: its state for each parameter, and one update of all of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "nn/parameters.h"
#include "recipe/train_config.h"

namespace heddle::optim {

class Optimizer {
 public:
  // Its state begins at 0, on the device of the parameters. The store must outlive it.
  Optimizer(const recipe::TrainConfig& config, nn::Parameters& parameters);

  // √(sum of the squares of all gradients), one number on their device; not finite when one of
  // them is not.
  Tensor gradient_norm() const;

  // Updates all parameters with their gradients, which it then clears. `step` counts from 1,
  // `norm` is what gradient_norm() said: clipping goes into the update, without a pass of its own.
  // A parameter that took no part in the step has the gradient 0. Where the norm or one of the
  // `losses` of the step is not finite, parameters and state stay as they are: nothing has to be
  // read before the update.
  void step(std::int64_t step, double rate, const Tensor& norm,
            std::span<const Tensor> losses = {});

  // Its state, for checkpoints: "adamw.m.<parameter>", "adamw.v.<parameter>" or
  // "sgd.momentum.<parameter>". The tensors share their storage with the optimiser's own: a
  // checkpoint is loaded by writing into them.
  std::vector<nn::Parameter> state() const;

 private:
  struct Slots {
    Tensor first;   // adamw: m; sgd: the momentum, if any
    Tensor second;  // adamw: v
  };

  static Tensor gradient_of(const Tensor& weight);
  double decay_of(const Tensor& weight) const;
  void adamw(std::int64_t step, double rate, const Tensor& scale);
  void sgd(double rate, const Tensor& scale);

  recipe::TrainConfig config_;
  nn::Parameters& parameters_;
  std::vector<Slots> slots_;  // as parameters_.all()
};

}  // namespace heddle::optim
