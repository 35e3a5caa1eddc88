// How an op puts itself on the tape.
//
//   if (autograd::tracked({&x, &gain}))
//     autograd::record("rms_norm", {&x, &gain}, {&y},
//                      [x = Saved(x), gain = Saved(gain)](VjpContext& c) { ... c.add(0, dx); });
#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <utility>

#include "heddle/tape.h"

namespace heddle {

// The arguments of a vector-Jacobian product: the cotangents of the op's outputs, and a place to
// put those of its inputs.
class VjpContext {
 public:
  // dL/d(output i); undefined when nothing depended on that output. An op with one output is only
  // called when it is defined.
  const Tensor& cotangent(int i = 0) const;
  bool needs(int input) const;              // whether anyone wants the gradient of this input
  void add(int input, const Tensor& grad);  // checked against the input's shape and type

  // The sum of this input's gradients so far, for an op that can add its own to it in place and
  // add() the result. The tape has none from then on. Undefined where there is none yet, or where
  // it is not the tape's alone to change.
  Tensor take_sum(int input);

 private:
  friend struct TapeState;
  VjpContext(TapeState& tape, std::size_t entry) : tape_(tape), entry_(entry) {}
  TapeState& tape_;
  std::size_t entry_;
};

namespace autograd {

// A tensor kept for the backward pass. get() throws Error if it was changed in place since.
class Saved {
 public:
  explicit Saved(const Tensor& tensor)
      : tensor_(tensor), version_(tensor.defined() ? tensor.version() : 0) {}
  const Tensor& get() const;

 private:
  Tensor tensor_;
  std::uint64_t version_;
};

// Undoes any NoGrad around it: recomputation records although backward() runs without recording.
class GradAgain {
 public:
  GradAgain() noexcept;
  ~GradAgain();
  GradAgain(const GradAgain&) = delete;
  GradAgain& operator=(const GradAgain&) = delete;

 private:
  int depth_;
};

class Vjp {
 public:
  virtual ~Vjp() = default;
  virtual void run(VjpContext& context) = 0;
};

using Inputs = std::span<const Tensor* const>;
using Outputs = std::span<Tensor* const>;

// Whether a tape is recording and any of these (undefined ones are passed over) is on it.
bool tracked(std::initializer_list<const Tensor*> inputs);
bool tracked(Inputs inputs);
bool recording() noexcept;
// Whether a tape is there, also where NoGrad keeps it from recording: training, not inference.
bool taping() noexcept;

void record_vjp(const char* op, Inputs inputs, Outputs outputs, std::unique_ptr<Vjp> vjp);

template <class F>
class LambdaVjp final : public Vjp {
 public:
  explicit LambdaVjp(F f) : f_(std::move(f)) {}
  void run(VjpContext& context) override { f_(context); }

 private:
  F f_;
};

template <class F>
void record(const char* op, std::initializer_list<const Tensor*> inputs,
            std::initializer_list<Tensor*> outputs, F vjp) {
  record_vjp(op, Inputs(inputs.begin(), inputs.size()), Outputs(outputs.begin(), outputs.size()),
             std::make_unique<LambdaVjp<F>>(std::move(vjp)));
}

// For an op that has no gradient: backward() throws and names it, instead of cutting the graph.
void record_without_gradient(const char* op, std::initializer_list<const Tensor*> inputs,
                             std::initializer_list<Tensor*> outputs);

}  // namespace autograd
}  // namespace heddle
