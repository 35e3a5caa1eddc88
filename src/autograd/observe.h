// Observing ops, for finding where a bad value came from. Without an observer, an op pays for one
// check of a pointer.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "heddle/tensor.h"

namespace heddle::autograd {

// One op on the tape after its kernel ran, or after its vector-Jacobian product did.
struct OpEvent {
  const char* op = "";
  std::size_t number = 0;  // of the op on its tape, from 0
  bool backward = false;
  // forward: the op's inputs and outputs. backward: those of its inputs that are leaves, and the
  // gradients of its inputs as summed up to here; undefined where there is none.
  std::vector<Tensor> inputs;
  std::vector<Tensor> values;
};

using OpObserver = std::function<void(const OpEvent&)>;

// Calls the observer for each op that this thread records or differentiates while it lives. It may
// throw, which ends the pass. The innermost one counts.
class ObserveOps {
 public:
  explicit ObserveOps(OpObserver observer);
  ~ObserveOps();
  ObserveOps(const ObserveOps&) = delete;
  ObserveOps& operator=(const ObserveOps&) = delete;

 private:
  OpObserver observer_;
  const OpObserver* outer_;
};

}  // namespace heddle::autograd
