// Weights that nobody changes are held once: packed.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "backend/cpu/isa.h"
#include "backend/cpu/settings.h"
#include "heddle/memory.h"
#include "ops/copy/copy.h"
#include "ops/embedding/embedding.h"
#include "ops/linear/linear.h"
#include "ops/random/random.h"
#include "tensor/storage.h"

namespace heddle::ops {
namespace {

constexpr std::int64_t kRows = 70, kWidth = 801;

std::vector<char> bytes_of(const Tensor& t) {
  const auto* bytes = static_cast<const char*>(t.raw());
  return {bytes, bytes + t.bytes()};
}

Tensor random_of(const Shape& shape, DType type, std::uint32_t stream) {
  return cast(random_normal(shape, 0, 1, {3, 0, stream}), type);
}

struct Types {
  DType weight, activation;
  bool once;  // does packing lose nothing?
};
constexpr Types kTypes[] = {{DType::f32, DType::f32, true},
                            {DType::bf16, DType::f32, true},
                            {DType::bf16, DType::bf16, true},
                            {DType::f32, DType::bf16, false}};

template <class Body>
void for_each(Body body) {
  const cpu::SettingsScope settings;
  for (const cpu::Isa isa : cpu::available_isas()) {
    cpu::set_isa(isa);
    for (const Types& types : kTypes) body(types);
  }
}

TEST(HeldWeights, ArePackedAlone) {
  for_each([](const Types& types) {
    const Tensor x = random_of({5, kWidth}, types.activation, 1);
    const Tensor trained = random_of({kRows, kWidth}, types.weight, 2);
    const Tensor held = clone(trained);
    held.impl()->storage->set_constant();
    const std::vector<char> expected = bytes_of(linear(x, trained));
    EXPECT_EQ(bytes_of(linear(x, held)), expected);
    EXPECT_EQ(held.impl()->storage->replaced() != nullptr, types.once);
    EXPECT_EQ(trained.impl()->storage->replaced(), nullptr);
    EXPECT_EQ(bytes_of(linear(x, held)), expected);  // from the packed form again
  });
}

TEST(HeldWeights, ComeBackAsTheyWere) {
  for_each([](const Types& types) {
    const Tensor trained = random_of({kRows, kWidth}, types.weight, 2);
    const Tensor held = clone(trained);
    held.impl()->storage->set_constant();
    linear(random_of({2, kWidth}, types.activation, 1), held);
    EXPECT_EQ(bytes_of(held), bytes_of(trained));
    EXPECT_EQ(held.impl()->storage->replaced(), nullptr);
  });
}

TEST(HeldWeights, GiveRowsToEmbeddings) {
  const Tensor ids = Tensor::from<std::int32_t>({5}, {3, 0, kRows - 1, 3, 17});
  for_each([&](const Types& types) {
    const Tensor trained = random_of({kRows, kWidth}, types.weight, 2);
    const Tensor held = clone(trained);
    held.impl()->storage->set_constant();
    linear(random_of({2, kWidth}, types.activation, 1), held);
    EXPECT_EQ(bytes_of(embedding(held, ids, types.activation)),
              bytes_of(embedding(trained, ids, types.activation)));
    EXPECT_EQ(held.impl()->storage->replaced() != nullptr, types.once);  // rows alone were made
  });
}

TEST(HeldWeights, TakeTheirBytesOnce) {
  const auto parameters = [] {
    return memory_use(Device::cpu).live_by_purpose[static_cast<std::size_t>(Purpose::parameters)];
  };
  const std::int64_t before = parameters();
  Tensor held;
  {
    const PurposeScope purpose(Purpose::parameters);
    held = random_of({96, 384}, DType::f32, 2);
  }
  held.impl()->storage->set_constant();
  const std::int64_t row_major = parameters() - before;
  linear(random_of({2, 384}, DType::f32, 1), held);
  EXPECT_NEAR(static_cast<double>(parameters() - before), static_cast<double>(row_major),
              0.1 * static_cast<double>(row_major));
}

}  // namespace
}  // namespace heddle::ops
