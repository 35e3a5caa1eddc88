// Elements of the mock device's tensors as numbers, whatever their type and strides.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "heddle/dtype.h"
#include "mock/mock.h"

namespace heddle::mock {

// Elements by their place in row-major order. Numbers are doubles on the way: wide enough for every
// type here (ids and counts stay far below 2^53).
class Elements {
 public:
  explicit Elements(const Tensor& x)
      : base_(behind(x)),
        shape_(x.shape()),
        strides_(x.strides()),
        dtype_(x.dtype()),
        contiguous_(x.contiguous()),
        count_(x.elements()) {}

  std::int64_t count() const { return count_; }

  double at(std::int64_t place) const { return read(offset(place)); }
  void put(std::int64_t place, double value) { write(offset(place), value); }
  void add(std::int64_t place, double value) { put(place, at(place) + value); }

  // By its distance from the first element, in elements.
  double read(std::int64_t offset) const {
    const std::byte* const p = base_ + offset * static_cast<std::int64_t>(size_of(dtype_));
    switch (dtype_) {
      case DType::f32: return static_cast<double>(*reinterpret_cast<const float*>(p));
      case DType::bf16: return static_cast<double>(reinterpret_cast<const bf16*>(p)->to_float());
      case DType::f16: return static_cast<double>(reinterpret_cast<const f16*>(p)->to_float());
      case DType::f64: return *reinterpret_cast<const double*>(p);
      case DType::i32: return *reinterpret_cast<const std::int32_t*>(p);
      case DType::i64: return static_cast<double>(*reinterpret_cast<const std::int64_t*>(p));
      case DType::u8: return *reinterpret_cast<const std::uint8_t*>(p);
    }
    return 0;
  }

 private:
  std::int64_t offset(std::int64_t place) const {
    if (contiguous_) return place;
    std::int64_t at = 0;
    for (int i = shape_.rank() - 1; i >= 0; --i) {
      at += place % shape_[i] * strides_[i];
      place /= shape_[i];
    }
    return at;
  }

  // As ops::cast says: truncated, the nearest limit of what the type cannot hold, 0 for NaN.
  template <class T>
  static T integer(double value) {
    using Limits = std::numeric_limits<T>;
    if (std::isnan(value)) return 0;
    if (value <= static_cast<double>(Limits::min())) return Limits::min();
    // 2^63 is the double beside the largest 64-bit integer.
    if (value >= static_cast<double>(Limits::max())) return Limits::max();
    return static_cast<T>(value);
  }

  void write(std::int64_t offset, double value) {
    std::byte* const p = base_ + offset * static_cast<std::int64_t>(size_of(dtype_));
    const auto narrow = static_cast<float>(value);
    switch (dtype_) {
      case DType::f32: *reinterpret_cast<float*>(p) = narrow; return;
      case DType::bf16: *reinterpret_cast<bf16*>(p) = bf16::from_float(narrow); return;
      case DType::f16: *reinterpret_cast<f16*>(p) = f16::from_float(narrow); return;
      case DType::f64: *reinterpret_cast<double*>(p) = value; return;
      case DType::i32: *reinterpret_cast<std::int32_t*>(p) = integer<std::int32_t>(value); return;
      case DType::i64: *reinterpret_cast<std::int64_t*>(p) = integer<std::int64_t>(value); return;
      case DType::u8: *reinterpret_cast<std::uint8_t*>(p) = integer<std::uint8_t>(value); return;
    }
  }

  std::byte* base_;
  Shape shape_;
  Strides strides_;
  DType dtype_;
  bool contiguous_;
  std::int64_t count_;
};

}  // namespace heddle::mock
