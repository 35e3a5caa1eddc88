#include <string>
#include <utility>

#include "autograd/nested.h"
#include "autograd/receive.h"
#include "autograd/record.h"
#include "heddle/tape.h"

namespace heddle {

namespace {

// Leaves with the same storage as `inputs`, so that a tape of its own can differentiate the region.
std::vector<Tensor> as_leaves(const std::vector<autograd::Saved>& inputs, VjpContext& context) {
  std::vector<Tensor> leaves;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Tensor leaf = inputs[i].get().detach();
    if (context.needs(static_cast<int>(i))) leaf.set_requires_grad(true);
    leaves.push_back(std::move(leaf));
  }
  return leaves;
}

void differentiate(const Region& region, const std::vector<autograd::Saved>& saved,
                   std::size_t output_count, VjpContext& context) {
  std::vector<Tensor> leaves = as_leaves(saved, context);
  const std::unique_ptr<Tape> tape = autograd::nested_tape();
  std::vector<Tensor> outputs;
  {
    const autograd::GradAgain recording_on;
    outputs = region(leaves);
  }
  if (outputs.size() != output_count)
    fail(ErrorCode::autograd, "recompute", "the region gave another number of outputs than before",
         std::to_string(output_count), std::to_string(outputs.size()));
  std::vector<Tensor> wanted;
  std::vector<Tensor> cotangents;
  const autograd::GradAgain recording_on;  // for tracked() to see the inner tape
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (const Tensor& g = context.cotangent(static_cast<int>(i));
        g.defined() && autograd::tracked({&outputs[i]})) {  // others depend on constants only
      wanted.push_back(outputs[i]);
      cotangents.push_back(g);
    }
  if (wanted.empty()) return;
  tape->backward(wanted, cotangents);
  for (std::size_t i = 0; i < leaves.size(); ++i)
    if (const Tensor g = leaves[i].grad(); g.defined()) context.add(static_cast<int>(i), g);
}

}  // namespace

std::vector<Tensor> recompute(const Region& region, std::span<const Tensor> inputs) {
  if (!autograd::recording()) return region(inputs);
  std::vector<Tensor> outputs;
  // Leaves that the region uses besides get their gradients from its own tape. As inputs of the op
  // they tell this one where they are used.
  autograd::NoteLeaves notes;
  {
    const NoGrad no_grad;
    outputs = region(inputs);
  }
  std::vector<const Tensor*> input_pointers;
  std::vector<autograd::Saved> saved;
  for (const Tensor& x : inputs) {
    input_pointers.push_back(&x);
    saved.emplace_back(x);
  }
  for (const Tensor& leaf : notes.leaves()) input_pointers.push_back(&leaf);
  std::vector<Tensor*> output_pointers;
  for (Tensor& y : outputs) {
    y = y.detach();  // a region may hand an input through; its output is a tensor of its own
    output_pointers.push_back(&y);
  }
  auto vjp = [region, saved, count = outputs.size()](VjpContext& c) {
    differentiate(region, saved, count, c);
  };
  autograd::record_vjp("recompute", input_pointers, output_pointers,
                       std::make_unique<autograd::LambdaVjp<decltype(vjp)>>(std::move(vjp)));
  return outputs;
}

}  // namespace heddle
