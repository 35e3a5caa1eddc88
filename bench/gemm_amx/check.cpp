#include "check.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "backend/cpu/threads.h"
#include "heddle/dtype.h"

namespace heddle::bench {
namespace {

using heddle::Activation;

struct Shape {
  std::int64_t m, n, k;
};

constexpr Shape kShapes[] = {{1, 1, 1},     {16, 16, 32},   {32, 32, 32},  {33, 65, 31},
                             {31, 33, 100}, {64, 96, 256},  {70, 50, 801}, {128, 128, 1100},
                             {200, 7, 64},  {5, 300, 1600}, {96, 160, 0},  {257, 129, 385}};

constexpr Activation kActivations[] = {Activation::none, Activation::relu, Activation::gelu,
                                       Activation::gelu_tanh, Activation::silu};

double activate(Activation activation, double x) {
  switch (activation) {
    case Activation::none: return x;
    case Activation::relu: return std::max(x, 0.0);
    case Activation::gelu: return 0.5 * x * std::erfc(-x * std::sqrt(0.5));
    case Activation::gelu_tanh:
      return x / (1.0 + std::exp(-2.0 * std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::silu: return x / (1.0 + std::exp(-x));
  }
  return x;
}

float random_value() {
  static std::uint32_t state = 1;
  state = state * 1664525u + 1013904223u;
  return static_cast<float>(state >> 8) / static_cast<float>(1 << 23) - 1.0f;
}

std::vector<bf16> random_matrix(std::int64_t elements) {
  std::vector<bf16> v(static_cast<std::size_t>(elements));
  for (bf16& x : v) x = bf16::from_float(random_value());
  return v;
}

std::vector<float> random_floats(std::int64_t elements) {
  std::vector<float> v(static_cast<std::size_t>(elements));
  for (float& x : v) x = random_value();
  return v;
}

class Product {
 public:
  Product(Shape shape, int variant)
      : shape_(shape),
        transposed_a_(variant % 2 == 1),
        transposed_b_(variant / 2 % 2 == 1),
        bf16_out_(variant / 4 % 2 == 1),
        activation_(kActivations[variant % 5]),
        a_(random_matrix(shape.m * shape.k)),
        b_(random_matrix(shape.k * shape.n)),
        bias_(random_floats(shape.n)),
        old_(random_floats(shape.m * shape.n)) {}

  std::vector<float> run(const cpu::GemmPath& path) const {
    const auto [m, n, k] = shape_;
    const std::size_t bytes = std::max<std::size_t>(path.packed_bytes(k, n), 64);
    const std::unique_ptr<void, void (*)(void*)> packed(std::aligned_alloc(64, bytes), std::free);
    path.pack_b(k, n, matrix(b_, k, n, transposed_b_), packed.get());
    std::vector<float> c = old_;
    std::vector<bf16> narrow(c.size());
    cpu::GemmJob job;
    job.m = m, job.n = n, job.k = k;
    job.a = matrix(a_, m, k, transposed_a_);
    job.packed_b = packed.get();
    job.c = bf16_out_ ? static_cast<void*>(narrow.data()) : c.data();
    job.c_dtype = bf16_out_ ? DType::bf16 : DType::f32;
    job.c_row_stride = n;
    job.epilogue.bias = bias_.data();
    job.epilogue.activation = activation_;
    job.epilogue.accumulate = !bf16_out_;
    path.run(job);
    if (bf16_out_)
      for (std::size_t i = 0; i < c.size(); ++i) c[i] = narrow[i].to_float();
    return c;
  }

  // The largest error, in units of what rounding may cause.
  double worst(const std::vector<float>& c) const {
    const auto [m, n, k] = shape_;
    double worst = 0;
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = 0, size = 0;
        for (std::int64_t p = 0; p < k; ++p) {
          const auto at_a = static_cast<std::size_t>(transposed_a_ ? p * m + i : i * k + p);
          const auto at_b = static_cast<std::size_t>(transposed_b_ ? j * k + p : p * n + j);
          const double x =
              static_cast<double>(a_[at_a].to_float()) * static_cast<double>(b_[at_b].to_float());
          sum += x;
          size += std::abs(x);
        }
        const auto at = static_cast<std::size_t>(i * n + j);
        double want =
            activate(activation_, sum + static_cast<double>(bias_[static_cast<std::size_t>(j)]));
        if (!bf16_out_) want += static_cast<double>(old_[at]);
        const double allowed =
            1e-6 * (size + std::abs(want) + 1.0) + (bf16_out_ ? std::abs(want) / 250 : 0.0);
        const double error = std::abs(static_cast<double>(c[at]) - want) / allowed;
        worst = std::isfinite(error) ? std::max(worst, error) : 1e30;
      }
    return worst;
  }

 private:
  static cpu::MatrixRef matrix(const std::vector<bf16>& v, std::int64_t rows, std::int64_t cols,
                               bool transposed) {
    return {v.data(), DType::bf16, transposed ? 1 : cols, transposed ? rows : 1};
  }

  Shape shape_;
  bool transposed_a_, transposed_b_, bf16_out_;
  Activation activation_;
  std::vector<bf16> a_, b_;
  std::vector<float> bias_, old_;
};

std::size_t differing_bits(const std::vector<float>& a, const std::vector<float>& b) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) count += std::memcmp(&a[i], &b[i], 4) != 0;
  return count;
}

}  // namespace

bool check_products(const cpu::GemmPath& path, const cpu::GemmPath* other) {
  const int threads = cpu::thread_count();
  int cases = 0, wrong = 0;
  std::size_t values = 0, other_tiles = 0, other_threads = 0;
  double worst = 0;
  for (const Shape& shape : kShapes)
    for (int variant = 0; variant < 8; ++variant) {
      const Product product(shape, variant);
      const std::vector<float> c = product.run(path);
      const double error = product.worst(c);
      worst = std::max(worst, error);
      ++cases;
      if (error > 1) {
        ++wrong;
        std::printf("  wrong: %ld x %ld x %ld, variant %d: %.1f times what is allowed\n", shape.m,
                    shape.n, shape.k, variant, error);
      }
      values += c.size();
      cpu::set_threads(1);
      other_threads += differing_bits(c, product.run(path));
      cpu::set_threads(threads);
      if (other != nullptr) other_tiles += differing_bits(c, product.run(*other));
    }
  std::printf("check: %d products, %d wrong, worst error %.2f of what is allowed\n", cases, wrong,
              worst);
  std::printf("check: of %zu values %zu differ between 1 and %d threads\n", values, other_threads,
              threads);
  if (other != nullptr)
    std::printf("check: %zu differ in bits from the emulated tiles (no fault)\n", other_tiles);
  return wrong == 0 && other_threads == 0;
}

}  // namespace heddle::bench
