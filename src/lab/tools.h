// Tools that experiments share. Everything is float64 unless it says otherwise.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "heddle/tensor.h"
#include "nn/attention/attention.h"

namespace heddle::lab {

// Independent normal numbers. Streams with different numbers have nothing to do with each other.
Tensor normal(const Shape& shape, std::uint32_t stream, double deviation = 1);

Tensor matrix(const std::vector<std::vector<double>>& rows);
std::vector<std::vector<double>> rows_of(const Tensor& matrix);  // [R, C]

// Random columns of length 1, orthogonal to each other. columns <= rows
Tensor orthonormal_columns(std::int64_t rows, std::int64_t columns, std::uint32_t stream);

double largest(const Tensor& x);                              // of the absolute values
double largest_difference(const Tensor& a, const Tensor& b);  // of equal shapes

// An attention layer outside of any model, with random parameters that depend on the seed. Its
// parameters can be replaced through for_each_parameter().
nn::Attention attention_layer(const nn::AttentionConfig& config, std::uint64_t seed);

// Of y = a + b·x, least squares. For y ~ xᵇ give it the logarithms.
struct Line {
  double intercept = 0, slope = 0;
};
Line fitted_line(const std::vector<double>& x, const std::vector<double>& y);
double fitted_exponent(const std::vector<double>& x, const std::vector<double>& y);  // of y ~ xᵇ

// w with the least Σ (y − x·w)²: normal equations, so for well-conditioned problems.
std::vector<double> least_squares(const std::vector<std::vector<double>>& x,
                                  const std::vector<double>& y);
// 1 − Σ(y − prediction)² / Σ(y − mean)²: 1 is perfect, 0 no better than the mean.
double r_squared(const std::vector<double>& y, const std::vector<double>& prediction);

// AdamW with a rate that falls to 0; `loss` is computed anew in every step (its number, from 0, is
// given) and must depend on the store's parameters. Returns the losses.
std::vector<double> train_steps(nn::Parameters& parameters, std::int64_t steps, double rate,
                                const std::function<Tensor(std::int64_t step)>& loss);

// Seconds of one call: the least of several, since other programs only ever add to it.
double seconds_of(const std::function<void()>& call, int repeats = 3);
// The same on one thread, counting only time in which the thread ran: a busy machine does not
// disturb it.
double cpu_seconds_of(const std::function<void()>& call, int repeats = 3);
// Most bytes that tensors held at once during the call, beyond those that lived before it.
std::int64_t peak_bytes_of(const std::function<void()>& call);

}  // namespace heddle::lab
