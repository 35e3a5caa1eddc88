#include "cuda/sides.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <numbers>
#include <span>

#include "heddle/random.h"
#include "mock/mock.h"

namespace heddle::cuda_tests {

namespace {

int fault_count = 0;
int judged_count = 0;
std::uint64_t streams = 0;

std::array<Device, kSides> devices() { return {Device::cuda(0), mock::device(), Device::cuda(0)}; }

template <class T>
Tensor as_type(const Shape& shape, const std::vector<double>& values) {
  std::vector<T> narrow;
  narrow.reserve(values.size());
  for (const double v : values) {
    if constexpr (std::is_same_v<T, bf16> || std::is_same_v<T, f16>)
      narrow.push_back(T::from_float(static_cast<float>(v)));
    else
      narrow.push_back(static_cast<T>(v));
  }
  return Tensor::from<T>(shape, std::span<const T>(narrow));
}

Tensor tensor_of(const Shape& shape, DType dtype, const std::vector<double>& values) {
  switch (dtype) {
    case DType::f32: return as_type<float>(shape, values);
    case DType::bf16: return as_type<bf16>(shape, values);
    case DType::f16: return as_type<f16>(shape, values);
    case DType::f64: return as_type<double>(shape, values);
    case DType::i32: return as_type<std::int32_t>(shape, values);
    case DType::i64: return as_type<std::int64_t>(shape, values);
    case DType::u8: return as_type<std::uint8_t>(shape, values);
  }
  return {};
}

template <class T>
std::vector<double> widened(const Tensor& x) {
  std::vector<double> wide;
  wide.reserve(static_cast<std::size_t>(x.elements()));
  for (const T v : x.to_vector<T>()) {
    if constexpr (std::is_same_v<T, bf16> || std::is_same_v<T, f16>)
      wide.push_back(static_cast<double>(v.to_float()));
    else
      wide.push_back(static_cast<double>(v));
  }
  return wide;
}

std::vector<double> numbers(const Tensor& x) {
  switch (x.dtype()) {
    case DType::f32: return widened<float>(x);
    case DType::bf16: return widened<bf16>(x);
    case DType::f16: return widened<f16>(x);
    case DType::f64: return widened<double>(x);
    case DType::i32: return widened<std::int32_t>(x);
    case DType::i64: return widened<std::int64_t>(x);
    case DType::u8: return widened<std::uint8_t>(x);
  }
  return {};
}

// Another stream of numbers with every call.
template <class F>
Sides drawn(const Shape& shape, DType dtype, F f) {
  const RandomKey key{++streams, 5, 6};
  std::vector<double> values(static_cast<std::size_t>(elements_of(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const PhiloxBlock words = philox(key, i);
    values[i] = f(words);
  }
  return spread(tensor_of(shape, dtype, values));
}

double normal(const PhiloxBlock& words) {
  const double u = (static_cast<double>(words[0]) + 0.5) * 0x1p-32;
  return std::sqrt(-2 * std::log(u)) *
         std::cos(2 * std::numbers::pi * static_cast<double>(words[1]) * 0x1p-32);
}

void fault(const std::string& what) {
  ++fault_count;
  std::printf("FAULT %s\n", what.c_str());
}

bool same_bits(const Tensor& a, const Tensor& b) {
  const Tensor x = a.to(Device::cpu), y = b.to(Device::cpu);
  return x.bytes() == 0 || std::memcmp(x.raw(), y.raw(), x.bytes()) == 0;
}

}  // namespace

Sides spread(const Tensor& on_cpu) {
  Sides all;
  for (std::size_t i = 0; i < kSides; ++i) all[i] = on_cpu.to(devices()[i]);
  return all;
}

Sides empty(const Shape& shape, DType dtype) {
  Sides all;
  for (std::size_t i = 0; i < kSides; ++i) all[i] = Tensor::empty(shape, dtype, devices()[i]);
  return all;
}

Sides zeros(const Shape& shape, DType dtype) {
  Sides all;
  for (std::size_t i = 0; i < kSides; ++i) all[i] = Tensor::zeros(shape, dtype, devices()[i]);
  return all;
}

Sides normals(const Shape& shape, DType dtype) {
  if (is_floating(dtype)) return drawn(shape, dtype, normal);
  const int low = dtype == DType::u8 ? 0 : -100;
  return drawn(shape, dtype, [low](const PhiloxBlock& w) {
    return static_cast<double>(low + static_cast<int>(w[0] % static_cast<unsigned>(101 - low)));
  });
}

Sides positives(const Shape& shape, DType dtype) {
  return drawn(shape, dtype, [](const PhiloxBlock& w) { return 0.5 + std::abs(normal(w)); });
}

Sides indices(const Shape& shape, std::int64_t bound, DType dtype) {
  return drawn(shape, dtype, [bound](const PhiloxBlock& w) {
    return static_cast<double>(w[0] % static_cast<std::uint64_t>(bound));
  });
}

double tolerance_of(DType dtype, std::int64_t terms) {
  const double sums = std::sqrt(static_cast<double>(terms));
  switch (dtype) {
    case DType::f32: return 0x1p-20 * sums;
    case DType::bf16: return 0x1p-7 + 0x1p-20 * sums;
    case DType::f16: return 0x1p-9;
    case DType::f64: return 0x1p-48 * sums;
    default: return 0;
  }
}

void judge(const std::string& what, const Sides& got, double tolerance) {
  ++judged_count;
  const std::vector<double> a = numbers(got[0]), b = numbers(got[1]);
  if (a.size() != b.size()) return fault(what + ": another number of elements");
  double squares = 0;
  for (const double v : b) squares += std::isfinite(v) ? v * v : 0;
  const double scale = b.empty() ? 0 : std::sqrt(squares / static_cast<double>(b.size()));
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool alike = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])) ||
                       std::abs(a[i] - b[i]) <= tolerance * (std::abs(b[i]) + scale);
    if (alike) continue;
    fault(what + ": element " + std::to_string(i) + " of " + std::to_string(a.size()) + " is " +
          std::to_string(a[i]) + " instead of " + std::to_string(b[i]));
    break;
  }
  if (!same_bits(got[0], got[2])) fault(what + ": other bits the second time");
}

void judge_true(const std::string& what, bool holds) {
  ++judged_count;
  if (!holds) fault(what);
}

int faults() { return fault_count; }
int judged() { return judged_count; }

}  // namespace heddle::cuda_tests
