// The mock device's routines: each is the formula of its call, one element after the other.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "backend/copy.call.h"
#include "heddle/gate.h"
#include "mock/elements.h"
#include "ops/binary/binary.call.h"
#include "ops/gather/gather.call.h"
#include "ops/matmul/matmul.call.h"
#include "ops/random/random.call.h"
#include "ops/reduce/reduce.call.h"
#include "ops/unary/unary.call.h"

namespace heddle::mock {

namespace {

using ops::Binary;
using ops::Unary;

constexpr double kGeluTanh = 0.044715;

void copy(backend::CopyCall& c) {
  const Elements src(c.src);
  Elements dst(c.dst);
  for (std::int64_t i = 0; i < dst.count(); ++i)
    dst.put(i, c.accumulate ? dst.at(i) + src.at(i) : src.at(i));
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }
double gelu_tanh_inner(double x) {
  return std::sqrt(2 / std::numbers::pi) * (x + kGeluTanh * x * x * x);
}

double value(Unary kind, double x, double p) {
  switch (kind) {
    case Unary::neg: return -x;
    case Unary::exp: return std::exp(x);
    case Unary::log: return std::log(x);
    case Unary::sqrt: return std::sqrt(x);
    case Unary::rsqrt: return 1 / std::sqrt(x);
    case Unary::square: return x * x;
    case Unary::scale: return x * p;
    case Unary::add_number: return x + p;
    case Unary::relu: return x > 0 || std::isnan(x) ? x : 0;
    case Unary::gelu: return x * normal_cdf(x);
    case Unary::gelu_tanh: return 0.5 * x * (1 + std::tanh(gelu_tanh_inner(x)));
    case Unary::silu: return x * sigmoid(x);
    case Unary::quick_gelu: return x * sigmoid(kQuickGelu * x);
    case Unary::tanh: return std::tanh(x);
    case Unary::sigmoid: return sigmoid(x);
    case Unary::softcap: return p * std::tanh(x / p);
  }
  return x;
}

// In the output where ops::derivative_from_output() says so, else in the input.
double derivative(Unary kind, double s, double p) {
  switch (kind) {
    case Unary::neg: return -1;
    case Unary::exp: return s;
    case Unary::log: return 1 / s;
    case Unary::sqrt: return 0.5 / s;
    case Unary::rsqrt: return -0.5 * s * s * s;
    case Unary::square: return 2 * s;
    case Unary::scale: return p;
    case Unary::add_number: return 1;
    case Unary::relu: return s > 0 ? 1 : 0;
    case Unary::gelu:
      return normal_cdf(s) + s * std::exp(-s * s / 2) / std::sqrt(2 * std::numbers::pi);
    case Unary::gelu_tanh: {
      const double t = std::tanh(gelu_tanh_inner(s));
      const double inner = std::sqrt(2 / std::numbers::pi) * (1 + 3 * kGeluTanh * s * s);
      return 0.5 * (1 + t) + 0.5 * s * (1 - t * t) * inner;
    }
    case Unary::silu: return sigmoid(s) * (1 + s * (1 - sigmoid(s)));
    case Unary::quick_gelu: {
      const double g = sigmoid(kQuickGelu * s);
      return g * (1 + kQuickGelu * s * (1 - g));
    }
    case Unary::tanh: return 1 - s * s;
    case Unary::sigmoid: return s * (1 - s);
    case Unary::softcap: return 1 - s / p * (s / p);
  }
  return 1;
}

void unary(ops::UnaryCall& c) {
  const Elements x(c.x);
  Elements y(c.y);
  for (std::int64_t i = 0; i < y.count(); ++i) y.put(i, value(c.kind, x.at(i), c.parameter));
}

void unary_backward(ops::UnaryBackwardCall& c) {
  const Elements saved(c.saved), dy(c.dy);
  Elements dx(c.dx);
  for (std::int64_t i = 0; i < dx.count(); ++i)
    dx.put(i, dy.at(i) * derivative(c.kind, saved.at(i), c.parameter));
}

double value(Binary kind, double a, double b) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  switch (kind) {
    case Binary::add: return a + b;
    case Binary::sub: return a - b;
    case Binary::mul: return a * b;
    case Binary::div: return a / b;
    case Binary::maximum: return std::isnan(a) || std::isnan(b) ? nan : std::max(a, b);
    case Binary::prefers_a: return a > b ? 1 : a == b ? 0.5 : 0;
    case Binary::prefers_b: return b > a ? 1 : a == b ? 0.5 : 0;
  }
  return nan;
}

void binary(ops::BinaryCall& c) {
  const Elements a(views::broadcast(c.a, c.y.shape())), b(views::broadcast(c.b, c.y.shape()));
  Elements y(c.y);
  for (std::int64_t i = 0; i < y.count(); ++i) y.put(i, value(c.kind, a.at(i), b.at(i)));
}

void reduce(ops::ReduceCall& c) {
  const Elements x(c.x);
  Elements y(c.y);
  const auto [outer, length, inner] = c.split;
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t i = 0; i < inner; ++i) {
      const bool sum = c.kind == ops::Reduce::sum;
      double total = sum ? 0 : -std::numeric_limits<double>::infinity();
      for (std::int64_t l = 0; l < length; ++l) {
        const double v = x.at((o * length + l) * inner + i);
        total = sum ? total + v : std::isnan(v) || v > total ? v : total;
      }
      y.put(o * inner + i, c.scale * total);
    }
}

void max_backward(ops::MaxBackwardCall& c) {
  const Elements x(c.x), y(c.y), dy(c.dy);
  Elements dx(c.dx);
  const auto [outer, length, inner] = c.split;
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t i = 0; i < inner; ++i) {
      const std::int64_t to = o * inner + i;
      const auto from = [&](std::int64_t l) { return (o * length + l) * inner + i; };
      std::int64_t equal = 0;
      for (std::int64_t l = 0; l < length; ++l) equal += x.at(from(l)) == y.at(to) ? 1 : 0;
      for (std::int64_t l = 0; l < length; ++l)
        dx.put(from(l), x.at(from(l)) == y.at(to) ? dy.at(to) / static_cast<double>(equal) : 0);
    }
}

void matmul(ops::MatmulCall& c) {
  const Elements a(c.a), b(c.b);
  Elements y(c.y);
  const std::int64_t m = c.a.size(-2), k = c.a.size(-1), n = c.b.size(-1);
  const std::int64_t products = m * n == 0 ? 0 : y.count() / (m * n);
  for (std::int64_t p = 0; p < products; ++p)
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (std::int64_t l = 0; l < k; ++l)
          sum += a.at((p * m + i) * k + l) * b.at((p * k + l) * n + j);
        y.put((p * m + i) * n + j, sum);
      }
}

// No host code has checked the ids before: one that names no row must not lead out of bounds.
std::int64_t row_of(const Elements& ids, std::int64_t i, std::int64_t rows) {
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(ids.at(i)), 0, rows - 1);
}

// The place in a tensor of `shape` that has ids[place] as its coordinate `dim`, and the others of
// `place` in the ids' shape.
std::int64_t picked(const Elements& ids, const Shape& of_ids, const Shape& shape, int dim,
                    std::int64_t place) {
  std::int64_t at = 0, step = 1, rest = place;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    const std::int64_t own = rest % of_ids[i];
    rest /= of_ids[i];
    at += step * (i == dim ? row_of(ids, place, shape[i]) : own);
    step *= shape[i];
  }
  return at;
}

void gather(ops::GatherCall& c) {
  const Elements ids(c.ids), x(c.x);
  Elements y(c.y);
  for (std::int64_t i = 0; i < y.count(); ++i)
    y.put(i, x.at(picked(ids, c.ids.shape(), c.x.shape(), c.dim, i)));
}

void scatter_add(ops::ScatterAddCall& c) {
  const Elements ids(c.ids), source(c.source);
  Elements sum(c.sum);
  for (std::int64_t i = 0; i < ids.count(); ++i)
    sum.add(picked(ids, c.ids.shape(), c.sum.shape(), c.dim, i), source.at(i));
}

std::int64_t row_width(const Tensor& x) { return x.size(0) == 0 ? 0 : x.elements() / x.size(0); }

void index_select(ops::IndexSelectCall& c) {
  const Elements ids(c.ids), x(c.x);
  Elements y(c.y);
  const std::int64_t width = row_width(c.y);
  for (std::int64_t i = 0; i < y.count(); ++i)
    y.put(i, x.at(row_of(ids, i / width, c.x.size(0)) * width + i % width));
}

void index_add(ops::IndexAddCall& c) {
  const Elements ids(c.ids), source(c.source);
  Elements y(c.y);
  const std::int64_t width = row_width(c.y);
  for (std::int64_t row = 0; row * width < y.count(); ++row)
    for (std::int64_t at = row * width; at < (row + 1) * width; ++at) {
      double sum = c.x.defined() ? Elements(c.x).at(at) : 0;
      for (std::int64_t i = 0; i < ids.count(); ++i)
        if (static_cast<std::int64_t>(ids.at(i)) == row) sum += source.at(i * width + at % width);
      y.put(at, sum);
    }
}

std::uint32_t word(const RandomKey& key, std::uint64_t i) { return philox(key, i / 4)[i % 4]; }

// Element pairs (2n, 2n + 1) are the two normal numbers of one pair of uniform ones (Box, Muller).
double drawn(const ops::RandomCall& c, std::uint64_t i) {
  if (!c.normal) return (word(c.key, i) >> 8) * 0x1p-24;
  const double u = ((word(c.key, i & ~std::uint64_t{1}) >> 8) + 1) * 0x1p-24;
  const double t = 2 * std::numbers::pi * ((word(c.key, i | 1) >> 8) * 0x1p-24);
  return std::sqrt(-2 * std::log(u)) * (i % 2 == 0 ? std::cos(t) : std::sin(t));
}

void random(ops::RandomCall& c) {
  Elements y(c.y);
  for (std::int64_t i = 0; i < y.count(); ++i)
    y.put(i, c.offset + c.factor * drawn(c, static_cast<std::uint64_t>(i)));
}

template <class Call>
void add(void (*run)(Call&)) {
  backend::add_routine<Call>(DeviceKind::plugin, {run, nullptr});
}

}  // namespace

void add_routines() {
  add<backend::CopyCall>(copy);
  add<ops::UnaryCall>(unary);
  add<ops::UnaryBackwardCall>(unary_backward);
  add<ops::BinaryCall>(binary);
  add<ops::ReduceCall>(reduce);
  add<ops::MaxBackwardCall>(max_backward);
  add<ops::MatmulCall>(matmul);
  add<ops::GatherCall>(gather);
  add<ops::ScatterAddCall>(scatter_add);
  add<ops::IndexSelectCall>(index_select);
  add<ops::IndexAddCall>(index_add);
  add<ops::RandomCall>(random);
}

}  // namespace heddle::mock
