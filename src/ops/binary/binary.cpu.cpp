// binary on the CPU.
#include "backend/cpu/kernels.h"
#include "ops/binary/binary.call.h"
#include "ops/binary/binary.kernels.h"
#include "ops/support/cpu.h"

namespace heddle::cpu {

namespace {

// Strides of an operand as if it had y's shape: 0 where it is broadcast.
Strides strides_in(const Tensor& operand, const Shape& shape) {
  return operand.shape() == shape ? operand.strides() : views::broadcast(operand, shape).strides();
}

void run_binary(ops::BinaryCall& c) {
  BinaryArgs args;
  args.kind = c.kind;
  args.dtype = c.y.dtype();
  args.shape = c.y.shape();
  args.a_strides = strides_in(c.a, args.shape);
  args.b_strides = strides_in(c.b, args.shape);
  args.y_strides = c.y.strides();
  args.y = c.y.mutable_raw();
  args.a = c.a.raw();
  args.b = c.b.raw();
  args.stream = worth_streaming(c.y) && args.a != args.y;
  kernels<BinaryKernels>().forward(args);
}

}  // namespace

void add_binary_routines() { add<ops::BinaryCall>({run_binary}); }

}  // namespace heddle::cpu
