// Derivatives of the activations in double precision, for the tests of products.
#pragma once

#include <cmath>

#include "backend/cpu/gemm/gemm.h"

namespace heddle::cpu {

inline double slope(Activation activation, double x) {
  switch (activation) {
    case Activation::none: return 1;
    case Activation::relu: return x > 0 ? 1 : 0;
    case Activation::gelu:
      return 0.5 * std::erfc(-x * std::sqrt(0.5)) +
             x * std::exp(-0.5 * x * x) / std::sqrt(2 * M_PI);
    case Activation::gelu_tanh: {
      const double factor = 2 * std::sqrt(2 / M_PI);
      const double s = 1 / (1 + std::exp(-factor * (x + 0.044715 * x * x * x)));
      return s + x * s * (1 - s) * factor * (1 + 3 * 0.044715 * x * x);
    }
    case Activation::silu: {
      const double s = 1 / (1 + std::exp(-x));
      return s + x * s * (1 - s);
    }
  }
  return 1;
}

}  // namespace heddle::cpu
