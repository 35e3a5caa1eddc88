// Attention of inference: a row has the bits that it has alone, whatever queries are beside it,
// whichever keys lie before and behind those that it sees, and where their ring begins.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "backend/cpu/kernels.h"
#include "backend/cpu/settings.h"
#include "heddle/ops.h"
#include "ops/attention/test_emulated.h"

namespace heddle::ops {
namespace apart {
namespace {

struct Subject {
  std::string name;
  std::int64_t heads = 4, key_heads = 2, width = 32;
  bool additive = false, bias = false, sinks = false;
  std::optional<std::int64_t> look_back = {};
  double softcap = 0;
  Normaliser normaliser = Normaliser::softmax;
};

const std::vector<Subject>& subjects() {
  static const std::vector<Subject> all = {
      {.name = "plain"},
      {.name = "one key head", .heads = 9, .key_heads = 1, .width = 64},
      {.name = "eight heads a key", .heads = 16, .key_heads = 2, .width = 64},
      {.name = "odd width", .width = 19},
      {.name = "window", .look_back = 77},
      {.name = "bias and sinks", .bias = true, .sinks = true},
      {.name = "cap", .softcap = 2},
      {.name = "relu", .look_back = 150, .normaliser = Normaliser::relu},
      {.name = "additive", .width = 8, .additive = true, .sinks = true},
  };
  return all;
}

constexpr std::int64_t kTokens = 330;

struct Numbers {
  Tensor q, k, v, w, sinks, bias;  // bias: of distances -(kTokens - 1) to kTokens - 1
};

Numbers numbers_of(const Subject& s, DType type) {
  const auto random = [&](const Shape& shape, std::uint32_t stream, DType t) {
    return cast(random_normal(shape, 0, 1, {3, 1, stream}, DType::f32), t);
  };
  return {random({1, kTokens, s.heads, s.width}, 1, type),
          random({1, kTokens, s.key_heads, s.width}, 2, type),
          random({1, kTokens, s.key_heads, 32}, 3, type),
          s.additive ? random({s.heads, s.width}, 4, DType::f32) : Tensor(),
          s.sinks ? random({s.heads}, 5, DType::f32) : Tensor(),
          s.bias ? random({s.heads, 2 * kTokens - 1}, 6, DType::f32) : Tensor()};
}

// Queries [begin, end) against keys [first, end), which lie in a ring that begins at row `turn`.
AttentionPart part_of(const Subject& s, const Numbers& n, std::int64_t begin, std::int64_t end,
                      std::int64_t first, std::int64_t turn) {
  AttentionPart p;
  p.q = slice(n.q, 1, begin, end);
  const auto ring = [&](const Tensor& x) {
    const std::array rows = {slice(x, 1, end - turn, end), slice(x, 1, first, end - turn)};
    return turn == 0 ? slice(x, 1, first, end) : concat(rows, 1);
  };
  p.k = ring(n.k);
  p.v = ring(n.v);
  AttentionOptions& o = p.options;
  o.apart = true;
  o.first_position = first;
  o.first_row = turn;
  o.mask.causal = true;
  o.mask.look_back = s.look_back;
  o.mask.first_query = begin - first;
  o.softcap = s.softcap;
  o.normaliser = s.normaliser;
  o.sinks = n.sinks;
  // Entry (j - i) + Tq - 1 of key j and query i, whose distance is (j + first) - (i + begin).
  if (s.bias)
    o.relative_bias =
        contiguous(slice(n.bias, 1, first - end + kTokens, end - begin + kTokens - 1));
  return p;
}

Tensor computed(const AttentionPart& p, const Tensor& w) {
  return w.defined() ? additive_attention(p.q, p.k, w, p.v, p.options)
                     : attention(p.q, p.k, p.v, p.options);
}

bool same_bits(const Tensor& a, const Tensor& b) {
  const Tensor x = contiguous(a), y = contiguous(b);
  return x.bytes() == y.bytes() && std::memcmp(x.raw(), y.raw(), x.bytes()) == 0;
}

// How many calls give their rows other bits than one call for all of them does.
int differences(const Subject& s, DType type, std::mt19937& random, bool tell = true) {
  int different = 0;
  const auto note = [&](bool same, const std::string& what) {
    different += same ? 0 : 1;
    EXPECT_TRUE(same || !tell) << s.name << " " << to_string(type) << ": " << what;
  };
  const Numbers n = numbers_of(s, type);
  const Tensor all = computed(part_of(s, n, 0, kTokens, 0, 0), n.w);
  const auto number = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  std::vector<AttentionPart> parts;
  std::vector<Tensor> wanted;
  for (int i = 0; i < 14; ++i) {
    const std::int64_t begin = number(0, kTokens - 1);
    const std::int64_t end = std::min(kTokens, begin + (i % 2 == 0 ? 1 : number(1, 220)));
    // Keys that the first query does not see need not be there.
    const std::int64_t unseen = s.look_back ? std::max<std::int64_t>(begin - *s.look_back, 0) : 0;
    const std::int64_t first = number(0, unseen);
    const std::int64_t turn = s.look_back ? number(0, end - first - 1) : 0;
    parts.push_back(part_of(s, n, begin, end, first, turn));
    wanted.push_back(slice(all, 1, begin, end));
    note(same_bits(computed(parts.back(), n.w), wanted.back()),
         "queries " + std::to_string(begin) + " to " + std::to_string(end) + ", keys from " +
             std::to_string(first) + ", turned by " + std::to_string(turn));
  }
  note(same_bits(attention_each(parts, n.w), concat(wanted, 1)), "many at once");
  return different;
}

TEST(ApartAttention, RowsHaveTheSameBitsAlone) {
  const cpu::SettingsScope settings;
  for (const cpu::Isa isa : cpu::available_isas()) {
    cpu::set_isa(isa);
    SCOPED_TRACE(cpu::to_string(isa));
    std::mt19937 random(3);
    for (const Subject& s : subjects())
      for (const DType type : {DType::f32, DType::bf16, DType::f64})
        if (type != DType::f64 || !(s.additive || s.sinks || s.bias)) {
          EXPECT_EQ(differences(s, type, random), 0);
        }
    if (!multiplies_bf16()) continue;
    const OnEmulatedTiles tiles;
    taken = 0;
    for (const Subject& s : subjects()) EXPECT_EQ(differences(s, DType::bf16, random), 0);
    EXPECT_GT(taken, 0);
  }
}

// Over a long cache a unit of work is several blocks of keys: each row alone beside twelve at once.
TEST(ApartAttention, RowsHaveTheSameBitsOverManyBlocks) {
  const cpu::SettingsScope settings;
  constexpr std::int64_t kKeys = 4300, kRows = 12;
  for (const cpu::Isa isa : cpu::available_isas())
    for (const DType type : {DType::f32, DType::bf16}) {
      cpu::set_isa(isa);
      SCOPED_TRACE(cpu::to_string(isa));
      const auto random = [&](const Shape& shape, std::uint32_t stream) {
        return random_normal(shape, 0, 1, {3, 2, stream}, type);
      };
      const Tensor q = random({1, kRows, 16, 64}, 1);
      const Tensor k = random({1, kKeys, 2, 64}, 2), v = random({1, kKeys, 2, 64}, 3);
      AttentionOptions o;
      o.apart = true;
      o.mask.causal = true;
      o.mask.first_query = kKeys - kRows;
      const Tensor all = attention(q, k, v, o);
      for (std::int64_t i = 0; i < kRows; ++i) {
        const std::int64_t end = kKeys - kRows + i + 1;
        o.mask.first_query = end - 1;
        const Tensor one =
            attention(slice(q, 1, i, i + 1), slice(k, 1, 0, end), slice(v, 1, 0, end), o);
        EXPECT_TRUE(same_bits(one, slice(all, 1, i, i + 1))) << to_string(type) << " row " << i;
      }
    }
}

using Kernels = cpu::AttentionKernels;

void forgets(cpu::AttentionArgs& a) { a.apart = false; }
void counts_from_the_ring(cpu::AttentionArgs& a) { a.shape.shift = 0; }
void does_nothing(cpu::AttentionArgs&) {}

// Calls with the arguments that `Change` makes of them.
template <void (*Change)(cpu::AttentionArgs&)>
const Kernels& changed() {
  static const Kernels table = [] {
    Kernels k = cpu::native_kernels<Kernels>(cpu::current_isa());
    k.forward = [](const cpu::AttentionArgs& a) noexcept {
      cpu::AttentionArgs b = a;
      Change(b);
      cpu::native_kernels<Kernels>(cpu::current_isa()).forward(b);
    };
    return k;
  }();
  return table;
}

// The trial of this test itself: kernels that forget what apart means are found.
TEST(ApartAttention, ForgettingItIsSeen) {
  const auto found = [](const Kernels& planted, const char* subject) {
    cpu::planted_kernels<Kernels> = &planted;
    std::mt19937 random(3);
    int different = 0;
    for (const Subject& s : subjects())
      if (s.name == subject) different += differences(s, DType::f32, random, false);
    cpu::planted_kernels<Kernels> = nullptr;
    return different;
  };
  EXPECT_GT(found(changed<forgets>(), "plain"), 0);
  EXPECT_GT(found(changed<counts_from_the_ring>(), "window"), 0);
  EXPECT_EQ(found(changed<does_nothing>(), "window"), 0);
}

// The same sums as those of training, but for their order.
TEST(ApartAttention, IsAttention) {
  for (const Subject& s : subjects()) {
    const Numbers n = numbers_of(s, DType::f32);
    AttentionPart p = part_of(s, n, 100, kTokens, 0, 0);
    const Tensor own = computed(p, n.w);
    p.options.apart = false;
    const auto a = own.to_vector<float>(), b = computed(p, n.w).to_vector<float>();
    for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 2e-5) << s.name;
  }
}

// Places before the first key have no row to borrow where there is no key at all.
TEST(ApartAttention, NoKeysGiveZeros) {
  for (const std::int64_t queries : {3, 20}) {
    const Tensor q = random_normal({1, queries, 2, 32}, 0, 1, {1, 1, 1});
    const Tensor none = Tensor::empty({1, 0, 2, 32}, DType::f32);
    AttentionOptions o;
    o.apart = true;
    o.first_position = 77;
    for (const float y : attention(q, none, none, o).to_vector<float>()) ASSERT_EQ(y, 0);
  }
}

TEST(ApartAttention, RefusesByName) {
  const Subject s = subjects()[0];
  AttentionPart p = part_of(s, numbers_of(s, DType::f32), 0, 20, 0, 0);
  const auto problem = [&] {
    try {
      computed(p, {});
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  p.options.first_position = -1;
  EXPECT_NE(problem().find("first_position"), std::string::npos);
  p.options.first_position = 0;
  p.options.dropout = 0.5;
  EXPECT_NE(problem().find("dropout"), std::string::npos);
}

}  // namespace
}  // namespace apart
}  // namespace heddle::ops
