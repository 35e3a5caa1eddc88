// A row of a product with a weight has the same bits whatever the number of rows beside it: what
// makes a text the same alone and in a batch, read at once and token by token.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "backend/cpu/gemm/amx/amx.h"
#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/gemm/operands.h"
#include "backend/cpu/isa.h"

namespace heddle::cpu {
namespace rows_alone {
namespace {

struct Sizes {
  std::int64_t k, n;
};

// Random numbers in any type; several blocks of k, and sizes that fill no tile.
std::vector<std::byte> numbers(std::int64_t count, DType type, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<std::byte> out(static_cast<std::size_t>(count) * size_of(type));
  for (std::int64_t i = 0; i < count; ++i) {
    const float value = normal(random);
    if (type == DType::f64)
      reinterpret_cast<double*>(out.data())[i] = static_cast<double>(value);
    else if (type == DType::f32)
      reinterpret_cast<float*>(out.data())[i] = value;
    else
      reinterpret_cast<bf16*>(out.data())[i] = bf16::from_float(value);
  }
  return out;
}

struct Weight {
  Sizes sizes;
  std::vector<std::byte> packed;  // from an aligned place on
  void* at = nullptr;

  Weight(const GemmPath& path, Operands operands, const Sizes& s) : sizes(s) {
    const std::vector<std::byte> b = numbers(s.k * s.n, operands.b, 3);
    packed.resize(path.packed_bytes(s.k, s.n) + 64);
    at = packed.data() + (64 - reinterpret_cast<std::uintptr_t>(packed.data()) % 64) % 64;
    path.pack_b(s.k, s.n, {b.data(), operands.b, 1, s.k}, at);
  }
};

// Rows [first, first + count) of A times the weight, with bias, activation and residual.
std::vector<std::byte> product(const GemmPath& path, const Weight& w, DType type,
                               const std::byte* a, std::int64_t count) {
  const std::int64_t n = w.sizes.n;
  const std::size_t element = size_of(type);
  std::vector<std::byte> c(static_cast<std::size_t>(count * n) * element);
  const std::vector<std::byte> bias = numbers(n, type == DType::f64 ? DType::f64 : DType::f32, 4);
  GemmJob job;
  job.m = count;
  job.n = n;
  job.k = w.sizes.k;
  job.a = {a, type, w.sizes.k, 1};
  job.packed_b = w.at;
  job.c = c.data();
  job.c_dtype = type;
  job.c_row_stride = n;
  job.epilogue.bias = bias.data();
  job.epilogue.activation = Activation::silu;
  path.run(job);
  return c;
}

void expect_rows_alone(const GemmPath& path, Operands operands, const std::string& name) {
  constexpr std::int64_t kRows = 70;
  for (const Sizes& sizes : {Sizes{64, 48}, {65, 17}, {1000, 100}, {2500, 33}}) {
    const Weight weight(path, operands, sizes);
    const std::vector<std::byte> a = numbers(kRows * sizes.k, operands.a, 5);
    const std::size_t a_row = static_cast<std::size_t>(sizes.k) * size_of(operands.a);
    const std::size_t c_row = static_cast<std::size_t>(sizes.n) * size_of(operands.a);
    const std::vector<std::byte> all = product(path, weight, operands.a, a.data(), kRows);
    for (const std::int64_t count : {1, 2, 3, 5, 13, 16, 33})
      for (const std::int64_t first : {0, 7, 36}) {
        const auto some = product(path, weight, operands.a,
                                  a.data() + static_cast<std::size_t>(first) * a_row, count);
        EXPECT_EQ(std::memcmp(some.data(), all.data() + static_cast<std::size_t>(first) * c_row,
                              some.size()),
                  0)
            << name << ": " << count << " rows from " << first << ", k " << sizes.k;
      }
  }
}

TEST(GemmRows, HaveTheSameBitsAlone) {
  for (const Isa isa : available_isas())
    for (const Operands operands : {Operands{DType::f32}, Operands{DType::f32, DType::bf16},
                                    Operands{DType::bf16}, Operands{DType::f64}})
      expect_rows_alone(gemm_path(isa, operands), operands,
                        std::string(to_string(isa)) + " " + std::string(to_string(operands.a)));
}

TEST(GemmRows, HaveTheSameBitsAloneOnEmulatedTiles) {
  if (available_isas().back() < Isa::avx512_bf16) GTEST_SKIP() << "needs AVX-512 with bf16";
  if constexpr (kHasTiles)
    expect_rows_alone(amx_bf16_path_emulated(), DType::bf16, "emulated tiles");
}

}  // namespace
}  // namespace rows_alone
}  // namespace heddle::cpu
