// Tensors of random numbers. Element i (in row-major order) is a function of (key, i) alone: the
// same for any number of threads, and up to rounding for any element type and instruction set.
#pragma once

#include "heddle/random.h"
#include "heddle/tensor.h"

namespace heddle::ops {

// low + (high - low)·u, u = the upper 24 bits of the element's word / 2^24. `high` itself appears
// only where the element type rounds to it.
Tensor random_uniform(const Shape& shape, double low, double high, const RandomKey& key,
                      DType dtype = DType::f32, Device device = Device::cpu);

// mean + stddev·z, z standard normal by Box and Muller: elements 2j and 2j + 1 are the cosine and
// the sine of one angle times one radius √(-2·ln u), u in (0, 1] in steps of 2^-24, so |z| < 5.77.
Tensor random_normal(const Shape& shape, double mean, double stddev, const RandomKey& key,
                     DType dtype = DType::f32, Device device = Device::cpu);

}  // namespace heddle::ops
