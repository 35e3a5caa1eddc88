// Intervals of keys that are made once and shared by calls.
#include <gtest/gtest.h>

#include <array>

#include "heddle/error.h"
#include "heddle/ops.h"
#include "heddle/tape.h"

namespace heddle::ops {
namespace prepared {
namespace {

// Queries of zeros see all keys alike: values 1, 10 and 100 give 1, 5.5 and 37 by a causal mask.
struct Alike {
  Tensor q = Tensor::zeros({1, 3, 1, 2});
  Tensor k = random_normal({1, 3, 1, 2}, 0, 1, {1, 2, 3});
  Tensor v = Tensor::from<float>({1, 3, 1, 1}, {1, 10, 100});

  std::vector<float> values(const AttentionOptions& o) const {
    return attention(q, k, v, o).to_vector<float>();
  }
};

TEST(PreparedKeys, AreWhatACallSees) {
  const Alike a;
  AttentionMask causal;
  causal.causal = true;
  AttentionOptions o;  // with no mask of its own
  o.keys = prepared_keys(causal, {1, 3, 3}, Device::cpu);
  EXPECT_EQ(o.keys.intervals.to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{0, 0, 0, 1, 2, 3}));
  EXPECT_EQ(o.keys.ends.to_vector<std::int32_t>(), (std::vector<std::int32_t>{3}));
  EXPECT_EQ(o.keys.keys, 3);
  EXPECT_EQ(o.keys.pairs, 6);
  EXPECT_EQ(a.values(o), (std::vector<float>{1, 5.5, 37}));
}

TEST(PreparedKeys, CountTheLastKeyOfEachSequence) {
  AttentionMask mask;
  mask.key_lengths = Tensor::from<std::int64_t>({3}, {2, 0, 4});
  mask.look_back = 1;
  const VisibleKeys keys = prepared_keys(mask, {3, 2, 4}, Device::cpu);
  EXPECT_EQ(keys.ends.to_vector<std::int32_t>(), (std::vector<std::int32_t>{2, 0, 4}));
  EXPECT_EQ(keys.pairs, 2 + 2 + 0 + 0 + 4 + 4);
}

TEST(PreparedKeys, OfOtherSizesAreRefused) {
  const Alike a;
  for (const AttentionSizes& s : {AttentionSizes{2, 3, 3}, {1, 2, 3}, {1, 3, 4}, {1, 3, 2}}) {
    AttentionOptions o;
    o.keys = prepared_keys({}, s, Device::cpu);
    EXPECT_THROW(a.values(o), Error) << s.batch << " " << s.queries << " " << s.keys;
  }
}

TEST(PreparedKeys, OfAMaskThatMakesNoSenseAreRefused) {
  AttentionMask mask;
  mask.look_back = -1;
  EXPECT_THROW(prepared_keys(mask, {1, 3, 3}, Device::cpu), Error);
  mask = {};
  mask.key_lengths = Tensor::from<std::int64_t>({1}, {4});
  EXPECT_THROW(prepared_keys(mask, {1, 3, 3}, Device::cpu), Error);
}

// A map's rows are other queries than those of the call.
TEST(PreparedKeys, DoNotNarrowMaps) {
  const Alike a;
  AttentionOptions o;
  o.mask.causal = true;
  o.keys = prepared_keys(o.mask, {1, 3, 3}, Device::cpu);
  const std::vector<float> row = attention_weights(a.q, a.k, o, {0, 1, 1}).to_vector<float>();
  EXPECT_EQ(row, (std::vector<float>{0.5, 0.5, 0}));
}

}  // namespace
}  // namespace prepared
}  // namespace heddle::ops
