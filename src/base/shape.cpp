#include "heddle/shape.h"

#include "heddle/error.h"

namespace heddle {

namespace {

// Messages are made out of line: here they would be in the way of every look at a shape.
[[noreturn, gnu::noinline, gnu::cold]] void refuse_rank(std::size_t rank) {
  fail(ErrorCode::invalid_argument, "shape", "too many dimensions",
       "at most " + std::to_string(kMaxRank), std::to_string(rank));
}

[[noreturn, gnu::noinline, gnu::cold]] void refuse_dim(int dim, int rank, const char* where) {
  fail(ErrorCode::out_of_range, where, "dimension does not exist",
       rank == 0 ? "a tensor that is not a scalar"
                 : "-" + std::to_string(rank) + " to " + std::to_string(rank - 1),
       std::to_string(dim));
}

// Sizes whose product does not fit, or that are no sizes; a zero among them makes it fit.
[[gnu::noinline, gnu::cold]] std::int64_t unusual_elements(const Shape& shape) {
  if (std::any_of(shape.begin(), shape.end(), [](std::int64_t size) { return size < 0; }))
    fail(ErrorCode::invalid_argument, "shape", "a size is negative", "sizes of 0 or more",
         to_string(shape));
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  fail(ErrorCode::invalid_argument, "shape", "too many elements", "fewer than 2^63",
       to_string(shape));
}

}  // namespace

Dims::Dims(std::span<const std::int64_t> values) {
  if (values.size() > values_.size()) [[unlikely]]
    refuse_rank(values.size());
  std::copy(values.begin(), values.end(), values_.begin());
  rank_ = static_cast<int>(values.size());
}

void Dims::push_back(std::int64_t value) {
  if (rank_ == kMaxRank) [[unlikely]]
    refuse_rank(values_.size() + 1);
  values_[static_cast<std::size_t>(rank_++)] = value;
}

void Dims::erase(int i) noexcept {
  for (int j = i; j + 1 < rank_; ++j) (*this)[j] = (*this)[j + 1];
  --rank_;
}

void Dims::insert(int i, std::int64_t value) {
  push_back(value);
  for (int j = rank_ - 1; j > i; --j) (*this)[j] = (*this)[j - 1];
  (*this)[i] = value;
}

std::int64_t elements_of(const Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape)
    if (size < 0 || __builtin_mul_overflow(count, size, &count)) [[unlikely]]
      return unusual_elements(shape);
  return count;
}

Strides contiguous_strides(const Shape& shape) {
  Strides strides = shape;
  std::int64_t step = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides[i] = step;
    // Overflows only where another size is 0, and then no stride is ever used.
    if (__builtin_mul_overflow(step, std::max<std::int64_t>(shape[i], 1), &step)) step = 1;
  }
  return strides;
}

Shape broadcast_shapes(const Shape& a, const Shape& b, const char* where) {
  const Shape& longer = a.rank() >= b.rank() ? a : b;
  const Shape& shorter = a.rank() >= b.rank() ? b : a;
  Shape out = longer;
  for (int i = 1; i <= shorter.rank(); ++i) {
    const std::int64_t x = longer[longer.rank() - i];
    const std::int64_t y = shorter[shorter.rank() - i];
    if (x != y && x != 1 && y != 1)
      fail(ErrorCode::shape_mismatch, where, "shapes do not broadcast",
           "sizes equal or 1, aligned at the last dimension",
           to_string(a) + " and " + to_string(b));
    out[longer.rank() - i] = x == 1 ? y : x;
  }
  return out;
}

int normalize_dim(int dim, int rank, const char* where) {
  if (dim < -rank || dim >= rank) [[unlikely]]
    refuse_dim(dim, rank, where);
  return dim < 0 ? dim + rank : dim;
}

std::string to_string(const Dims& dims) {
  std::string text = "[";
  for (int i = 0; i < dims.rank(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(dims[i]);
  }
  return text + "]";
}

}  // namespace heddle
