// Shapes and strides: short lists of sizes without heap storage.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace heddle {

inline constexpr int kMaxRank = 8;

// A list of at most kMaxRank integers. Shape and Strides are the two uses of it.
class Dims {
 public:
  Dims() = default;
  Dims(std::initializer_list<std::int64_t> values)
      : Dims(std::span<const std::int64_t>(values.begin(), values.size())) {}
  explicit Dims(std::span<const std::int64_t> values);  // throws Error above kMaxRank

  int rank() const noexcept { return rank_; }
  bool empty() const noexcept { return rank_ == 0; }
  std::int64_t operator[](int i) const noexcept { return values_[static_cast<std::size_t>(i)]; }
  std::int64_t& operator[](int i) noexcept { return values_[static_cast<std::size_t>(i)]; }
  std::int64_t back() const noexcept { return (*this)[rank_ - 1]; }

  const std::int64_t* begin() const noexcept { return values_.data(); }
  const std::int64_t* end() const noexcept { return values_.data() + rank_; }

  void push_back(std::int64_t value);  // throws Error above kMaxRank
  void erase(int i) noexcept;
  void insert(int i, std::int64_t value);

  friend bool operator==(const Dims& a, const Dims& b) noexcept {
    return a.rank_ == b.rank_ && std::equal(a.begin(), a.end(), b.begin());
  }

 private:
  std::array<std::int64_t, kMaxRank> values_{};
  int rank_ = 0;
};

using Shape = Dims;
using Strides = Dims;

// Product of the sizes; 1 for a scalar. Throws Error on a negative size or on overflow.
std::int64_t elements_of(const Shape& shape);

// Row-major strides, in elements.
Strides contiguous_strides(const Shape& shape);

// The shape two shapes broadcast to (right-aligned, sizes equal or 1); throws Error naming `where`.
Shape broadcast_shapes(const Shape& a, const Shape& b, const char* where);

// -1 is the last dimension. Throws Error naming `where` when out of range.
int normalize_dim(int dim, int rank, const char* where);

std::string to_string(const Dims& dims);  // "[2, 3]"

}  // namespace heddle
