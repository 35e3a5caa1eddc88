#include <array>

#include "harness/harness.h"
#include "harness/values.h"
#include "ops/copy/copy.kernels.h"
#include "ops/unary/unary.h"
#include "ops/view/view.h"

namespace heddle::harness::view_cases {
namespace {

using Fn1 = std::function<Tensor(const Tensor&)>;

// `view` with the tape against the view of heddle/tensor.h without it. The square after it makes
// the gradient depend on where each element went.
void add(const char* name, const Shape& shape, const Fn1& view, const Fn1& plain,
         std::int64_t reduction = 1) {
  Case c;
  c.op = "view";
  c.name = name;
  c.inputs = {act(shape)};
  c.run = [view](std::span<const Tensor> in) { return Tensors{ops::square(view(in[0]))}; };
  c.reference = [plain](std::span<const Tensor> in) {
    Tensor y = plain(in[0]);
    std::vector<double> v = to_doubles(y);
    for (double& x : v) x *= x;
    return Tensors{make_tensor(y.shape(), DType::f64, v)};
  };
  c.reduction = reduction;
  c.slack = 2;
  add_case(c);
}

const std::array<int, 3> kOrder = {2, 0, 1};

const bool registered = [] {
  add(
      "reshape", {4, 6}, [](const Tensor& x) { return ops::reshape(x, {3, -1}); },
      [](const Tensor& x) { return views::reshape(x, {3, 8}); });
  add(
      "reshape of a transpose", {4, 6},
      [](const Tensor& x) { return ops::reshape(ops::transpose(x, 0, 1), {3, 8}); },
      [](const Tensor& x) {
        const Tensor t = views::transpose(x, 0, 1);
        return make_tensor({3, 8}, DType::f64, to_doubles(t));
      });
  add(
      "transpose", {3, 5, 2}, [](const Tensor& x) { return ops::transpose(x, -1, 0); },
      [](const Tensor& x) { return views::transpose(x, 2, 0); });
  add(
      "permute", {3, 5, 2}, [](const Tensor& x) { return ops::permute(x, kOrder); },
      [](const Tensor& x) { return views::permute(x, kOrder); });
  add(
      "slice", {7, 5}, [](const Tensor& x) { return ops::slice(x, 0, 1, 6, 2); },
      [](const Tensor& x) { return views::slice(x, 0, 1, 6, 2); });
  add(
      "slice of nothing", {7, 5}, [](const Tensor& x) { return ops::slice(x, 1, 2, 2); },
      [](const Tensor& x) { return views::slice(x, 1, 2, 2); });
  add(
      "broadcast", {3, 1}, [](const Tensor& x) { return ops::broadcast_to(x, {2, 3, 9}); },
      [](const Tensor& x) { return views::broadcast(x, {2, 3, 9}); }, 18);
  using K = cpu::CopyKernels;
  add_kernel_mutant<K>("view", "what is copied ignores its strides", [](K& k) {
    k.copy = [](const cpu::CopyArgs& a) noexcept {
      cpu::CopyArgs b = a;
      b.src_strides = contiguous_strides(b.shape);
      sound<K>().copy(b);
    };
  });
  return true;
}();

}  // namespace
}  // namespace heddle::harness::view_cases
