#include "ops/clip_grad/clip_grad.h"

#include <string>
#include <vector>

#include "ops/binary/binary.h"
#include "ops/clip_grad/clip_grad.call.h"
#include "ops/copy/copy.h"
#include "ops/gather/gather.h"
#include "ops/reduce/reduce.h"
#include "ops/support/in_place.h"
#include "ops/support/op.h"
#include "ops/unary/unary.h"

namespace heddle::ops {

namespace {

void check_gradient(std::span<const Tensor> grads, std::size_t i) {
  const Tensor& grad = grads[i];
  const bool right = grad.defined() && grad.dtype() == DType::f32;
  if (right && grad.device() == grads[0].device()) return;  // before a name is made for it
  const std::string name = "grads[" + std::to_string(i) + "]";
  check_compute({"global_norm", name.c_str(), grad});
  check_same_device({"global_norm", name.c_str(), grad}, grads[0]);
}

void check_one_number(const Arg& a) {
  check_compute(a);
  check_shape(a, {});
}

// On a tape it is known that these have no gradient.
Tensor without_gradient(const char* op, std::span<const Tensor> inputs, Tensor y) {
  if (!autograd::recording()) return y;
  for (const Tensor& x : inputs)
    if (tracked({&x})) {
      autograd::record_without_gradient(op, {&x}, {&y});
      break;
    }
  return y;
}

}  // namespace

Tensor global_norm(std::span<const Tensor> grads) {
  for (std::size_t i = 0; i < grads.size(); ++i) check_gradient(grads, i);
  if (grads.empty()) return Tensor::zeros({}, DType::f64);
  if (!has_routine<GlobalNormCall>(grads[0]))
    return without_gradient("global_norm", grads, reference::global_norm(grads));
  std::vector<Tensor> dense_grads;
  dense_grads.reserve(grads.size());
  for (const Tensor& x : grads) dense_grads.push_back(dense(x));
  Tensor norm = Tensor::empty({}, DType::f64, grads[0].device());
  launch(GlobalNormCall{dense_grads, norm});
  return without_gradient("global_norm", grads, norm);
}

Tensor clip_scale(const Tensor& norm, double max_norm, std::span<const Tensor> losses) {
  check_one_number({"clip_scale", "norm", norm});
  for (const Tensor& loss : losses) {
    check_one_number({"clip_scale", "losses", loss});
    check_same_device({"clip_scale", "losses", loss}, norm);
  }
  if (!(max_norm > 0))  // strings are made for errors alone
    check_condition(false, "clip_scale", "max_norm", "a number above 0", std::to_string(max_norm));
  if (!has_routine<ClipScaleCall>(norm))
    return without_gradient("clip_scale", std::span(&norm, 1),
                            reference::clip_scale(norm, max_norm, losses));
  Tensor scale = Tensor::empty({}, DType::f64, norm.device());
  launch(ClipScaleCall{norm, max_norm, losses, scale});
  return without_gradient("clip_scale", std::span(&norm, 1), scale);
}

void scale_into(Tensor& x, double factor) {
  check_in_place({"scale_into", "x", x});
  if (has_routine<ScaleIntoCall>(x)) return launch(ScaleIntoCall{factor, x});
  copy_into(x, scale(x.detach(), factor));
}

namespace reference {

Tensor global_norm(std::span<const Tensor> grads) {
  Tensor sum = Tensor::zeros({}, DType::f64, grads[0].device());
  for (const Tensor& x : grads) sum = add(sum, sum_all(square(cast(x.detach(), DType::f64))));
  return sqrt(sum);
}

// 0 · x is 0, and NaN for what is not finite.
Tensor clip_scale(const Tensor& norm, double max_norm, std::span<const Tensor> losses) {
  const auto number = [&norm](double v) { return Tensor::scalar(v, DType::f64, norm.device()); };
  const Tensor length = cast(norm.detach(), DType::f64);
  const Tensor scaled = div(number(max_norm), add(length, 1e-6));
  Tensor limited = add(neg(maximum(neg(scaled), number(-1))), scale(length, 0));
  for (const Tensor& loss : losses)
    limited = add(limited, scale(cast(loss.detach(), DType::f64), 0));
  return limited;
}

// Both stand one below the other, and the number of the row is made of the scale: 0 · scale + 1 is
// 1, or NaN, which becomes 0 as an integer. So nothing has to be read to choose.
void update_into(Tensor& x, const Tensor& value, const Tensor& scale) {
  if (!scale.defined()) return copy_into(x, value);
  const Tensor row = cast(add(ops::scale(scale, 0), 1), DType::i64);
  Tensor both = Tensor::empty({2, x.elements()}, x.dtype(), x.device());
  const Tensor rows[] = {x, value};
  for (int i = 0; i < 2; ++i) {
    Tensor place = views::slice(both, 0, i, i + 1);
    copy_into(place, views::reshape(dense(rows[i]), place.shape()));
  }
  copy_into(x, views::reshape(index_select(both, views::reshape(row, {1})), x.shape()));
}

}  // namespace reference
}  // namespace heddle::ops
