#include "ops/view/view.h"

#include <array>

#include "ops/copy/copy.h"
#include "ops/reduce/reduce.h"
#include "ops/support/op.h"

namespace heddle::ops {

// dx = dy in x's shape
Tensor reshape(const Tensor& x, const Shape& shape) {
  check_defined({"reshape", "x", x});
  const Shape target = views::resolve_reshape(x, shape);
  if (!views::can_reshape(x, target)) return reshape(contiguous(x), target);
  Tensor y = views::reshape(x, target);
  if (tracked({&x}))
    record("reshape", {&x}, {&y}, [from = x.shape()](VjpContext& c) {
      c.add(0, views::reshape(dense(c.cotangent()), from));
    });
  return y;
}

// dx = dyᵀ
Tensor transpose(const Tensor& x, int dim0, int dim1) {
  check_defined({"transpose", "x", x});
  Tensor y = views::transpose(x, dim0, dim1);
  if (tracked({&x}))
    record("transpose", {&x}, {&y},
           [dim0, dim1](VjpContext& c) { c.add(0, views::transpose(c.cotangent(), dim0, dim1)); });
  return y;
}

// dx = dy in the inverse order
Tensor permute(const Tensor& x, std::span<const int> order) {
  check_defined({"permute", "x", x});
  Tensor y = views::permute(x, order);
  if (tracked({&x})) {
    std::array<int, kMaxRank> inverse{};
    for (int i = 0; i < x.rank(); ++i) {
      const int from = normalize_dim(order[static_cast<std::size_t>(i)], x.rank(), "permute");
      inverse[static_cast<std::size_t>(from)] = i;
    }
    record("permute", {&x}, {&y}, [inverse, rank = x.rank()](VjpContext& c) {
      c.add(0, views::permute(c.cotangent(),
                              std::span(inverse.data(), static_cast<std::size_t>(rank))));
    });
  }
  return y;
}

// dx = dy inside of the slice, 0 elsewhere
Tensor slice(const Tensor& x, int dim, std::int64_t begin, std::int64_t end, std::int64_t step) {
  check_defined({"slice", "x", x});
  Tensor y = views::slice(x, dim, begin, end, step);
  if (tracked({&x}))
    record("slice", {&x}, {&y}, [from = x.shape(), dim, begin, end, step](VjpContext& c) {
      const Tensor& dy = c.cotangent();
      Tensor dx = Tensor::zeros(from, dy.dtype(), dy.device());
      Tensor part = views::slice(dx, dim, begin, end, step);
      copy_into(part, dy);
      c.add(0, dx);
    });
  return y;
}

// dx = sum of dy over the copies
Tensor broadcast_to(const Tensor& x, const Shape& shape) {
  if (!is_half(x)) check_compute({"broadcast_to", "x", x});  // f16: sum_to() widens the gradient
  Tensor y = views::broadcast(x, shape);
  if (tracked({&x}))
    record("broadcast_to", {&x}, {&y},
           [from = x.shape()](VjpContext& c) { c.add(0, sum_to(c.cotangent(), from)); });
  return y;
}

}  // namespace heddle::ops
