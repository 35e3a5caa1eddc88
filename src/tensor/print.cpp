#include "heddle/print.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ostream>
#include <utility>
#include <vector>

namespace heddle {

namespace {

// The places of one dimension that are shown; -1 stands for what is left out.
std::vector<std::int64_t> shown_places(std::int64_t size, bool cut, std::int64_t edge) {
  std::vector<std::int64_t> places;
  const bool all = !cut || size <= 2 * edge;
  for (std::int64_t i = 0; i < size; ++i) {
    if (all || i < edge || i >= size - edge)
      places.push_back(i);
    else if (places.back() != -1)
      places.push_back(-1);
  }
  return places;
}

std::string number(double value, bool whole, int digits) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  const double size = std::fabs(value);
  const bool plain = size == 0 || (size < 1e5 && size >= std::pow(10, -digits));
  std::array<char, 64> text{};
  const char* const format = plain || whole ? "%.*f" : "%.*e";
  std::snprintf(text.data(), text.size(), format, whole ? 0 : digits, value);
  return text.data();
}

template <class T>
std::vector<double> as_doubles(const Tensor& x) {
  const std::vector<T> values = x.to_vector<T>();
  std::vector<double> out;
  out.reserve(values.size());
  for (const T& v : values) {
    if constexpr (requires { v.to_float(); })
      out.push_back(static_cast<double>(v.to_float()));
    else
      out.push_back(static_cast<double>(v));
  }
  return out;
}

std::vector<double> values_of(const Tensor& x) {
  switch (x.dtype()) {
    case DType::f32: return as_doubles<float>(x);
    case DType::bf16: return as_doubles<bf16>(x);
    case DType::f16: return as_doubles<f16>(x);
    case DType::f64: return as_doubles<double>(x);
    case DType::i32: return as_doubles<std::int32_t>(x);
    case DType::i64: return as_doubles<std::int64_t>(x);
    case DType::u8: return as_doubles<std::uint8_t>(x);
  }
  return {};
}

// Brackets within brackets, the last dimension on one line, all numbers of one width.
class Writer {
 public:
  Writer(const Tensor& x, const PrintOptions& options)
      : options_(options),
        shape_(x.shape()),
        strides_(contiguous_strides(x.shape())),
        whole_(!is_floating(x.dtype())),
        cut_(x.elements() > options.most),
        values_(values_of(x)) {
    each_shown(0, 0, [this](double v) {
      width_ = std::max(width_, number(v, whole_, options_.digits).size());
    });
  }

  std::string text() {
    write(0, 0);
    return std::move(out_);
  }

 private:
  template <class F>
  void each_shown(int dim, std::int64_t offset, const F& f) const {
    if (dim == shape_.rank()) return f(values_[static_cast<std::size_t>(offset)]);
    for (const std::int64_t i : shown_places(shape_[dim], cut_, options_.edge))
      if (i >= 0) each_shown(dim + 1, offset + i * strides_[dim], f);
  }

  void write(int dim, std::int64_t offset) {
    if (dim == shape_.rank()) {
      const std::string n =
          number(values_[static_cast<std::size_t>(offset)], whole_, options_.digits);
      out_.append(width_ - n.size(), ' ').append(n);
      return;
    }
    out_ += '[';
    bool first = true;
    for (const std::int64_t i : shown_places(shape_[dim], cut_, options_.edge)) {
      if (!first) separate(dim);
      first = false;
      if (i < 0)
        out_ += "...";
      else
        write(dim + 1, offset + i * strides_[dim]);
    }
    out_ += ']';
  }

  void separate(int dim) {
    out_ += ',';
    const int below = shape_.rank() - 1 - dim;  // dimensions inside of the one that is written
    if (below == 0) {
      out_ += ' ';
      return;
    }
    out_.append(static_cast<std::size_t>(below), '\n');
    out_.append(static_cast<std::size_t>(dim) + 1, ' ');
  }

  PrintOptions options_;
  Shape shape_;
  Strides strides_;
  bool whole_, cut_;
  std::vector<double> values_;
  std::size_t width_ = 0;
  std::string out_;
};

}  // namespace

std::string to_text(const Tensor& x, const PrintOptions& options) {
  if (!x.defined() || x.device().is_meta()) return x.describe();
  return Writer(x, options).text() + "  " + x.describe();
}

std::ostream& operator<<(std::ostream& out, const Tensor& x) { return out << to_text(x); }

}  // namespace heddle
