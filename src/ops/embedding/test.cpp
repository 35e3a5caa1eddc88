#include <gtest/gtest.h>

#include "harness/harness.h"
#include "harness/values.h"
#include "heddle/ops.h"
#include "ops/embedding/embedding.h"
#include "ops/embedding/embedding.kernels.h"

namespace heddle::harness::embedding_cases {
namespace {

Tensor rows_at(const Tensor& from, const Tensor& ids) {
  const auto table = to_doubles(from);
  const auto width = static_cast<std::size_t>(from.size(1));
  std::vector<double> out;
  for (const double id : to_doubles(ids))
    for (std::size_t c = 0; c < width; ++c)
      out.push_back(table[static_cast<std::size_t>(id) * width + c]);
  Shape shape = ids.shape();
  shape.push_back(from.size(1));
  return make_tensor(shape, DType::f64, out);
}

Tensors rows_of_table(std::span<const Tensor> in) { return {rows_at(in[0], in[1])}; }

// The second gradient of the table is added to the first one in place.
void add_used_twice(const std::string& name, In table, In ids, In more) {
  Case c;
  c.op = "embedding";
  c.name = name;
  c.f16 = table.parameter;  // a table is a parameter: not f16
  c.inputs = {std::move(table), std::move(ids), std::move(more), constant(act({1}))};
  c.run = [](std::span<const Tensor> in) {
    const DType out = in[3].dtype();
    return Tensors{ops::embedding(in[0], in[1], out), ops::embedding(in[0], in[2], out)};
  };
  c.reference = [](std::span<const Tensor> in) {
    return Tensors{rows_at(in[0], in[1]), rows_at(in[0], in[2])};
  };
  c.reduction = 8;
  add_case(c);
}

// The third input only says which type the rows are wanted in.
void add(const std::string& name, In table, In ids, std::int64_t repeats = 4) {
  Case c;
  c.op = "embedding";
  c.name = name;
  c.f16 = table.parameter;  // a table is a parameter: not f16
  c.inputs = {std::move(table), std::move(ids), constant(act({1}))};
  c.run = [](std::span<const Tensor> in) {
    return Tensors{ops::embedding(in[0], in[1], in[2].dtype())};
  };
  c.reference = rows_of_table;
  c.reduction = repeats;
  add_case(c);
}

const bool registered = [] {
  add("f32 table", param({7, 5}), index({2, 3}, 7));
  add("table in the rows' type", act({7, 5}), index({2, 3}, 7, DType::i32));
  add("one id", param({3, 33}), index({}, 3));
  add("one row", param({1, 19}), index({4}, 1), 4);
  add("no ids", param({3, 4}), index({0, 2}, 3));
  add("no columns", param({3, 0}), index({2}, 3));
  add("unused and repeated rows", param({9, 3}), given_index({6}, {4, 0, 4, 8, 4, 0}));
  add("several chunks", param({131, 300}), index({5, 37}, 131), 8);
  add_used_twice("used twice", param({9, 83}), given_index({6}, {4, 0, 4, 8, 4, 0}),
                 given_index({5}, {4, 1, 1, 4, 8}));
  add_used_twice("used twice, in several chunks", act({131, 300}), index({5, 37}, 131),
                 index({70}, 131));
  add("one row many times", param({2, 70}), index({1000}, 2), 600);

  using K = cpu::EmbeddingKernels;
  using G = cpu::EmbeddingGradientKernels;
  add_kernel_mutant<K>("embedding", "the last id is not looked up", [](K& k) {
    k.forward = [](const cpu::EmbeddingArgs& a) noexcept {
      cpu::EmbeddingArgs b = a;
      b.count -= b.count > 0 ? 1 : 0;
      sound<K>().forward(b);
    };
  });
  add_kernel_mutant<G>("embedding", "the gradient forgets the last id", [](G& k) {
    k.backward = [](const cpu::EmbeddingBackwardArgs& a) noexcept {
      cpu::EmbeddingBackwardArgs b = a;
      b.count -= b.count > 0 ? 1 : 0;
      sound<G>().backward(b);
    };
  });
  add_kernel_mutant<G>("embedding", "the gradient replaces the one of another op", [](G& k) {
    k.backward = [](const cpu::EmbeddingBackwardArgs& a) noexcept {
      cpu::EmbeddingBackwardArgs b = a;
      b.add = false;
      sound<G>().backward(b);
    };
  });
  add_kernel_mutant<G>("embedding", "unused rows of the gradient are not cleared", [](G& k) {
    k.backward = [](const cpu::EmbeddingBackwardArgs& a) noexcept {
      cpu::EmbeddingBackwardArgs b = a;
      b.rows -= b.rows > 1 ? 1 : 0;
      sound<G>().backward(b);
    };
  });
  return true;
}();

TEST(embedding_errors, names_position_and_value) {
  const Tensor table = Tensor::zeros({4, 3});
  const Tensor ids = Tensor::from<std::int32_t>({2, 3}, {0, 1, 2, 3, 4, -1});
  try {
    ops::embedding(table, ids, DType::f32);
    FAIL() << "an id out of range was accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::out_of_range);
    EXPECT_NE(std::string(e.what()).find("[1, 1]"), std::string::npos) << e.what();
    EXPECT_EQ(e.got(), "4");
    EXPECT_EQ(e.expected(), "0 to 3");
  }
  EXPECT_THROW(ops::embedding(table, Tensor::from<std::int64_t>({1}, {-1}), DType::f32), Error);
  EXPECT_THROW(
      ops::embedding(Tensor::zeros({0, 3}), Tensor::from<std::int64_t>({1}, {0}), DType::f32),
      Error);
}

TEST(embedding_errors, refuses) {
  const Tensor table = Tensor::zeros({4, 3});
  const Tensor ids = Tensor::zeros({2}, DType::i64);
  EXPECT_THROW(ops::embedding(Tensor(), ids, DType::f32), Error);
  EXPECT_THROW(ops::embedding(table, Tensor(), DType::f32), Error);
  EXPECT_THROW(ops::embedding(Tensor::zeros({4}), ids, DType::f32), Error);
  EXPECT_THROW(ops::embedding(table, Tensor::zeros({2}), DType::f32), Error);
  EXPECT_THROW(ops::embedding(table, ids, DType::f64), Error);
  EXPECT_THROW(ops::embedding(table, ids, DType::i32), Error);
  EXPECT_THROW(ops::embedding(Tensor::zeros({4, 3}, DType::f16), ids, DType::f32), Error);
  EXPECT_THROW(ops::embedding(table, Tensor::zeros({2}, DType::i64, Device::meta), DType::f32),
               Error);
}

// 300 ids below `rows`, `step` apart.
std::vector<std::int64_t> every(std::int64_t step, std::int64_t rows) {
  std::vector<std::int64_t> ids(300);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int64_t>(i) * step % rows;
  return ids;
}

// As two gradients that are made apart and then added, to the bit; and without the second table.
TEST(embedding_gradient, of_a_table_in_use_elsewhere) {
  constexpr std::int64_t kRows = 3000, kWidth = 96;
  Tensor table = make_tensor({kRows, kWidth}, DType::f32, normals(kRows * kWidth, 1));
  table.set_requires_grad(true);
  const Tensor weights = make_tensor({kRows, kWidth}, DType::f32, normals(kRows * kWidth, 2));
  const Tensor ids = Tensor::from<std::int64_t>({300}, every(7, 40));
  const Tensor factors = make_tensor({300, kWidth}, DType::f32, normals(300 * kWidth, 3));
  const auto gradient = [&](bool rows, bool all) {
    table.clear_grad();
    Tape tape;
    Tensor loss = Tensor::zeros({});
    if (rows)
      loss =
          ops::add(loss, ops::sum_all(ops::mul(ops::embedding(table, ids, DType::f32), factors)));
    if (all) loss = ops::add(loss, ops::sum_all(ops::mul(table, weights)));
    reset_peak_memory(Device::cpu);
    tape.backward(loss);
    return table.grad();
  };
  const Tensor apart = ops::add(gradient(true, false), gradient(false, true));
  table.clear_grad();
  const std::int64_t before = memory_use(Device::cpu).live;
  const Tensor together = gradient(true, true);
  EXPECT_EQ(to_doubles(together), to_doubles(apart));
  const auto table_bytes = static_cast<std::int64_t>(table.bytes());
  EXPECT_LT(memory_use(Device::cpu).peak - before, 3 * table_bytes / 2);
}

// The cases of the harness are too small to be written past the caches.
TEST(embedding_kernels, streaming_changes_nothing) {
  const Tensor table = make_tensor({9, 96}, DType::f32, normals(9 * 96, 1));
  const std::vector<std::int64_t> ids = every(5, 9);
  for (const cpu::Isa isa : cpu::available_isas())
    for (const DType dtype : {DType::f32, DType::bf16}) {
      Tensor y[2];
      for (int i = 0; i < 2; ++i) {
        y[i] = Tensor::empty({300, 96}, dtype);
        cpu::native_kernels<cpu::EmbeddingKernels>(isa).forward({i == 1, DType::f32, dtype,
                                                                 DType::i64, 300, 9, 96, ids.data(),
                                                                 table.raw(), y[i].mutable_raw()});
      }
      EXPECT_EQ(to_doubles(y[0]), to_doubles(y[1]));
    }
}

}  // namespace
}  // namespace heddle::harness::embedding_cases
