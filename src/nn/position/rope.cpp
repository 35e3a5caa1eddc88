#include "nn/position/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "base/parallel.h"
#include "nn/require.h"
#include "ops/support/check.h"

namespace heddle::nn {

namespace {

using Frequencies = std::vector<double>;

constexpr const char* kRope = "rope";
constexpr double kTurn = 2 * std::numbers::pi;

std::int64_t rotated_width(const RopeOptions& o, std::int64_t head_width) {
  return o.rotated == 0 ? head_width : o.rotated;
}

Frequencies plain(double base, std::int64_t rotated) {
  Frequencies f;
  for (std::int64_t i = 0; i < rotated; i += 2)
    f.push_back(std::pow(base, -static_cast<double>(i) / static_cast<double>(rotated)));
  return f;
}

void check_factor(double factor) {
  require(std::isfinite(factor) && factor >= 1, kRope, "rope_scaling.factor", "a number from 1 on",
          factor);
}

void check_original(std::int64_t positions) {
  require(positions > 0, kRope, "rope_scaling.original_positions", "1 or more",
          static_cast<double>(positions));
}

// One overload of each per scaling; width: how many elements are turned.

void check(const NoScaling&, std::int64_t) {}
void check(const LinearScaling& s, std::int64_t) { check_factor(s.factor); }
void check(const NtkScaling& s, std::int64_t width) {
  check_factor(s.factor);
  require(width > 2, kRope, {"rope_width", "rope_scaling.kind", "head_width", "heads", "width"},
          "more than 2 beside NTK scaling: it keeps the first pair", static_cast<double>(width));
}
void check(const YarnScaling& s, std::int64_t) {
  check_factor(s.factor);
  check_original(s.original_positions);
  require(s.beta_slow > 0 && s.beta_fast > s.beta_slow, kRope,
          {"rope_scaling.beta_fast", "rope_scaling.beta_slow"},
          "more than beta_slow, which is above 0", s.beta_fast);
  const double given = s.attention_factor.value_or(1);
  require(std::isfinite(given) && given > 0, kRope, "rope_scaling.attention_factor",
          "a number above 0", given);
  require((s.mscale > 0) == (s.mscale_all_dim > 0), kRope, "rope_scaling.mscale",
          "mscale and mscale_all_dim, or neither", s.mscale);
}
void check(const Llama3Scaling& s, std::int64_t) {
  check_factor(s.factor);
  check_original(s.original_positions);
  require(s.low_frequency > 0 && s.high_frequency > s.low_frequency, kRope,
          {"rope_scaling.high_frequency", "rope_scaling.low_frequency"},
          "more than low_frequency, which is above 0", s.high_frequency);
}

void check(const FactorScaling& s, std::int64_t width) {
  require(static_cast<std::int64_t>(s.factors.size()) == width / 2, kRope,
          {"rope_scaling.factors", "rope_width", "head_width"},
          std::to_string(width / 2) + " numbers, one for each pair of elements that turn",
          static_cast<double>(s.factors.size()));
  for (const double factor : s.factors)
    require(std::isfinite(factor) && factor > 0, kRope, "rope_scaling.factors", "numbers above 0",
            factor);
  require(std::isfinite(s.attention_factor) && s.attention_factor > 0, kRope,
          "rope_scaling.attention_factor", "a number above 0", s.attention_factor);
}

Frequencies scaled(const NoScaling&, double base, std::int64_t width) { return plain(base, width); }

Frequencies scaled(const LinearScaling& s, double base, std::int64_t width) {
  Frequencies f = plain(base, width);
  for (double& v : f) v /= s.factor;
  return f;
}

Frequencies scaled(const NtkScaling& s, double base, std::int64_t width) {
  const auto r = static_cast<double>(width);
  return plain(base * std::pow(s.factor, r / (r - 2)), width);
}

Frequencies scaled(const YarnScaling& s, double base, std::int64_t width) {
  const auto r = static_cast<double>(width);
  // The pair that turns so many times within the original context.
  const auto pair_of = [&](double turns) {
    return r * std::log(static_cast<double>(s.original_positions) / (turns * kTurn)) /
           (2 * std::log(base));
  };
  double low = pair_of(s.beta_fast);
  double high = pair_of(s.beta_slow);
  if (s.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, r - 1);
  if (low == high) high += 0.001;
  Frequencies f = plain(base, width);
  for (std::size_t i = 0; i < f.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    f[i] = f[i] / s.factor * ramp + f[i] * (1 - ramp);
  }
  return f;
}

Frequencies scaled(const Llama3Scaling& s, double base, std::int64_t width) {
  const auto original = static_cast<double>(s.original_positions);
  Frequencies f = plain(base, width);
  for (double& v : f) {
    // How often the pair turns within the original context: 0 at low_frequency, 1 at
    // high_frequency.
    const double turns = original * v / kTurn;
    const double keep =
        std::clamp((turns - s.low_frequency) / (s.high_frequency - s.low_frequency), 0.0, 1.0);
    v = (1 - keep) * v / s.factor + keep * v;
  }
  return f;
}

Frequencies scaled(const FactorScaling& s, double base, std::int64_t width) {
  Frequencies f = plain(base, width);
  for (std::size_t i = 0; i < f.size(); ++i) f[i] /= s.factors[i];
  return f;
}

double yarn_magnitude(double factor, double mscale) {
  return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1;
}

template <class T>
void fill(ops::RopeTables& tables, const Frequencies& frequencies, double magnitude) {
  const auto pairs = static_cast<std::int64_t>(frequencies.size());
  T* const cos = tables.cos.mutable_data<T>();
  T* const sin = tables.sin.mutable_data<T>();
  parallel_ranges(tables.cos.size(0), 64, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t p = first; p < last; ++p)
      for (std::int64_t i = 0; i < pairs; ++i) {
        // In double for either type: at position 100 000 a float angle is off by 0.004.
        const double angle = static_cast<double>(p) * frequencies[static_cast<std::size_t>(i)];
        cos[p * pairs + i] = static_cast<T>(magnitude * std::cos(angle));
        sin[p * pairs + i] = static_cast<T>(magnitude * std::sin(angle));
      }
  });
}

}  // namespace

void validate(const RopeOptions& o, std::int64_t head_width) {
  require(std::isfinite(o.base) && o.base > 1, kRope, "rope_base", "a number above 1", o.base);
  const std::int64_t width = rotated_width(o, head_width);
  require(width > 0 && width <= head_width && width % 2 == 0, kRope,
          {"rope_width", "head_width", "heads", "width"},
          "an even number up to head_width = " + std::to_string(head_width) +
              " (which is what it is where it is not given): elements turn in pairs",
          static_cast<double>(width));
  std::visit([&](const auto& s) { check(s, width); }, o.scaling);
}

std::vector<double> rope_frequencies(const RopeOptions& o, std::int64_t head_width) {
  validate(o, head_width);
  return std::visit([&](const auto& s) { return scaled(s, o.base, rotated_width(o, head_width)); },
                    o.scaling);
}

double rope_attention_factor(const RopeOptions& o) {
  if (const auto* list = std::get_if<FactorScaling>(&o.scaling)) return list->attention_factor;
  const auto* const s = std::get_if<YarnScaling>(&o.scaling);
  if (s == nullptr) return 1;
  if (s->attention_factor) return *s->attention_factor;
  if (s->mscale > 0)
    return yarn_magnitude(s->factor, s->mscale) / yarn_magnitude(s->factor, s->mscale_all_dim);
  return yarn_magnitude(s->factor, 1);
}

ops::RopeTables rope_tables(const RopeOptions& o, std::int64_t head_width, std::int64_t positions,
                            DType dtype, Device device) {
  const Frequencies frequencies = rope_frequencies(o, head_width);
  require(positions >= 0, kRope, "positions", "0 or more", static_cast<double>(positions));
  if (dtype != DType::f32 && dtype != DType::f64)
    fail(ErrorCode::dtype_mismatch, kRope, "type of the tables", "f32 or f64", to_string(dtype));
  const Shape shape{positions, static_cast<std::int64_t>(frequencies.size())};
  if (device.is_meta())
    return {Tensor::empty(shape, dtype, device), Tensor::empty(shape, dtype, device)};
  ops::RopeTables tables{Tensor::empty(shape, dtype), Tensor::empty(shape, dtype)};
  const double magnitude = rope_attention_factor(o);
  if (dtype == DType::f64)
    fill<double>(tables, frequencies, magnitude);
  else
    fill<float>(tables, frequencies, magnitude);
  return {tables.cos.to(device), tables.sin.to(device)};
}

Rotary::Rotary(const RopeOptions& options, std::int64_t head_width)
    : options_(options), head_width_(head_width) {
  validate(options, head_width);
}

Tensor Rotary::rotate(const Tensor& x, std::int64_t first_position) const {
  return rotate(x, RotaryPlaces{.first = first_position});
}

Tensor Rotary::rotate(const Tensor& x, const RotaryPlaces& places) const {
  ops::check_compute({kRope, "x", x});
  ops::check_rank({kRope, "x", x}, 4);
  const std::int64_t end = places.positions.defined() ? places.end : places.first + x.size(1);
  const ops::RopeTables t = tables(end, ops::parameter_dtype(x), x.device());
  ops::RopeOptions call;
  call.pairing = options_.pairing;
  call.first_position = places.first;
  call.positions = places.positions;
  return ops::rope(x, t.cos, t.sin, call);
}

ops::RopeTables Rotary::reserve(std::int64_t positions, DType activations, Device device) const {
  return tables(positions, activations == DType::f64 ? DType::f64 : DType::f32, device);
}

ops::RopeTables Rotary::tables(std::int64_t positions, DType dtype, Device device) const {
  const std::scoped_lock lock(mutex_);
  const Tensor& have = tables_.cos;
  const bool fits = have.defined() && have.dtype() == dtype && have.device() == device;
  if (fits && have.size(0) >= positions) return tables_;
  // Twice what there was: a context that grows token by token costs no more than its length.
  const std::int64_t grown = fits ? std::max(positions, 2 * have.size(0)) : positions;
  tables_ = rope_tables(options_, head_width_, grown, dtype, device);
  return tables_;
}

}  // namespace heddle::nn
