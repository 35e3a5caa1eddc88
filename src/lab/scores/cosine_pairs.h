// Pairs of a key and a query with the cosine of the angle between them.
#pragma once

#include <cmath>
#include <vector>

#include "lab/tools.h"

namespace heddle::lab {

struct CosinePairs {
  Tensor x;                    // [N, 2D]: key and query side by side, independent normal numbers
  std::vector<double> cosine;  // [N]
};

inline CosinePairs cosine_pairs(std::int64_t count, std::int64_t width, std::uint32_t stream) {
  CosinePairs pairs{normal({count, 2 * width}, stream), {}};
  for (const auto& row : rows_of(pairs.x)) {
    double kq = 0, kk = 0, qq = 0;
    for (std::size_t i = 0; i < row.size() / 2; ++i) {
      const double k = row[i], q = row[i + row.size() / 2];
      kq += k * q;
      kk += k * k;
      qq += q * q;
    }
    pairs.cosine.push_back(kq / std::sqrt(kk * qq));
  }
  return pairs;
}

}  // namespace heddle::lab
