// Positions of another number of patches than a model was trained with.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "heddle/error.h"
#include "ops/copy/copy.h"
#include "pretrained/names/take.h"

namespace heddle::pretrained {
namespace {

// Four neighbours of a place between them, and their weights: the cubic of Keys (1981), a = -0.75.
struct Cubic {
  std::array<std::int64_t, 4> at;
  std::array<double, 4> weight;
};

double cubic(double x) {
  constexpr double a = -0.75;
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

// Of place i of `to` in `from` places; those outside are the ones at the border.
Cubic neighbours(std::int64_t i, std::int64_t from, std::int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double x = (static_cast<double>(i) + 0.5) * scale - 0.5, whole = std::floor(x);
  Cubic c{};
  for (std::size_t k = 0; k < 4; ++k) {
    const double place = whole + static_cast<double>(k) - 1;
    c.weight[k] = cubic(x - place);
    c.at[k] = std::clamp(static_cast<std::int64_t>(place), std::int64_t{0}, from - 1);
  }
  return c;
}

}  // namespace

Tensor image_positions(const Tensor& source, const model::ModelConfig& config) {
  Tensor table = as_rows(source, config);
  const std::int64_t before = config.tokens_before();
  const std::int64_t rows = config.sizes.height / config.patch;
  const std::int64_t columns = config.sizes.width / config.patch;
  if (table.rank() != 2 || table.size(0) <= before) return table;  // refused for its shape
  const std::int64_t patches = table.size(0) - before, width = table.size(1);
  const auto side = std::llround(std::sqrt(static_cast<double>(patches)));
  if ((patches == rows * columns && rows == columns) || side * side != patches) return table;
  constexpr std::int64_t kMostNumbers = 1 << 26;  // half a gigabyte of them
  const std::int64_t most_patches = kMostNumbers / std::max<std::int64_t>(width, 1 << 8);
  if (rows > most_patches / std::max<std::int64_t>(columns, 1))
    fail(ErrorCode::out_of_range, "positions", "patches of an image",
         "at most " + std::to_string(most_patches),
         std::to_string(rows) + " × " + std::to_string(columns));
  const Tensor from = ops::contiguous(ops::cast(table, DType::f64));
  Tensor made = Tensor::empty({before + rows * columns, width}, DType::f64);
  const double* old = from.data<double>();
  auto* out = made.mutable_data<double>();
  out = std::copy_n(old, before * width, out);
  old += before * width;
  for (std::int64_t y = 0; y < rows; ++y)
    for (std::int64_t x = 0; x < columns; ++x, out += width) {
      const Cubic down = neighbours(y, side, rows), right = neighbours(x, side, columns);
      std::fill_n(out, width, 0.0);
      for (std::size_t i = 0; i < 4; ++i)
        for (std::size_t j = 0; j < 4; ++j) {
          const double* patch = old + (down.at[i] * side + right.at[j]) * width;
          const double weight = down.weight[i] * right.weight[j];
          for (std::int64_t k = 0; k < width; ++k) out[k] += weight * patch[k];
        }
    }
  return ops::cast(made, table.dtype() == DType::f64 ? DType::f64 : DType::f32);
}

}  // namespace heddle::pretrained
