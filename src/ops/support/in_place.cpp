#include "ops/support/in_place.h"

#include <string>

#include "autograd/record.h"

namespace heddle::ops {

void check_in_place(const Arg& a) {
  check_compute(a);
  if (!a.tensor.contiguous())
    fail(ErrorCode::invalid_argument, a.op, std::string("argument ") + a.name,
         "a tensor in row-major order",
         a.tensor.describe() + " with strides " + to_string(a.tensor.strides()));
  if (autograd::tracked({&a.tensor}))
    fail(ErrorCode::autograd, a.op,
         std::string("argument ") + a.name + ": a recorded tensor cannot be changed in place",
         "tensors outside of the tape, or a NoGrad scope");
}

}  // namespace heddle::ops
