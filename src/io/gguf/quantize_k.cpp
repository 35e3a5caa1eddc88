// Blocks of 256 weights in groups: each group has a scale of its own, itself a small integer times
// the scale of the block. Nothing prescribes how to choose all these numbers. Here:
//
// 1. For each group alone, real scales that fit best: of some candidates, each of which rounds the
//    weights in its own way, the one whose least squares fit has the least error.
// 2. The block's scale is such that the largest of these becomes the largest integer.
// 3. With the block's scale as f16 rounds it, each group tries the integers next to its own and
//    rounds its weights anew.
// 4. With all integers fixed, the block's scale by least squares; again from 3, as long as the
//    error becomes less.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "io/gguf/block_bits.h"
#include "io/gguf/quantize.h"

namespace heddle::io {
namespace {

constexpr int kRefits = 4;

double as_half(double value) { return f16::from_float(static_cast<float>(value)).to_float(); }

bool fits_half(double value) { return std::isfinite(as_half(value)); }

double rounded_between(double value, double low, double high) {
  return std::clamp(std::nearbyint(value), low, high);
}

// ---- Q4_K: scale q - offset, q from 0 to 15, both numbers from 0 to 63 ----

struct RealFit {
  double scale = 0;
  double offset = 0;
};

// Least squares of scale q - offset, the offset not below 0.
RealFit fit_line(const float* x, const std::array<double, kBlock>& q) {
  const auto n = static_cast<double>(kBlock);
  double sum_q = 0, sum_qq = 0, sum_x = 0, sum_xq = 0;
  for (std::size_t i = 0; i < kBlock; ++i) {
    sum_q += q[i];
    sum_qq += q[i] * q[i];
    sum_x += x[i];
    sum_xq += x[i] * q[i];
  }
  const double determinant = n * sum_qq - sum_q * sum_q;
  if (determinant > 0) {
    const double scale = (n * sum_xq - sum_x * sum_q) / determinant;
    const double offset = (scale * sum_q - sum_x) / n;
    if (scale >= 0 && offset >= 0) return {scale, offset};
  }
  return {sum_qq > 0 ? std::max(0.0, sum_xq / sum_qq) : 0, 0};
}

double squared_error(const float* x, const std::array<double, kBlock>& q, RealFit fit) {
  double error = 0;
  for (std::size_t i = 0; i < kBlock; ++i) {
    const double miss = fit.scale * q[i] - fit.offset - x[i];
    error += miss * miss;
  }
  return error;
}

RealFit fit_group(const float* x) {
  const auto [least, most] = std::minmax_element(x, x + kBlock);
  const double low = std::min(0.0, double{*least}), range = *most - low;
  if (range <= 0) return {0, -low};  // all the same, and not above 0
  RealFit best{range / 15, -low};
  double best_error = -1;
  for (int step = -10; step <= 10; ++step) {
    const double inverse = (15 + 0.1 * step) / range;
    std::array<double, kBlock> q{};
    for (std::size_t i = 0; i < kBlock; ++i) q[i] = rounded_between((x[i] - low) * inverse, 0, 15);
    const RealFit fit = fit_line(x, q);
    const double error = squared_error(x, q, fit);
    if (best_error >= 0 && error >= best_error) continue;
    best_error = error;
    best = fit;
  }
  return best;
}

struct Q4Codes {
  double d = 0, m = 0;  // as f16 holds them
  std::array<ScaleAndOffset, kGroups> groups{};
  std::array<std::uint8_t, kSuperBlock> q{};
  double error = 0;
};

// The error of a group, and its weights in q.
double round_group(const float* x, double scale, double offset, std::uint8_t* q) {
  const double inverse = scale > 0 ? 1 / scale : 0;
  double error = 0;
  for (std::size_t i = 0; i < kBlock; ++i) {
    const double code = rounded_between((x[i] + offset) * inverse, 0, 15);
    const double miss = scale * code - offset - x[i];
    q[i] = static_cast<std::uint8_t>(code);
    error += miss * miss;
  }
  return error;
}

void choose_group(const float* x, RealFit fit, std::size_t group, Q4Codes& codes) {
  const double scale = codes.d > 0 ? fit.scale / codes.d : 0;
  const double offset = codes.m > 0 ? fit.offset / codes.m : 0;
  double best = -1;
  std::array<std::uint8_t, kBlock> q{};
  for (int ds = -1; ds <= 1; ++ds) {
    const double s = rounded_between(scale + ds, 0, 63);
    for (int dm = -1; dm <= 1; ++dm) {
      const double o = rounded_between(offset + dm, 0, 63);
      const double error = round_group(x, codes.d * s, codes.m * o, q.data());
      if (best >= 0 && error >= best) continue;
      best = error;
      codes.groups[group] = {static_cast<std::uint8_t>(s), static_cast<std::uint8_t>(o)};
      std::ranges::copy(q, codes.q.data() + group * kBlock);
    }
  }
  codes.error += best;
}

Q4Codes choose_q4(const float* x, const std::array<RealFit, kGroups>& fits, double d, double m) {
  Q4Codes codes{.d = as_half(d), .m = as_half(m)};
  for (std::size_t g = 0; g < kGroups; ++g) choose_group(x + g * kBlock, fits[g], g, codes);
  return codes;
}

// d and m of least squares, the integers being as they are: x = d (scale q) - m offset.
RealFit refit_q4(const float* x, const Q4Codes& codes) {
  double aa = 0, ab = 0, bb = 0, xa = 0, xb = 0;
  for (std::size_t i = 0; i < kSuperBlock; ++i) {
    const ScaleAndOffset group = codes.groups[i / kBlock];
    const double a = group.scale * codes.q[i], b = group.offset;
    aa += a * a;
    ab += a * b;
    bb += b * b;
    xa += x[i] * a;
    xb += x[i] * b;
  }
  const double determinant = aa * bb - ab * ab;
  if (determinant <= 0) return {codes.d, codes.m};
  return {(xa * bb - xb * ab) / determinant, (xa * ab - xb * aa) / determinant};
}

// ---- Q6_K: scale q, q from -32 to 31, the scale from -128 to 127 ----

constexpr std::size_t kSmallGroup = 16;
constexpr std::size_t kSmallGroups = kSuperBlock / kSmallGroup;

double fit_small_group(const float* x) {
  const float* largest = x;
  for (const float* at = x; at != x + kSmallGroup; ++at)
    if (std::abs(*at) > std::abs(*largest)) largest = at;
  if (*largest == 0) return 0;
  double best_scale = 0, best_gain = -1;
  for (int step = -9; step <= 9; ++step) {
    const double inverse = -(32 + 0.1 * step) / *largest;
    double qq = 0, xq = 0;
    for (std::size_t i = 0; i < kSmallGroup; ++i) {
      const double q = rounded_between(x[i] * inverse, -32, 31);
      qq += q * q;
      xq += x[i] * q;
    }
    if (qq == 0) continue;
    // The scale xq / qq leaves the error sum(x^2) - xq^2 / qq.
    const double gain = xq * xq / qq;
    if (gain <= best_gain) continue;
    best_gain = gain;
    best_scale = xq / qq;
  }
  return best_scale;
}

struct Q6Codes {
  double d = 0;
  std::array<int, kSmallGroups> scales{};
  std::array<int, kSuperBlock> q{};  // from -32
  double error = 0;
};

double round_small_group(const float* x, double scale, int* q) {
  const double inverse = scale != 0 ? 1 / scale : 0;
  double error = 0;
  for (std::size_t i = 0; i < kSmallGroup; ++i) {
    const double code = rounded_between(x[i] * inverse, -32, 31);
    const double miss = scale * code - x[i];
    q[i] = static_cast<int>(code);
    error += miss * miss;
  }
  return error;
}

Q6Codes choose_q6(const float* x, const std::array<double, kSmallGroups>& fits, double d) {
  Q6Codes codes{.d = as_half(d)};
  std::array<int, kSmallGroup> q{};
  for (std::size_t g = 0; g < kSmallGroups; ++g) {
    const float* group = x + g * kSmallGroup;
    double best = -1;
    for (int ds = -1; ds <= 1; ++ds) {
      const double s = rounded_between((codes.d != 0 ? fits[g] / codes.d : 0) + ds, -128, 127);
      const double error = round_small_group(group, codes.d * s, q.data());
      if (best >= 0 && error >= best) continue;
      best = error;
      codes.scales[g] = static_cast<int>(s);
      std::ranges::copy(q, codes.q.data() + g * kSmallGroup);
    }
    codes.error += best;
  }
  return codes;
}

double refit_q6(const float* x, const Q6Codes& codes) {
  double aa = 0, xa = 0;
  for (std::size_t i = 0; i < kSuperBlock; ++i) {
    const double a = codes.scales[i / kSmallGroup] * codes.q[i];
    aa += a * a;
    xa += x[i] * a;
  }
  return aa > 0 ? xa / aa : codes.d;
}

void pack_q6(const Q6Codes& codes, std::uint8_t* block) {
  std::fill_n(block, format_of(BlockType::q6_k).bytes, std::uint8_t{0});
  const auto add = [&](std::size_t at, unsigned bits) {
    block[at] = static_cast<std::uint8_t>(block[at] | bits);
  };
  for (std::size_t i = 0; i < kSuperBlock; ++i) {
    const auto q = static_cast<unsigned>(codes.q[i] + 32);
    add(i / 128 * 64 + i % 64, (q & 15) << (4 * (i / 64 % 2)));
    add(128 + i / 128 * 32 + i % 32, q >> 4 << (2 * (i / 32 % 4)));
  }
  for (std::size_t g = 0; g < kSmallGroups; ++g)
    block[192 + g] = static_cast<std::uint8_t>(codes.scales[g]);
  put_half(block + 208, static_cast<float>(codes.d));
}

}  // namespace

bool encode_q4_k(const float* values, std::uint8_t* block) {
  std::array<RealFit, kGroups> fits{};
  double d = 0, m = 0;
  for (std::size_t g = 0; g < kGroups; ++g) {
    fits[g] = fit_group(values + g * kBlock);
    d = std::max(d, fits[g].scale / 63);
    m = std::max(m, fits[g].offset / 63);
  }
  if (!fits_half(d) || !fits_half(m)) return false;
  Q4Codes codes = choose_q4(values, fits, d, m);
  for (int round = 0; round < kRefits; ++round) {
    const RealFit again = refit_q4(values, codes);
    if (again.scale < 0 || again.offset < 0 || !fits_half(again.scale) || !fits_half(again.offset))
      break;
    const Q4Codes tried = choose_q4(values, fits, again.scale, again.offset);
    if (tried.error >= codes.error) break;
    codes = tried;
  }
  std::fill_n(block, format_of(BlockType::q4_k).bytes, std::uint8_t{0});
  put_half(block, static_cast<float>(codes.d));
  put_half(block + 2, static_cast<float>(codes.m));
  for (std::size_t g = 0; g < kGroups; ++g) pack_group(block + 4, g, codes.groups[g]);
  std::uint8_t* weights = block + 4 + kGroupBytes;
  for (std::size_t i = 0; i < kSuperBlock; ++i) {
    std::uint8_t& byte = weights[i / 64 * 32 + i % 32];
    byte = static_cast<std::uint8_t>(byte | codes.q[i] << (4 * (i / 32 % 2)));
  }
  return true;
}

bool encode_q6_k(const float* values, std::uint8_t* block) {
  std::array<double, kSmallGroups> fits{};
  double largest = 0;
  for (std::size_t g = 0; g < kSmallGroups; ++g) {
    fits[g] = fit_small_group(values + g * kSmallGroup);
    if (std::abs(fits[g]) > std::abs(largest)) largest = fits[g];
  }
  if (!fits_half(largest / -128)) return false;
  Q6Codes codes = choose_q6(values, fits, largest / -128);
  for (int round = 0; round < kRefits; ++round) {
    const double d = refit_q6(values, codes);
    if (!fits_half(d)) break;
    const Q6Codes tried = choose_q6(values, fits, d);
    if (tried.error >= codes.error) break;
    codes = tried;
  }
  pack_q6(codes, block);
  return true;
}

}  // namespace heddle::io
