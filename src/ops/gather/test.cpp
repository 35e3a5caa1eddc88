#include <gtest/gtest.h>

#include "harness/harness.h"
#include "harness/values.h"
#include "ops/copy/copy.h"
#include "ops/gather/gather.h"
#include "ops/gather/gather.kernels.h"

namespace heddle::harness::gather_cases {
namespace {

// Calls f(place in the index, place in the indexed array) for every element of the index.
template <class F>
void for_places(const Shape& indexed, int dim, const Tensor& index, F f) {
  const auto ids = to_doubles(index);
  const Strides strides = contiguous_strides(indexed);
  const Shape& shape = index.shape();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    auto rest = static_cast<std::int64_t>(i);
    std::int64_t at = 0;
    for (int d = shape.rank() - 1; d >= 0; --d) {
      at += (d == dim ? static_cast<std::int64_t>(ids[i]) : rest % shape[d]) * strides[d];
      rest /= shape[d];
    }
    f(i, static_cast<std::size_t>(at));
  }
}

Tensors gathered(std::span<const Tensor> in, int dim) {
  const auto x = to_doubles(in[0]);
  std::vector<double> y(static_cast<std::size_t>(in[1].elements()));
  for_places(in[0].shape(), dim, in[1], [&](std::size_t i, std::size_t at) { y[i] = x[at]; });
  return {make_tensor(in[1].shape(), DType::f64, y)};
}

Tensors scattered(std::span<const Tensor> in, int dim) {
  auto y = to_doubles(in[0]);
  const auto source = to_doubles(in[2]);
  for_places(in[0].shape(), dim, in[1], [&](std::size_t i, std::size_t at) { y[at] += source[i]; });
  return {make_tensor(in[0].shape(), DType::f64, y)};
}

void add(const std::string& name, const Shape& x, int dim, const In& index,
         std::int64_t repeats = 8) {
  Case c;
  c.op = "gather";
  c.name = "gather " + name;
  c.inputs = {act(x), index};
  c.run = [dim](std::span<const Tensor> in) { return Tensors{ops::gather(in[0], dim, in[1])}; };
  const int d = dim < 0 ? dim + x.rank() : dim;
  c.reference = [d](std::span<const Tensor> in) { return gathered(in, d); };
  c.reduction = repeats;
  add_case(c);
  c.name = "scatter_add " + name;
  c.inputs = {act(x), index, act(index.shape)};
  c.run = [dim](std::span<const Tensor> in) {
    return Tensors{ops::scatter_add(in[0], dim, in[1], in[2])};
  };
  c.reference = [d](std::span<const Tensor> in) { return scattered(in, d); };
  add_case(c);
}

// The index of rows, repeated along the other dimensions, is an index of gather().
Tensor widened(const Tensor& index, const Shape& like) {
  Shape shape = like;
  shape[0] = index.elements();
  Shape column = shape;
  for (int i = 1; i < column.rank(); ++i) column[i] = 1;
  return views::broadcast(views::reshape(index, column), shape);
}

void add_rows(const std::string& name, const Shape& x, const In& index, std::int64_t repeats = 8) {
  Case c;
  c.op = "gather";
  c.name = "index_select " + name;
  c.inputs = {act(x), index};
  c.run = [](std::span<const Tensor> in) { return Tensors{ops::index_select(in[0], in[1])}; };
  c.reference = [](std::span<const Tensor> in) {
    const Tensor both[] = {in[0], widened(in[1], in[0].shape())};
    return gathered(both, 0);
  };
  c.reduction = repeats;
  add_case(c);
  c.name = "index_add " + name;
  Shape source = x;
  source[0] = index.shape[0];
  c.inputs = {act(x), index, act(source)};
  c.run = [](std::span<const Tensor> in) { return Tensors{ops::index_add(in[0], in[1], in[2])}; };
  c.reference = [](std::span<const Tensor> in) {
    const Tensor all[] = {in[0], widened(in[1], in[0].shape()), in[2]};
    return scattered(all, 0);
  };
  add_case(c);
}

// In place, so into a copy.
void add_put_row(const std::string& name, const Shape& rows, const In& at) {
  Case c;
  c.op = "gather";
  c.name = "put_row " + name;
  Shape row = rows;
  row[1] = 1;
  c.inputs = {act(rows), at, act(row)};
  c.run = [](std::span<const Tensor> in) {
    Tensor y = ops::clone(in[0]);
    ops::put_row(y, in[1].to(y.device()), in[2]);
    return Tensors{y};
  };
  c.reference = [](std::span<const Tensor> in) {
    auto y = to_doubles(in[0]);
    const auto v = to_doubles(in[2]);
    const auto place = static_cast<std::size_t>(to_doubles(in[1])[0]);
    const auto count = static_cast<std::size_t>(in[0].size(1));
    const std::size_t width = v.size() / static_cast<std::size_t>(in[0].size(0));
    for (std::size_t i = 0; i < v.size(); ++i)
      y[(i / width * count + place) * width + i % width] = v[i];
    return Tensors{make_tensor(in[0].shape(), DType::f64, y)};
  };
  c.gradient = false;
  add_case(c);
}

void plant() {
  using K = cpu::GatherKernels;
  add_kernel_mutant<K>("gather", "scatter_add reads one line too few", [](K& k) {
    k.scatter_add = [](const cpu::ScatterAddArgs& a) noexcept {
      cpu::ScatterAddArgs b = a;
      if (b.dim == 0 && b.shape[0] > 1) b.shape[0] -= 1;
      sound<K>().scatter_add(b);
    };
  });
  add_kernel_mutant<K>("gather", "gather steps by the index's strides", [](K& k) {
    k.gather = [](const cpu::GatherArgs& a) noexcept {
      cpu::GatherArgs b = a;
      b.strides = contiguous_strides(b.shape);
      b.strides[b.dim] = a.strides[b.dim];
      sound<K>().gather(b);
    };
  });
  add_kernel_mutant<K>("gather", "index_add forgets what was there", [](K& k) {
    k.index_add = [](const cpu::IndexAddArgs& a) noexcept {
      cpu::IndexAddArgs b = a;
      b.x = nullptr;
      sound<K>().index_add(b);
    };
  });
  add_kernel_mutant<K>("gather", "index_select leaves out the last row", [](K& k) {
    k.index_select = [](const cpu::IndexSelectArgs& a) noexcept {
      cpu::IndexSelectArgs b = a;
      b.count -= b.count > 0 ? 1 : 0;
      sound<K>().index_select(b);
    };
  });
}

const bool registered = [] {
  add("rows", {5, 4}, 0, index({3, 4}, 5));
  add("columns", {5, 7}, -1, index({5, 3}, 7, DType::i32));
  add("middle", {3, 6, 5}, 1, index({3, 9, 5}, 6));
  add("smaller index", {4, 6, 5}, 1, index({2, 3, 4}, 6));
  add("one dimension", {9}, 0, index({20}, 9));
  add("nothing", {3, 4}, 0, index({0, 4}, 3));
  add("several bundles", {40, 700}, 0, index({60, 700}, 40));
  add("several chunks", {300, 70}, 1, index({300, 90}, 70));
  add_rows("matrix", {6, 5}, index({9}, 6));
  add_rows("i32", {6, 3, 11}, index({4}, 6, DType::i32));
  add_rows("vector", {6}, index({4}, 6));
  add_rows("nothing", {3, 4}, index({0}, 3));
  add_rows("several chunks", {130, 300}, index({200}, 130));
  add_put_row("of keys", {3, 7, 2, 8}, index({1}, 7, DType::i32));
  add_put_row("the last", {2, 5, 9}, given_index({1}, {4}, DType::i32));
  add_put_row("the only one", {1, 1}, index({1}, 1, DType::i32));
  plant();
  return true;
}();

TEST(gather_errors, out_of_range) {
  const Tensor x = Tensor::zeros({3, 2});
  const Tensor bad = Tensor::from<std::int64_t>({1, 2}, {0, 3});
  const Tensor source = Tensor::zeros({1, 2});
  const Tensor row = Tensor::from<std::int32_t>({1}, {-1});
  EXPECT_THROW(ops::gather(x, 0, bad), Error);
  EXPECT_THROW(ops::scatter_add(x, 0, bad, source), Error);
  EXPECT_THROW(ops::index_select(x, row), Error);
  EXPECT_THROW(ops::index_add(x, row, source), Error);
  EXPECT_THROW(ops::gather(x, 2, Tensor::zeros({1, 2}, DType::i64)), Error);
}

TEST(gather_errors, put_row) {
  Tensor rows = Tensor::zeros({2, 3, 4});
  const Tensor row = Tensor::zeros({2, 1, 4});
  const auto at = [](std::int32_t place) { return Tensor::from<std::int32_t>({1}, {place}); };
  EXPECT_THROW(ops::put_row(rows, at(3), row), Error);
  EXPECT_THROW(ops::put_row(rows, at(-1), row), Error);
  EXPECT_THROW(ops::put_row(rows, at(0), Tensor::zeros({2, 2, 4})), Error);
  EXPECT_THROW(ops::put_row(rows, at(0), Tensor::zeros({2, 1, 4}, DType::bf16)), Error);
  EXPECT_THROW(ops::put_row(rows, Tensor::zeros({1}), row), Error);
}

TEST(gather_errors, refuses) {
  const Tensor x = Tensor::zeros({3, 2});
  const Tensor ids = Tensor::zeros({3, 2}, DType::i64);
  EXPECT_THROW(ops::gather(Tensor(), 0, ids), Error);
  EXPECT_THROW(ops::gather(x, 0, Tensor()), Error);
  EXPECT_THROW(ops::gather(x, 0, x), Error);                                  // not indices
  EXPECT_THROW(ops::gather(x, 0, Tensor::zeros({3}, DType::i64)), Error);     // rank
  EXPECT_THROW(ops::gather(x, 0, Tensor::zeros({3, 3}, DType::i64)), Error);  // too wide
  EXPECT_THROW(ops::gather(Tensor::zeros({}), 0, Tensor::zeros({}, DType::i64)), Error);
  EXPECT_THROW(ops::gather(x, 0, Tensor::zeros({3, 2}, DType::i64, Device::meta)), Error);
  EXPECT_THROW(ops::scatter_add(x, 0, ids, Tensor::zeros({2, 2})), Error);  // source's shape
  EXPECT_THROW(ops::scatter_add(x, 0, ids, Tensor::zeros({3, 2}, DType::f64)), Error);
  EXPECT_THROW(ops::index_select(x, ids), Error);                             // rank
  EXPECT_THROW(ops::index_add(x, Tensor::zeros({2}, DType::i64), x), Error);  // source's shape
}

}  // namespace
}  // namespace heddle::harness::gather_cases
