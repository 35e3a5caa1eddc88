#include "nn/position/sinusoidal.h"

#include <cmath>
#include <vector>

#include "nn/require.h"
#include "ops/copy/copy.h"

namespace heddle::nn {

Tensor sinusoidal(std::int64_t first, std::int64_t count, std::int64_t width, DType dtype,
                  Device device) {
  const char* const where = "sinusoidal";
  require(first >= 0, where, "first", "0 or more", static_cast<double>(first));
  require(count >= 0, where, "count", "0 or more", static_cast<double>(count));
  require(width > 0 && width % 2 == 0, where, "width", "an even number above 0: sines and cosines",
          static_cast<double>(width));
  if (device.is_meta()) return Tensor::empty({count, width}, dtype, device);
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(count * width));
  for (std::int64_t p = first; p < first + count; ++p)
    for (std::int64_t i = 0; i < width; i += 2) {
      const double exponent = static_cast<double>(i) / static_cast<double>(width);
      const double angle = static_cast<double>(p) / std::pow(10000.0, exponent);
      values.push_back(std::sin(angle));
      values.push_back(std::cos(angle));
    }
  return ops::cast(Tensor::from<double>({count, width}, values), dtype).to(device);
}

}  // namespace heddle::nn
