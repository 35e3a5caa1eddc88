// Gradients of leaves as soon as they are complete, for those who need not keep all of them until
// the end of a backward pass.
//
//   autograd::ReceiveGradients receive([](Tensor& leaf) { send(leaf.grad()); leaf.clear_grad(); });
//   tape.backward(loss);
//
// A leaf's gradient is complete when the op that used the leaf first has been differentiated: the
// backward pass comes by it last. While activations disappear, gradients need not appear.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "heddle/tensor.h"

namespace heddle::autograd {

// leaf.grad() is what the leaf would have after the pass: its gradient added to what was there
// before. It is undefined where nothing arrived. The receiver may take and clear it.
using GradientReceiver = std::function<void(Tensor& leaf)>;

// A backward pass that this thread begins while it lives tells the receiver of each leaf on its
// tape, once: those of recomputed regions as well, whose own tapes tell nobody. What the receiver
// throws ends the pass. Without a receiver leaves get their gradients at the end of it.
class ReceiveGradients {
 public:
  explicit ReceiveGradients(GradientReceiver receiver);
  ~ReceiveGradients();
  ReceiveGradients(const ReceiveGradients&) = delete;
  ReceiveGradients& operator=(const ReceiveGradients&) = delete;

 private:
  GradientReceiver receiver_;
  const GradientReceiver* outer_;
};

// The leaves that ops on this thread use while it lives, each once, whether they are recorded or
// not. A region that is recomputed will use them again, on a tape that the outer one cannot see.
class NoteLeaves {
 public:
  NoteLeaves();
  ~NoteLeaves();
  NoteLeaves(const NoteLeaves&) = delete;
  NoteLeaves& operator=(const NoteLeaves&) = delete;

  const std::vector<Tensor>& leaves() const { return leaves_; }
  void note(const Tensor& tensor);

 private:
  std::vector<Tensor> leaves_;
  NoteLeaves* outer_;
};

}  // namespace heddle::autograd
