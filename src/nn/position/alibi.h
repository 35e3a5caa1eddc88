// ALiBi (Press et al. 2022): scores fall linearly with the distance, at a slope per head.
#pragma once

#include <cstdint>
#include <vector>

#include "heddle/tensor.h"
#include "nn/position/distances.h"

namespace heddle::nn {

// For a power of two n: 2^(-8/n), 2^(-16/n), ..., 2^-8. For other numbers: the slopes of the next
// smaller power of two p, then every second slope of 2p.
std::vector<double> alibi_slopes(std::int64_t heads);

// -slope · |distance| as [H, Tq + Tk - 1] for ops::attention; a constant. The paper has earlier
// keys only; for later ones the distance counts as well.
Tensor alibi_bias(std::int64_t heads, const Distances& distances, DType dtype = DType::f32,
                  Device device = Device::cpu);

}  // namespace heddle::nn
