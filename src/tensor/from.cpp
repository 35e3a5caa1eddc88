// Tensors from numbers as they are written in a program.
#include <string>
#include <vector>

#include "heddle/tensor.h"

namespace heddle {

namespace {

using Row = std::initializer_list<float>;
using Rows = std::initializer_list<Row>;

void check_length(std::size_t length, std::size_t expected) {
  if (length != expected)
    fail(ErrorCode::shape_mismatch, "tensor", "rows have different lengths",
         std::to_string(expected), std::to_string(length));
}

std::int64_t extent(std::size_t n) { return static_cast<std::int64_t>(n); }

}  // namespace

Tensor Tensor::from(Row values) { return from<float>({extent(values.size())}, values); }

Tensor Tensor::from(Rows rows) {
  const std::size_t columns = rows.size() > 0 ? rows.begin()->size() : 0;
  std::vector<float> values;
  for (const Row& row : rows) {
    check_length(row.size(), columns);
    values.insert(values.end(), row);
  }
  return from<float>({extent(rows.size()), extent(columns)}, std::span<const float>(values));
}

Tensor Tensor::from(std::initializer_list<Rows> all) {
  const std::size_t rows = all.size() > 0 ? all.begin()->size() : 0;
  const std::size_t columns = rows > 0 ? all.begin()->begin()->size() : 0;
  std::vector<float> values;
  for (const Rows& matrix : all) {
    check_length(matrix.size(), rows);
    for (const Row& row : matrix) {
      check_length(row.size(), columns);
      values.insert(values.end(), row);
    }
  }
  return from<float>({extent(all.size()), extent(rows), extent(columns)},
                     std::span<const float>(values));
}

}  // namespace heddle
