#include "ops/mean_pool/mean_pool.h"

#include "ops/binary/binary.h"
#include "ops/copy/copy.h"
#include "ops/mean_pool/mean_pool.call.h"
#include "ops/reduce/reduce.h"
#include "ops/support/op.h"
#include "ops/view/view.h"

namespace heddle::ops {

namespace {

void check_mask(const Tensor& mask, const Tensor& x) {
  const Arg arg{"mean_pool", "mask", mask};
  if (mask.dtype() != DType::u8) check_index(arg);
  check_shape(arg, {x.size(0), x.size(1)});
  check_same_device(arg, x);
}

// dx[b, t] = m[b, t]·dy[b] / Σ m[b]
Tensor backward(const Shape& shape, const Tensor& mask, const Tensor& cotangent) {
  const Tensor dy = dense(cotangent);
  Tensor dx = Tensor::empty(shape, dy.dtype(), dy.device());
  launch(MeanPoolBackwardCall{mask, dy, dx});
  return dx;
}

}  // namespace

Tensor mean_pool(const Tensor& input, const Tensor& mask_given) {
  if (is_half(input)) return to_half(mean_pool(wide(input), mask_given));
  check_compute({"mean_pool", "x", input});
  check_rank({"mean_pool", "x", input}, 3);
  if (mask_given.defined()) check_mask(mask_given, input);
  if (!has_routine<MeanPoolCall>(input))
    return cast(reference::mean_pool(cast(input, parameter_dtype(input)), mask_given),
                input.dtype());
  const Tensor x = dense(input);  // [B, T, C]
  const Tensor mask = mask_given.defined() ? dense(mask_given) : mask_given;
  Tensor y = Tensor::empty({x.size(0), x.size(2)}, x.dtype(), x.device());
  launch(MeanPoolCall{x, mask, y});
  if (tracked({&input}))
    record("mean_pool", {&input}, {&y}, [shape = x.shape(), mask = Saved(mask)](VjpContext& c) {
      c.add(0, backward(shape, mask.get(), c.cotangent()));
    });
  return y;
}

namespace reference {

Tensor mean_pool(const Tensor& x, const Tensor& mask) {
  if (!mask.defined()) return mean(x, 1);
  // 0 or 1, then [B, T, 1]
  const Tensor flags = cast(mask, x.dtype());
  const Tensor ones = div(flags, maximum(flags, Tensor::full({}, 1, x.dtype(), x.device())));
  const Tensor weights = reshape(ones, {x.size(0), x.size(1), 1});
  return div(sum(mul(x, weights), 1), sum(weights, 1));
}

}  // namespace reference
}  // namespace heddle::ops
