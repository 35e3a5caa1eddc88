#include "backend/cpu/gemm/product_kernels.h"
#include "harness/harness.h"
#include "harness/values.h"
#include "ops/matmul/matmul.h"
#include "ops/view/view.h"

namespace heddle::harness::matmul_cases {
namespace {

// The definition: y[..., m, n] = Σ_k a[..., m, k] · b[..., k, n].
Tensor product(const Tensor& a, const Tensor& b) {
  const std::int64_t m = a.size(-2), k = a.size(-1), n = b.size(-1);
  const auto batch_of = [](const Tensor& x) {
    return Shape(std::span(x.shape().begin(), static_cast<std::size_t>(x.rank() - 2)));
  };
  const auto joined = [](Shape batch, std::int64_t rows, std::int64_t cols) {
    batch.push_back(rows);
    batch.push_back(cols);
    return batch;
  };
  const Shape batch = broadcast_shapes(batch_of(a), batch_of(b), "product");
  const auto va = to_doubles(views::broadcast(a, joined(batch, m, k)));
  const auto vb = to_doubles(views::broadcast(b, joined(batch, k, n)));
  std::vector<double> y(static_cast<std::size_t>(elements_of(batch) * m * n), 0.0);
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  for (std::int64_t p = 0; p < elements_of(batch); ++p)
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t l = 0; l < k; ++l)
        for (std::int64_t j = 0; j < n; ++j)
          y[at((p * m + i) * n + j)] += va[at((p * m + i) * k + l)] * vb[at((p * k + l) * n + j)];
  return make_tensor(joined(batch, m, n), DType::f64, y);
}

Case make_case(const std::string& name, const Shape& a, const Shape& b) {
  Case c;
  c.op = "matmul";
  c.name = name;
  c.inputs = {act(a), act(b)};
  c.run = [](std::span<const Tensor> in) { return Tensors{ops::matmul(in[0], in[1])}; };
  c.reference = [](std::span<const Tensor> in) { return Tensors{product(in[0], in[1])}; };
  // The gradients sum over the other two sizes.
  c.reduction = std::max({std::int64_t{1}, a[a.rank() - 1], a[a.rank() - 2], b[b.rank() - 1]});
  return c;
}

const bool registered = [] {
  add_case(make_case("1x1", {1, 1}, {1, 1}));
  add_case(make_case("odd", {7, 13}, {13, 5}));
  add_case(make_case("one row", {1, 70}, {70, 33}));
  add_case(make_case("one column", {67, 9}, {9, 1}));
  add_case(make_case("no rows", {0, 3}, {3, 4}));
  add_case(make_case("no columns", {2, 3}, {3, 0}));
  add_case(make_case("nothing to sum", {2, 0}, {0, 5}));
  add_case(make_case("no batch", {0, 2, 3}, {0, 3, 4}));
  add_case(make_case("batch", {5, 3, 7}, {5, 7, 9}));
  add_case(make_case("two batch dimensions", {2, 3, 5, 4}, {2, 3, 4, 6}));
  add_case(make_case("one b for all", {3, 2, 5, 4}, {4, 6}));
  add_case(make_case("one a for all", {5, 4}, {3, 4, 6}));
  add_case(make_case("several blocks", {150, 70}, {70, 400}));

  // Gradients of broadcast operands are sums of products that were rounded to bf16 each.
  for (const auto& [name, a, b] :
       {std::tuple{"crossed", Shape{2, 1, 5, 4}, Shape{3, 4, 6}},
        std::tuple{"outer shared", Shape{3, 2, 5, 4}, Shape{2, 4, 6}},
        std::tuple{"inner shared", Shape{3, 2, 5, 4}, Shape{3, 1, 4, 6}}}) {
    Case c = make_case(name, a, b);
    c.slack = 2;
    add_case(c);
  }

  Case views_case = make_case("transposed views", {2, 13, 7}, {2, 5, 13});
  views_case.run = [](std::span<const Tensor> in) {
    return Tensors{ops::matmul(ops::transpose(in[0], 1, 2), ops::transpose(in[1], 1, 2))};
  };
  views_case.reference = [](std::span<const Tensor> in) {
    return Tensors{product(views::transpose(in[0], 1, 2), views::transpose(in[1], 1, 2))};
  };
  add_case(views_case);

  // More matrices than are packed at a time.
  add_case(make_case("several groups", {90, 1, 40}, {90, 40, 130}));

  using K = cpu::ProductKernels;
  add_kernel_mutant<K>("matmul", "the last product of a batch is left out", [](K& k) {
    k.run = [](cpu::Operands t, const cpu::GemmJob& job) {
      cpu::GemmJob b = job;
      if (b.batch > 1) b.batch -= 1;
      sound<K>().run(t, b);
    };
  });
  add_kernel_mutant<K>("matmul", "every product takes the first b", [](K& k) {
    k.run = [](cpu::Operands t, const cpu::GemmJob& job) {
      cpu::GemmJob b = job;
      b.b_batch_stride = 0;
      sound<K>().run(t, b);
    };
  });
  add_kernel_mutant<K>("matmul", "b is packed as if it were row-major", [](K& k) {
    k.pack_b = [](cpu::Operands t, std::int64_t depth, std::int64_t n, const cpu::MatrixRef& b,
                  void* to) {
      cpu::MatrixRef r = b;
      if (r.row_stride == 1 && depth > 1) {
        r.row_stride = n;
        r.col_stride = 1;
      }
      sound<K>().pack_b(t, depth, n, r, to);
    };
  });
  return true;
}();

}  // namespace
}  // namespace heddle::harness::matmul_cases
