// reduce, gather and its kin.
#include "cuda/sides.h"
#include "ops/gather/gather.call.h"
#include "ops/reduce/reduce.call.h"

namespace heddle::cuda_tests {

namespace {

using backend::launch;
using ops::Reduce;

constexpr DType kComputed[] = {DType::f32, DType::bf16, DType::f64};

std::string named(const char* what, DType dtype) {
  return std::string(what) + " " + std::string(to_string(dtype));
}

void reductions() {
  const ops::ReduceSplit splits[] = {{1, 1, 1},     {7, 33, 1},   {3, 4096, 1}, {2, 4097, 1},
                                     {1, 70001, 1}, {5, 128, 17}, {2, 129, 40}, {1, 3000, 5},
                                     {600, 3, 2},   {4, 0, 3}};
  for (const DType dtype : kComputed)
    for (const ops::ReduceSplit& s : splits)
      for (const Reduce kind : {Reduce::sum, Reduce::max}) {
        if (kind == Reduce::max && s.length == 0) continue;
        const std::string what = named(kind == Reduce::sum ? "sum" : "max", dtype) + " of " +
                                 to_string(Shape{s.outer, s.length, s.inner});
        const Sides x = normals({s.outer, s.length, s.inner}, dtype);
        Sides y = empty({s.outer, 1, s.inner}, dtype), dx = empty(x[0].shape(), dtype);
        const Sides dy = normals({s.outer, 1, s.inner}, dtype);
        on_each([&](std::size_t side) { launch(ops::ReduceCall{kind, s, 0.5, x[side], y[side]}); });
        judge(what, y, tolerance_of(dtype, s.length + 1));
        if (kind == Reduce::sum) continue;
        Sides most = empty({s.outer, 1, s.inner}, dtype);
        on_each([&](std::size_t side) {
          launch(ops::ReduceCall{kind, s, 1, x[side], most[side]});
          launch(ops::MaxBackwardCall{s, x[side], most[side], dy[side], dx[side]});
        });
        judge(what + ", backward", dx, tolerance_of(dtype));
      }
}

void gathers() {
  for (const DType dtype : kComputed)
    for (const DType index : {DType::i32, DType::i64}) {
      const std::string what = named("", dtype) + " " + std::string(to_string(index));
      for (int dim = 0; dim < 3; ++dim) {
        const Sides x = normals({9, 11, 13}, dtype);
        const Sides ids = indices({8, 9, 9}, dim == 0 ? 9 : dim == 1 ? 11 : 13, index);
        Sides y = empty({8, 9, 9}, dtype);
        const Sides source = normals({8, 9, 9}, dtype);
        Sides sum = zeros({9, 11, 13}, dtype == DType::f64 ? DType::f64 : DType::f32);
        on_each([&](std::size_t s) {
          launch(ops::GatherCall{dim, ids[s], x[s], y[s]});
          launch(ops::ScatterAddCall{dim, ids[s], source[s], sum[s]});
        });
        judge("gather" + what, y, 0);
        judge("scatter_add" + what, sum, tolerance_of(sum[0].dtype(), 9));
      }
      const Sides x = normals({300, 5}, dtype), ids = indices({5001}, 300, index);
      const Sides source = normals({5001, 5}, dtype);
      Sides y = empty({5001, 5}, dtype), added = empty({300, 5}, dtype);
      Sides alone = empty({300, 5}, dtype);
      const Tensor none;
      on_each([&](std::size_t s) {
        launch(ops::IndexSelectCall{ids[s], x[s], y[s]});
        launch(ops::IndexAddCall{ids[s], x[s], source[s], added[s]});
        launch(ops::IndexAddCall{ids[s], none, source[s], alone[s]});
      });
      judge("index_select" + what, y, 0);
      judge("index_add" + what, added, tolerance_of(dtype, 40));
      judge("index_add to nothing" + what, alone, tolerance_of(dtype, 40));
    }
}

// A single row, and none that is named.
void few_rows() {
  struct Size {
    std::int64_t rows, count;
  };
  const Tensor none;
  for (const Size size : {Size{1, 500}, Size{257, 4000}, Size{10, 0}}) {
    const Sides ids = indices({size.count}, size.rows, DType::i64);
    const Sides source = normals({size.count, 1}, DType::f32);
    Sides y = empty({size.rows, 1}, DType::f32);
    on_each([&](std::size_t s) { launch(ops::IndexAddCall{ids[s], none, source[s], y[s]}); });
    judge("index_add of " + std::to_string(size.rows) + " rows", y,
          tolerance_of(DType::f32, size.count + 1));
  }
}

// More rows than 16 bits name; the mock device would ask every row for every index. Sums are made
// in the order of the indices, so the bits are known.
void many_rows() {
  constexpr std::int64_t kRows = 70000, kCount = 300000;
  const Tensor ids = indices({kCount}, kRows, DType::i64)[0];
  const Tensor source = normals({kCount, 1}, DType::f32)[0];
  Tensor y = Tensor::empty({kRows, 1}, DType::f32, ids.device());
  const Tensor none;
  launch(ops::IndexAddCall{ids, none, source, y});
  const std::vector<std::int64_t> at = ids.to_vector<std::int64_t>();
  const std::vector<float> terms = source.to_vector<float>();
  std::vector<float> sums(static_cast<std::size_t>(kRows));
  for (std::size_t i = 0; i < at.size(); ++i) sums[static_cast<std::size_t>(at[i])] += terms[i];
  judge_true("index_add of 70,000 rows", y.to_vector<float>() == sums);
}

}  // namespace

void test_sums() {
  reductions();
  gathers();
  few_rows();
  many_rows();
}

}  // namespace heddle::cuda_tests
