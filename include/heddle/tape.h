// Reverse-mode differentiation over coarse ops.
//
//   Tape tape;                       // from here on, ops on tensors that require a gradient are
//   Tensor loss = model(x, weights); // recorded
//   tape.backward(loss);             // weights[i].grad() now holds (or has added to it) dloss/dw
//
// A tape belongs to one thread and is spent by one backward(). Gradients add up in the leaves until
// clear_grad(). Activations are released as backward() passes them.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "heddle/tensor.h"

namespace heddle {

class VjpContext;
struct TapeState;

class Tape {
 public:
  Tape();  // becomes this thread's active tape; tapes nest
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  // y: outputs of recorded ops; cotangents: dL/dy, of the same shape and type. The first form takes
  // a tensor with one element and the cotangent 1. Throws Error on a second call, on a tensor this
  // tape does not know, and when a tensor saved for the backward pass was changed in place.
  void backward(const Tensor& loss);
  void backward(std::span<const Tensor> outputs, std::span<const Tensor> cotangents);

  std::size_t recorded_ops() const noexcept;

 private:
  friend struct TapeState;
  std::unique_ptr<TapeState> state_;
};

// Ops are not recorded on this thread while one of these lives.
class NoGrad {
 public:
  NoGrad() noexcept;
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;
};

// Runs `region` without keeping its activations; backward() runs it a second time with a tape
// (activation checkpointing). Every tensor whose gradient is wanted must be among `inputs` or be a
// leaf. The region must compute the same thing twice.
using Region = std::function<std::vector<Tensor>(std::span<const Tensor>)>;
std::vector<Tensor> recompute(const Region& region, std::span<const Tensor> inputs);

}  // namespace heddle
