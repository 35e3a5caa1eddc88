#include "lab/tools.h"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/stopwatch.h"
#include "heddle/memory.h"
#include "heddle/runtime.h"
#include "heddle/tape.h"
#include "ops/binary/binary.h"
#include "ops/copy/copy.h"
#include "ops/random/random.h"
#include "optim/optimizer.h"

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
  rows.reserve(static_cast<std::size_t>(matrix.size(0)));
  for (std::int64_t r = 0; r < matrix.size(0); ++r)
    rows.emplace_back(all.begin() + r * matrix.size(1), all.begin() + (r + 1) * matrix.size(1));
  return rows;
}

// Gram and Schmidt, twice, so that rounding of the first time is taken out as well.
Tensor orthonormal_columns(std::int64_t rows, std::int64_t columns, std::uint32_t stream) {
  std::vector<std::vector<double>> basis = rows_of(normal({columns, rows}, stream));
  const auto dot = [](const std::vector<double>& a, const std::vector<double>& b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
  };
  for (std::size_t i = 0; i < basis.size(); ++i) {
    for (int pass = 0; pass < 2; ++pass)
      for (std::size_t j = 0; j < i; ++j) {
        const double share = dot(basis[i], basis[j]);
        for (std::size_t r = 0; r < basis[i].size(); ++r) basis[i][r] -= share * basis[j][r];
      }
    const double length = std::sqrt(dot(basis[i], basis[i]));
    for (double& v : basis[i]) v /= length;
  }
  return ops::contiguous(views::transpose(matrix(basis), 0, 1));
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
  nn::Parameters store({.seed = seed, .dtype = DType::f64});
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

std::vector<double> least_squares(const std::vector<std::vector<double>>& x,
                                  const std::vector<double>& y) {
  const std::size_t n = x.front().size();
  std::vector<std::vector<double>> a(n, std::vector<double>(n + 1, 0));  // [XᵀX | Xᵀy]
  for (std::size_t r = 0; r < x.size(); ++r)
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) a[i][j] += x[r][i] * x[r][j];
      a[i][n] += x[r][i] * y[r];
    }
  // Gauss and Jordan; XᵀX is positive definite, so the diagonal serves as pivots.
  for (std::size_t p = 0; p < n; ++p) {
    for (std::size_t j = n + 1; j-- > p;) a[p][j] /= a[p][p];
    for (std::size_t i = 0; i < n; ++i) {
      if (i == p) continue;
      for (std::size_t j = n + 1; j-- > p;) a[i][j] -= a[i][p] * a[p][j];
    }
  }
  std::vector<double> w;
  w.reserve(n);
  for (std::size_t i = 0; i < n; ++i) w.push_back(a[i][n]);
  return w;
}

double r_squared(const std::vector<double>& y, const std::vector<double>& prediction) {
  const double mean = std::accumulate(y.begin(), y.end(), 0.0) / static_cast<double>(y.size());
  double left = 0, total = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    left += (y[i] - prediction[i]) * (y[i] - prediction[i]);
    total += (y[i] - mean) * (y[i] - mean);
  }
  return 1 - left / total;
}

std::vector<double> train_steps(nn::Parameters& parameters, std::int64_t steps, double rate,
                                const std::function<Tensor(std::int64_t step)>& loss) {
  optim::Optimizer optimizer({.steps = steps, .batch = 1, .learning_rate = rate}, parameters);
  std::vector<double> losses;
  for (std::int64_t step = 0; step < steps; ++step) {
    Tape tape;
    const Tensor value = loss(step);
    tape.backward(value);
    losses.push_back(value.item());
    const double left = 1 - static_cast<double>(step) / static_cast<double>(steps);
    optimizer.step(step + 1, rate * left, optimizer.gradient_norm());
  }
  return losses;
}

double cpu_seconds_of(const std::function<void()>& call, int repeats) {
  // Threads are set back whatever the call does.
  struct OneThread {
    int before = threads();
    OneThread() { set_threads(1); }
    ~OneThread() { set_threads(before); }
    OneThread(const OneThread&) = delete;
    OneThread& operator=(const OneThread&) = delete;
  };
  const OneThread one;
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < repeats; ++i) {
    const double start = now();
    call();
    least = std::min(least, now() - start);
  }
  return least;
}

double seconds_of(const std::function<void()>& call, int repeats) {
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < repeats; ++i) {
    const Stopwatch stopwatch;
    call();
    least = std::min(least, stopwatch.seconds());
  }
  return least;
}

std::int64_t peak_bytes_of(const std::function<void()>& call) {
  reset_peak_memory(Device::cpu);
  const std::int64_t before = memory_use(Device::cpu).live;
  call();
  const MemoryUse use = memory_use(Device::cpu);
  return use.peak - before + use.thread_buffers_peak;
}

}  // namespace heddle::lab
