#include "nn/position/alibi.h"

#include <bit>
#include <cmath>

#include "nn/require.h"
#include "ops/copy/copy.h"

namespace heddle::nn {

std::vector<double> alibi_slopes(std::int64_t heads) {
  require(heads > 0, "alibi", "heads", "1 or more", static_cast<double>(heads));
  const auto power = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(heads)));
  std::vector<double> slopes;
  slopes.reserve(static_cast<std::size_t>(heads));
  for (std::int64_t h = 0; h < power; ++h)
    slopes.push_back(std::exp2(-8.0 * static_cast<double>(h + 1) / static_cast<double>(power)));
  for (std::int64_t h = 0; h < heads - power; ++h)
    slopes.push_back(
        std::exp2(-8.0 * static_cast<double>(2 * h + 1) / static_cast<double>(2 * power)));
  return slopes;
}

Tensor alibi_bias(std::int64_t heads, const Distances& distances, DType dtype, Device device) {
  const std::vector<double> slopes = alibi_slopes(heads);
  const Shape shape{heads, distances.count()};
  if (device.is_meta()) return Tensor::empty(shape, dtype, device);
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(elements_of(shape)));
  for (const double slope : slopes)
    for (std::int64_t n = 0; n < distances.count(); ++n)
      values.push_back(-slope * std::abs(static_cast<double>(distances.at(n))));
  return ops::cast(Tensor::from<double>(shape, values), dtype).to(device);
}

}  // namespace heddle::nn
