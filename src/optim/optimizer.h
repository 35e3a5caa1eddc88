// The optimiser: its state for each parameter, and one update of all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "nn/parameters.h"
#include "recipe/train_config.h"

namespace heddle::optim {

// Elements [begin, end) of a parameter, counted as they lie in memory.
struct ParameterSlice {
  std::size_t parameter = 0;  // as nn::Parameters::all()
  std::int64_t begin = 0, end = 0;
};

class Optimizer {
 public:
  // Its state begins at 0, on the device of the parameters. The store must outlive it.
  Optimizer(const recipe::TrainConfig& config, nn::Parameters& parameters);

  // The same for some of their elements: it has state for these, and updates them alone.
  Optimizer(const recipe::TrainConfig& config, nn::Parameters& parameters,
            std::span<const ParameterSlice> slices);

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

  // The same with gradients from elsewhere, one for each slice; those of the parameters stay.
  void step_slices(std::int64_t step, double rate, const Tensor& norm,
                   std::span<const Tensor> losses, std::span<const Tensor> gradients);

  // Its state, for checkpoints: "adamw.m.<parameter>", "adamw.v.<parameter>" or
  // "sgd.momentum.<parameter>". The tensors share their storage with the optimiser's own: a
  // checkpoint is loaded by writing into them. Of slices each tensor is one of a slice.
  std::vector<nn::Parameter> state() const;

 private:
  struct Slots {
    std::size_t parameter = 0;
    Tensor weight;  // the parameter, or a slice of it
    double decay = 0;
    Tensor first;   // adamw: m; sgd: the momentum, if any
    Tensor second;  // adamw: v
  };

  void add_slots(std::size_t parameter, const Tensor& weight);
  static Tensor gradient_of(const Tensor& weight);
  Tensor clip_scale(const Tensor& norm, std::span<const Tensor> losses) const;
  void update(std::int64_t step, double rate, const Tensor& scale,
              std::span<const Tensor> gradients);

  recipe::TrainConfig config_;
  nn::Parameters& parameters_;
  std::vector<Slots> slots_;
};

}  // namespace heddle::optim
