#include <gtest/gtest.h>

#include "harness/harness.h"
#include "harness/values.h"
#include "ops/embedding/embedding.h"
#include "ops/embedding/embedding.kernels.h"

namespace heddle::harness::embedding_cases {
namespace {

Tensors rows_of_table(std::span<const Tensor> in) {
  const auto table = to_doubles(in[0]);
  const auto width = static_cast<std::size_t>(in[0].size(1));
  std::vector<double> out;
  for (const double id : to_doubles(in[1]))
    for (std::size_t c = 0; c < width; ++c)
      out.push_back(table[static_cast<std::size_t>(id) * width + c]);
  Shape shape = in[1].shape();
  shape.push_back(in[0].size(1));
  return {make_tensor(shape, DType::f64, out)};
}

// The third input only says which type the rows are wanted in.
void add(const std::string& name, In table, In ids, std::int64_t repeats = 4) {
  Case c;
  c.op = "embedding";
  c.name = name;
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
  add("one row many times", param({2, 70}), index({1000}, 2), 600);

  using K = cpu::EmbeddingKernels;
  add_kernel_mutant<K>("embedding", "the last id is not looked up", [](K& k) {
    k.forward = [](const cpu::EmbeddingArgs& a) noexcept {
      cpu::EmbeddingArgs b = a;
      b.count -= b.count > 0 ? 1 : 0;
      sound<K>().forward(b);
    };
  });
  add_kernel_mutant<K>("embedding", "the gradient forgets the last id", [](K& k) {
    k.backward = [](const cpu::EmbeddingBackwardArgs& a) noexcept {
      cpu::EmbeddingBackwardArgs b = a;
      b.count -= b.count > 0 ? 1 : 0;
      sound<K>().backward(b);
    };
  });
  add_kernel_mutant<K>("embedding", "unused rows of the gradient are not cleared", [](K& k) {
    k.backward = [](const cpu::EmbeddingBackwardArgs& a) noexcept {
      cpu::EmbeddingBackwardArgs b = a;
      b.rows -= b.rows > 1 ? 1 : 0;
      sound<K>().backward(b);
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

// The cases of the harness are too small to be written past the caches.
TEST(embedding_kernels, streaming_changes_nothing) {
  const Tensor table = make_tensor({9, 96}, DType::f32, normals(9 * 96, 1));
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < 300; ++i) ids.push_back(i * 5 % 9);
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
