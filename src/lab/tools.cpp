#include "lab/tools.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "heddle/memory.h"
#include "ops/binary/binary.h"
#include "ops/random/random.h"

namespace heddle::lab {

namespace {

constexpr std::uint64_t kSeed = 20240911;

}  // namespace

Tensor normal(const Shape& shape, std::uint32_t stream, double deviation) {
  return ops::random_normal(shape, 0, deviation, {kSeed, 0, stream}, DType::f64);
}

Tensor matrix(const std::vector<std::vector<double>>& rows) {
  std::vector<double> all;
  for (const auto& row : rows) {
    if (row.size() != rows.front().size())
      fail(ErrorCode::shape_mismatch, "lab", "rows of a matrix", "of equal length");
    all.insert(all.end(), row.begin(), row.end());
  }
  const auto count = static_cast<std::int64_t>(rows.size());
  const std::int64_t columns = rows.empty() ? 0 : static_cast<std::int64_t>(rows.front().size());
  return Tensor::from<double>({count, columns}, std::span<const double>(all));
}

std::vector<std::vector<double>> rows_of(const Tensor& matrix) {
  const std::vector<double> all = matrix.detach().to_vector<double>();
  std::vector<std::vector<double>> rows;
  for (std::int64_t r = 0; r < matrix.size(0); ++r)
    rows.emplace_back(all.begin() + r * matrix.size(1), all.begin() + (r + 1) * matrix.size(1));
  return rows;
}

double largest(const Tensor& x) {
  double most = 0;
  for (const double v : x.detach().to_vector<double>()) {
    if (std::isnan(v)) return v;
    most = std::max(most, std::abs(v));
  }
  return most;
}

double largest_difference(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape())
    fail(ErrorCode::shape_mismatch, "lab", "tensors to compare", a.describe(), b.describe());
  return largest(ops::sub(a.detach(), b.detach()));
}

nn::Attention attention_layer(const nn::AttentionConfig& config, std::uint64_t seed) {
  nn::ParameterStore store({.seed = seed, .dtype = DType::f64});
  return {config, store.root()};
}

Line fitted_line(const std::vector<double>& x, const std::vector<double>& y) {
  if (x.size() != y.size() || x.size() < 2)
    fail(ErrorCode::shape_mismatch, "lab", "points of a line", "two or more pairs");
  const auto n = static_cast<double>(x.size());
  double mean_x = 0, mean_y = 0, xx = 0, xy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    mean_x += x[i] / n;
    mean_y += y[i] / n;
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    xy += (x[i] - mean_x) * (y[i] - mean_y);
  }
  return {mean_y - xy / xx * mean_x, xy / xx};
}

double fitted_exponent(const std::vector<double>& x, const std::vector<double>& y) {
  std::vector<double> log_x, log_y;
  for (const double v : x) log_x.push_back(std::log(v));
  for (const double v : y) log_y.push_back(std::log(v));
  return fitted_line(log_x, log_y).slope;
}

double seconds_of(const std::function<void()>& call, int repeats) {
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    call();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    least = std::min(least, taken.count());
  }
  return least;
}

std::int64_t peak_bytes_of(const std::function<void()>& call) {
  reset_peak_memory(Device::cpu);
  const std::int64_t before = memory_use(Device::cpu).live;
  call();
  return memory_use(Device::cpu).peak - before;
}

}  // namespace heddle::lab
