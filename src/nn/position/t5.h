// T5's positions: a learned number per head and bucket of distances, added to the scores.
#pragma once

#include <cstdint>

#include "heddle/tensor.h"
#include "nn/position/distances.h"

namespace heddle::nn {

struct T5Options {
  std::int64_t buckets = 32;
  std::int64_t max_distance = 128;  // from here on all distances share the last bucket
  bool bidirectional = true;        // half of the buckets for keys after the query
};

// Throws Error when the options make no sense.
void validate(const T5Options& options);

// The bucket of a distance (position of the key minus position of the query). With n buckets for a
// direction and m = n / 2, a distance d < m has bucket d, a longer one
//   m + floor(log(d / m) / log(max_distance / m) · (n - m)), at most n - 1.
// Keys after the query are in the second half of the buckets, or, when not bidirectional, in bucket
// 0 with the query itself. In float32, as the models were trained.
std::int64_t t5_bucket(std::int64_t distance, const T5Options& options);

// [H, Tq + Tk - 1] for ops::attention, from a table [buckets, H]. Differentiable: the table's
// gradient is the sum over the distances of a bucket, made in a fixed order.
Tensor t5_bias(const Tensor& table, const T5Options& options, const Distances& distances);

}  // namespace heddle::nn
