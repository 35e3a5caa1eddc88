#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "heddle/ops.h"

namespace heddle::ops {
namespace {

struct Sizes {
  std::int64_t batch = 2, queries = 7, keys = 9, heads = 4, groups = 2, width = 6;
};

Tensor normal(const Shape& shape, std::uint32_t stream, DType dtype = DType::f64) {
  return random_normal(shape, 0, 1, {11, 0, stream}, dtype);
}

Tensor integers(const Shape& shape, std::initializer_list<std::int64_t> values) {
  return Tensor::from<std::int64_t>(shape, values);
}

// Values that are rows of the identity make attention's output its own map. In a ring, row
// first_row is key 0's.
Tensor identity_values(const Sizes& s, DType dtype, std::int64_t first_row) {
  std::vector<double> eye;
  for (std::int64_t i = 0; i < s.keys; ++i)
    for (std::int64_t j = 0; j < s.keys; ++j) eye.push_back(i == (j + first_row) % s.keys ? 1 : 0);
  const Tensor one = cast(Tensor::from<double>({1, s.keys, 1, s.keys}, eye), dtype);
  return contiguous(broadcast_to(one, {s.batch, s.keys, s.groups, s.keys}));
}

double difference(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.shape(), b.shape());
  const auto x = cast(a, DType::f64).to_vector<double>(),
             y = cast(b, DType::f64).to_vector<double>();
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    worst = std::isnan(x[i]) ? INFINITY : std::max(worst, std::abs(x[i] - y[i]));
  return worst;
}

std::vector<AttentionOptions> variants(const Sizes& s) {
  std::vector<AttentionOptions> all(11);
  all[1].mask.causal = true;
  all[1].mask.look_back = 2;
  all[2].normaliser = Normaliser::relu;
  all[2].mask.key_lengths = integers({2}, {5, 0});
  all[3].sinks = normal({s.heads}, 5);
  all[3].softcap = 1.5;
  all[4].relative_bias = normal({s.heads, s.queries + s.keys - 1}, 6);
  all[4].mask.causal = true;
  all[4].mask.first_query = 2;
  all[5].mask.query_documents = integers({2, 7}, {0, 0, 1, 1, 1, 2, 2, 0, 0, 0, 0, 1, 1, 3});
  all[5].mask.key_documents =
      integers({2, 9}, {0, 0, 0, 1, 1, 1, 1, 2, 2, 0, 1, 1, 1, 1, 1, 1, 2, 2});
  all[6].mask.causal = true;
  all[6].mask.prefix_lengths = integers({2}, {4, 0});
  all[7].first_row = 4;
  all[7].mask.causal = true;
  std::vector<double> hidden(static_cast<std::size_t>(s.queries * s.keys), 0);
  for (std::size_t i = 0; i < hidden.size(); i += 3) hidden[i] = -INFINITY;
  const Tensor holes = Tensor::from<double>({1, 1, s.queries, s.keys}, hidden);
  all[8].additive_mask = add(normal({s.batch, s.heads, s.queries, s.keys}, 7), holes);
  all[9].additive_mask = normal({1, 1, s.queries, s.keys}, 8);
  all[9].mask.allowed = Tensor::zeros({1, s.heads, s.queries, s.keys}, DType::u8);
  auto* allowed = all[9].mask.allowed.mutable_data<std::uint8_t>();
  for (std::int64_t i = 0; i < all[9].mask.allowed.elements(); ++i) allowed[i] = i * 7 % 5 != 1;
  all[10].mask.causal = true;
  all[10].mask.first_query = -2;
  all[10].mask.first_queries = integers({2}, {-1, 4});
  return all;
}

AttentionOptions in_type(AttentionOptions o, DType dtype) {
  if (o.sinks.defined()) o.sinks = cast(o.sinks, dtype);
  if (o.relative_bias.defined()) o.relative_bias = cast(o.relative_bias, dtype);
  if (o.additive_mask.defined()) o.additive_mask = cast(o.additive_mask, dtype);
  return o;
}

class Weights : public testing::TestWithParam<DType> {
 protected:
  // Rows of every head of both scores against whatever computes all of them.
  void compare(const auto& dot_maps, const auto& additive_maps, double tolerance) {
    const DType dtype = GetParam();
    const DType parameter = dtype == DType::f64 ? DType::f64 : DType::f32;
    const Sizes s;
    const Tensor q = normal({s.batch, s.queries, s.heads, s.width}, 1, dtype);
    const Tensor k = normal({s.batch, s.keys, s.groups, s.width}, 2, dtype);
    const Tensor w = normal({s.heads, s.width}, 3, parameter);
    for (const AttentionOptions& given : variants(s)) {
      const AttentionOptions o = in_type(given, parameter);
      const Tensor eye = identity_values(s, dtype, o.first_row);
      const Tensor dot = dot_maps(q, k, eye, o);  // [B, Tq, H, Tk]
      const Tensor additive = additive_maps(q, k, w, eye, o);
      for (std::int64_t head = 0; head < s.heads; ++head)
        for (const auto& [first, count] : {std::pair{0, 7}, {3, 2}, {6, 1}, {2, 0}}) {
          const MapRows rows{head, first, count};
          const auto part = [&](const Tensor& maps) {
            const Tensor of_head = slice(slice(maps, 2, head, head + 1), 1, first, first + count);
            return reshape(of_head, {s.batch, count, s.keys});
          };
          EXPECT_LE(difference(attention_weights(q, k, o, rows), part(dot)), tolerance);
          EXPECT_LE(difference(additive_attention_weights(q, k, w, o, rows), part(additive)),
                    tolerance);
        }
    }
  }
};

TEST_P(Weights, AreTheRowsOfTheDenseDefinition) {
  if (GetParam() == DType::bf16) return;  // the definition would round in other places
  compare(reference::attention, reference::additive_attention,
          GetParam() == DType::f64 ? 1e-14 : 1e-6);
}

TEST_P(Weights, AreWhatTheFastKernelUses) {
  const double tolerance = GetParam() == DType::f64   ? 1e-13
                           : GetParam() == DType::f32 ? 2e-6
                                                      : 2e-2;
  compare(attention, additive_attention, tolerance);
}

// With the sums that the kernels saved: the weights are the definition's, and weighing the values
// with them gives what the kernels gave. Queries beyond eight take the other path of the kernels.
TEST_P(Weights, FromSavedSumsGiveBackTheOutput) {
  const DType dtype = GetParam();
  const DType parameter = dtype == DType::f64 ? DType::f64 : DType::f32;
  const double tolerance = dtype == DType::f64 ? 1e-13 : dtype == DType::f32 ? 3e-6 : 3e-2;
  for (const Sizes& s : {Sizes{}, Sizes{.queries = 21, .keys = 21}}) {
    const Tensor q = normal({s.batch, s.queries, s.heads, s.width}, 1, dtype);
    const Tensor k = normal({s.batch, s.keys, s.groups, s.width}, 2, dtype);
    const Tensor w = normal({s.heads, s.width}, 3, parameter);
    const Tensor v = normal({s.batch, s.keys, s.groups, 5}, 4, dtype);
    for (const AttentionOptions& given : variants(s)) {
      if (given.mask.query_documents.defined() && s.queries != 7) continue;
      const AttentionOptions o = in_type(given, parameter);
      const auto check = [&](const AttentionWithSums& r, const Tensor& y, const auto& weights_of) {
        EXPECT_EQ(difference(r.y, y), 0);
        for (std::int64_t head = 0; head < s.heads; ++head) {
          const MapRows rows{head, 2, 4};
          const Tensor map = weights_of(rows, r.row_sums);  // [B, 4, Tk]
          EXPECT_LE(difference(map, weights_of(rows, Tensor())), tolerance);
          const std::int64_t group = head / (s.heads / s.groups);
          Tensor values = slice(v, 2, group, group + 1);  // [B, Tk, 1, E]
          if (o.first_row > 0)
            values = concat(
                std::array{slice(values, 1, o.first_row, s.keys), slice(values, 1, 0, o.first_row)},
                1);
          const Tensor mixed = matmul(map, cast(reshape(values, {s.batch, s.keys, 5}), parameter));
          const Tensor part = slice(slice(r.y, 2, head, head + 1), 1, 2, 6);
          EXPECT_LE(difference(mixed, reshape(part, {s.batch, 4, 5})), tolerance);
        }
      };
      check(attention_with_sums(q, k, v, o), attention(q, k, v, o),
            [&](const MapRows& rows, const Tensor& sums) {
              return attention_weights(q, k, o, rows, sums);
            });
      check(additive_attention_with_sums(q, k, w, v, o), additive_attention(q, k, w, v, o),
            [&](const MapRows& rows, const Tensor& sums) {
              return additive_attention_weights(q, k, w, o, rows, sums);
            });
    }
  }
}

TEST(WeightsFromSums, UseTheSumsTheyAreGiven) {
  const Tensor q = normal({1, 3, 1, 4}, 1), k = normal({1, 5, 1, 4}, 2),
               v = normal({1, 5, 1, 4}, 3);
  const AttentionWithSums r = attention_with_sums(q, k, v);
  const Tensor halved = add(r.row_sums, 1);  // a sum twice as large
  const Tensor whole = attention_weights(q, k, {}, {0, 0, 3}, r.row_sums);
  EXPECT_LE(difference(attention_weights(q, k, {}, {0, 0, 3}, halved), scale(whole, 0.5)), 1e-15);
  EXPECT_THROW(attention_weights(q, k, {}, {0, 0, 3}, Tensor::zeros({1, 3}, DType::f64)), Error);
  EXPECT_THROW(attention_weights(q, k, {}, {0, 0, 3}, Tensor::zeros({1, 1, 3})), Error);
}

INSTANTIATE_TEST_SUITE_P(Types, Weights, testing::Values(DType::f64, DType::f32, DType::bf16),
                         [](const auto& type) { return std::string(to_string(type.param)); });

TEST(WeightsErrors, NameTheArgument) {
  const Tensor q = Tensor::zeros({1, 3, 2, 4}), k = Tensor::zeros({1, 5, 1, 4});
  const auto message = [&](const MapRows& rows) -> std::string {
    try {
      attention_weights(q, k, {}, rows);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_NE(message({2, 0, 1}).find("argument head"), std::string::npos);
  EXPECT_NE(message({0, 2, 2}).find("queries 0 to 3"), std::string::npos);
  for (const std::int64_t heads : {0, 3})  // none, and a number that does not divide 2
    try {
      attention_weights(q, Tensor::zeros({1, 5, heads, 4}), {}, {0, 0, 1});
      ADD_FAILURE() << heads;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("a number of key heads that divides the 2"),
                std::string::npos)
          << e.what();
    }
  // Of halves: both are, whichever of the four is asked.
  const Tensor half = cast(q, DType::f16), w = Tensor::zeros({2, 4});
  const auto refused = [](const auto& ask, const char* op) {
    try {
      ask();
      ADD_FAILURE() << op;
    } catch (const Error& e) {
      EXPECT_EQ(e.where(), op);
      EXPECT_EQ(e.problem(), "argument k");
      EXPECT_EQ(e.expected(), "f16");
    }
  };
  const MapRows row{0, 0, 1};
  refused([&] { attention_weights(half, k, {}, row); }, "attention_weights");
  refused([&] { attention_scores(half, k, {}, row); }, "attention_scores");
  refused([&] { additive_attention_weights(half, k, w, {}, row); }, "additive_attention_weights");
  refused([&] { additive_attention_scores(half, k, w, {}, row); }, "additive_attention_scores");
  AttentionOptions bad;  // what attention itself refuses
  bad.softcap = -1;
  EXPECT_THROW(attention_weights(q, k, bad, {0, 0, 1}), Error);
  bad = {};
  bad.sinks = Tensor::zeros({2});
  bad.normaliser = Normaliser::relu;
  EXPECT_THROW(attention_weights(q, k, bad, {0, 0, 1}), Error);
}

}  // namespace
}  // namespace heddle::ops
