// Optimisers for training loops of one's own.
//
//   optim::AdamW adamw(parameters, {.rate = 3e-4});
//   tape.backward(loss);
//   adamw.step();            // and the gradients are cleared
#pragma once

#include <cstdint>
#include <memory>

#include "nn/parameters.h"

namespace heddle::optim {

class Optimizer;

// Loshchilov and Hutter 2019, with the numbers that PyTorch and MLX have for it; a recipe's [train]
// has numbers of its own, for Transformers (beta2 0.98, clip 1). Weight decay is for matrices and
// tables, not for gains and biases.
struct AdamWConfig {
  double rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
  double clip = 0;  // longest gradient of all parameters together; 0: any
};

struct SgdConfig {
  double rate = 0.1;
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;
  double clip = 0;
};

// Shared by both. A step whose gradient is not finite changes nothing.
class StepByStep {
 public:
  // One update of all parameters, which are then without gradient. Gives the length of the gradient
  // before clipping, one number on the parameters' device: reading it (item()) waits for that.
  Tensor step();
  Tensor step(double rate);  // of this step alone: for schedules

  std::int64_t steps() const { return steps_; }

 protected:
  StepByStep(std::unique_ptr<Optimizer> optimizer, double rate);
  ~StepByStep();
  StepByStep(StepByStep&&) noexcept;

 private:
  std::unique_ptr<Optimizer> optimizer_;
  double rate_;
  std::int64_t steps_ = 0;
};

// The parameters must outlive it, and all of them must have been made. Throws Error naming the
// option where a number makes no sense.
class AdamW : public StepByStep {
 public:
  explicit AdamW(nn::Parameters& parameters, const AdamWConfig& config = {});
};

class Sgd : public StepByStep {
 public:
  explicit Sgd(nn::Parameters& parameters, const SgdConfig& config = {});
};

}  // namespace heddle::optim
