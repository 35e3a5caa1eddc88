#include "nn/position/sinusoidal.h"

#include <cmath>
#include <vector>

#include "nn/require.h"
#include "ops/copy/copy.h"

namespace heddle::nn {

Tensor sinusoidal(std::int64_t first, std::int64_t count, std::int64_t width, DType dtype,
                  Device device, bool halves) {
  const char* const where = "sinusoidal";
  require(first >= 0, where, "first", "0 or more", static_cast<double>(first));
  require(count >= 0, where, "count", "0 or more", static_cast<double>(count));
  require(width > 0 && width % 2 == 0, where, "width", "an even number above 0: sines and cosines",
          static_cast<double>(width));
  if (device.is_meta()) return Tensor::empty({count, width}, dtype, device);
  std::vector<double> values(static_cast<std::size_t>(count * width));
  const std::int64_t apart = halves ? width / 2 : 1;  // a cosine from its sine
  for (std::int64_t row = 0; row < count; ++row)
    for (std::int64_t i = 0; i < width; i += 2) {
      const double exponent = static_cast<double>(i) / static_cast<double>(width);
      const double angle = static_cast<double>(first + row) / std::pow(10000.0, exponent);
      const std::int64_t place = row * width + (halves ? i / 2 : i);
      values[static_cast<std::size_t>(place)] = std::sin(angle);
      values[static_cast<std::size_t>(place + apart)] = std::cos(angle);
    }
  return ops::cast(Tensor::from<double>({count, width}, values), dtype).to(device);
}

}  // namespace heddle::nn
