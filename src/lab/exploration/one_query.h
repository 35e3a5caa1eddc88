// Attention of a single query over n keys, as the documents on what attention can compute set it:
// α_i = exp(k_i · q) / Σ exp(k_j · q), c = Σ α_i v_i, without a scale.
#pragma once

#include <cmath>
#include <vector>

#include "heddle/tensor.h"
#include "lab/findings.h"
#include "lab/tools.h"
#include "ops/attention/attention.h"
#include "ops/binary/binary.h"
#include "ops/copy/copy.h"
#include "ops/unary/unary.h"
#include "ops/view/view.h"

namespace heddle::lab {

// q: [B, D]; k: [B, n, D]; v: [B, n, E] -> c: [B, E]. Heddle's fused attention.
inline Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v) {
  const std::int64_t batch = k.size(0), keys = k.size(1);
  ops::AttentionOptions options;
  options.scale = 1;
  const Tensor c = ops::attention(ops::reshape(q, {batch, 1, 1, q.size(1)}),
                                  ops::reshape(k, {batch, keys, 1, k.size(2)}),
                                  ops::reshape(v, {batch, keys, 1, v.size(2)}), options);
  return ops::reshape(c, {batch, v.size(2)});
}

// The unit vectors of n dimensions: orthonormal keys. As values they make c the weights themselves.
inline Tensor unit_vectors(std::int64_t n) {
  Tensor e = Tensor::zeros({n, n}, DType::f64);
  double* data = e.mutable_data<double>();
  for (std::int64_t i = 0; i < n; ++i) data[i * n + i] = 1;
  return e;
}

// Keys of the two experiments on variance: k_i ~ N(μ_i, Σ_i), μ orthonormal, Σ_i = 1e-8·I but for
// key 0, whose Σ has ½·μ_0·μ_0ᵀ added: its length γ is normal with mean 1 and variance ½.
struct NoisyKeys {
  Tensor k;      // [B, n, n]
  Tensor gamma;  // [B]
};

inline NoisyKeys noisy_keys(const Findings& f, std::int64_t samples, std::int64_t n) {
  NoisyKeys out;
  const double deviation = f.fault("variance-for-deviation") ? 0.5 : std::sqrt(0.5);
  out.gamma = ops::add(normal({samples}, 41, deviation), 1);
  const Tensor small = normal({samples, n, n}, 42, 1e-4);
  out.k = ops::clone(ops::add(small, ops::reshape(unit_vectors(n), {1, n, n})));
  double* k = out.k.mutable_data<double>();
  const std::vector<double> gamma = out.gamma.to_vector<double>();
  for (std::int64_t b = 0; b < samples; ++b) k[b * n * n] += gamma[static_cast<std::size_t>(b)] - 1;
  return out;
}

// The query β·Σ μ_i over some i, the same for all samples.
inline Tensor query_for(std::initializer_list<std::int64_t> keys, double beta, std::int64_t samples,
                        std::int64_t n) {
  Tensor q = Tensor::zeros({samples, n}, DType::f64);
  double* data = q.mutable_data<double>();
  for (std::int64_t b = 0; b < samples; ++b)
    for (const std::int64_t i : keys) data[b * n + i] = beta;
  return q;
}

}  // namespace heddle::lab
