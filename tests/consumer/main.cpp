// The smallest program that uses Heddle: [[1, 2], [3, 4]] times [[5], [6]].
#include <cstdio>
#include <vector>

#include "heddle/ops.h"
#include "heddle/tensor.h"

int main() {
  using heddle::Tensor;
  const Tensor a = Tensor::from<float>({2, 2}, {1, 2, 3, 4});
  const Tensor b = Tensor::from<float>({2, 1}, {5, 6});
  const std::vector<float> c = heddle::ops::matmul(a, b).to_vector<float>();
  std::printf("%g %g\n", c[0], c[1]);
  return c == std::vector<float>{17, 39} ? 0 : 1;
}
