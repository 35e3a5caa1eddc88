// matmul: shapes on both sides of every edge of a tile, every way to lie in memory.
#include "cuda/sides.h"
#include "ops/matmul/matmul.call.h"

namespace heddle::cuda_tests {

namespace {

struct Size {
  std::int64_t m, k, n;
};

enum class Order { plain, transposed, gaps, offset };

// A matrix [..., rows, columns] that lies in memory as `order` says.
Sides matrix(const Shape& shape, DType dtype, Order order) {
  const int last = shape.rank() - 1;
  Shape stored = shape;
  switch (order) {
    case Order::plain: return normals(shape, dtype);
    case Order::transposed:
      std::swap(stored[last], stored[last - 1]);
      return view(normals(stored, dtype),
                  [last](const Tensor& x) { return views::transpose(x, last - 1, last); });
    case Order::gaps:
      stored[last] *= 2;
      return view(normals(stored, dtype), [last, stored](const Tensor& x) {
        return views::slice(x, last, 0, stored[last], 2);
      });
    case Order::offset:
      stored[last] += 1;
      return view(normals(stored, dtype), [last, stored](const Tensor& x) {
        return views::slice(x, last, 1, stored[last]);
      });
  }
  return {};
}

void judge_product(const std::string& what, const Sides& a, const Sides& b, const Shape& shape) {
  const DType dtype = a[0].dtype();
  Sides y = empty(shape, dtype);
  on_each([&](std::size_t s) { backend::launch(ops::MatmulCall{a[s], b[s], 0, y[s]}); });
  judge(what + " " + std::string(to_string(dtype)) + " " + to_string(a[0].shape()) +
            to_string(b[0].shape()),
        y, tolerance_of(dtype, 4 * a[0].size(-1) + 1));
}

void products_of(DType dtype) {
  for (const Size s : {Size{1, 1, 1}, Size{128, 64, 128}, Size{129, 33, 65}, Size{40, 200, 136},
                       Size{64, 8, 264}, Size{5, 0, 6}, Size{3, 1000, 8}})
    for (const Order left : {Order::plain, Order::transposed, Order::gaps, Order::offset})
      for (const Order right : {Order::plain, Order::transposed, Order::gaps, Order::offset})
        judge_product("product " + std::to_string(static_cast<int>(left)) +
                          std::to_string(static_cast<int>(right)),
                      matrix({s.m, s.k}, dtype, left), matrix({s.k, s.n}, dtype, right),
                      {s.m, s.n});
}

void batches_of(DType dtype) {
  const Shape batch{3, 4, 24, 16};
  judge_product("batch", normals(batch, dtype), normals({3, 4, 16, 40}, dtype), {3, 4, 24, 40});
  const auto over = [](const Shape& shape) {
    return [shape](const Tensor& x) { return views::broadcast(x, shape); };
  };
  judge_product("batch, b for all", normals(batch, dtype),
                view(normals({16, 40}, dtype), over({3, 4, 16, 40})), {3, 4, 24, 40});
  judge_product("batch, a for some", view(normals({3, 1, 24, 16}, dtype), over(batch)),
                normals({3, 4, 16, 40}, dtype), {3, 4, 24, 40});
  // Heads side by side, as attention has them.
  const auto heads = [](const Tensor& x) { return views::transpose(x, 1, 2); };
  judge_product("batch, heads", view(normals({3, 24, 4, 16}, dtype), heads),
                view(view(normals({3, 40, 4, 16}, dtype), heads),
                     [](const Tensor& x) { return views::transpose(x, 2, 3); }),
                {3, 4, 24, 40});
}

}  // namespace

void test_products() {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64}) {
    products_of(dtype);
    batches_of(dtype);
  }
  // Enough tiles for the larger ones.
  judge_product("large", normals({1100, 24}, DType::f32), normals({24, 1030}, DType::f32),
                {1100, 1030});
}

}  // namespace heddle::cuda_tests
