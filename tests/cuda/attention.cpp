// Attention on the GPU against its definition in f64 on the host: widths, lengths on both sides of
// a tile's edge, masks, heads that share keys, rows that lie apart, dropout of weights, and memory
// behind the keys that was never written; the same bits every time. The op harness has the rest of
// the grammar.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <span>
#include <string>
#include <vector>

#include "cuda/sides.h"
#include "heddle/random.h"
#include "ops/attention/attention.call.h"

namespace heddle::cuda_tests {

namespace {

const Device kGpu = Device::cuda(0);

enum class Mask : std::uint8_t { full, causal, window, prefix, padding, documents };

std::string name_of(Mask m) {
  constexpr const char* kNames[] = {"full", "causal", "window", "prefix", "padding", "documents"};
  return kNames[static_cast<int>(m)];
}

struct Setting {
  std::int64_t batch, queries, keys, heads, key_heads, width;
  Mask mask = Mask::full;
  bool apart = false;  // rows of q, k and v have gaps between them
  double dropout = 0;

  std::string name() const {
    return "attention " + name_of(mask) + (apart ? ", rows apart" : "") +
           (dropout > 0 ? ", dropout " : " ") +
           to_string(Shape{batch, queries, keys, heads, key_heads, width});
  }
};

struct Interval {
  std::int64_t first, last;
};

// Queries stand at the end of the keys.
Interval interval_of(const Setting& s, std::int64_t b, std::int64_t i) {
  const std::int64_t at = i + s.keys - s.queries;
  const auto bounded = [&](std::int64_t key) { return std::clamp<std::int64_t>(key, 0, s.keys); };
  switch (s.mask) {
    case Mask::full: return {0, s.keys};
    case Mask::causal: return {0, bounded(at + 1)};
    case Mask::window: return {bounded(at - 70), bounded(at + 1)};
    case Mask::prefix: return {0, bounded(std::max(at + 1, s.keys / 3 + b))};
    case Mask::padding: return {0, std::min(bounded(at + 1), s.keys - s.keys / 3 - 5 * b)};
    case Mask::documents: {
      const bool blind = i % 37 == 5 || (i >= 120 && i < 400);  // rows, and whole tiles
      return blind ? Interval{3, 3} : Interval{bounded(at / (90 + b) * (90 + b)), bounded(at + 1)};
    }
  }
  return {0, 0};
}

// Nearly normal numbers.
std::vector<float> drawn(std::int64_t count, std::uint64_t stream) {
  std::vector<float> v(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < v.size(); ++i) {
    const PhiloxBlock w = philox(RandomKey{stream, 7, 8}, i);
    const double sum =
        static_cast<double>(w[0]) + static_cast<double>(w[1]) + static_cast<double>(w[2]);
    v[i] = bf16::from_float(static_cast<float>(2 * (sum * 0x1p-32 - 1.5))).to_float();
  }
  return v;
}

// [B, T, heads, width] on the GPU, with room between rows or without.
Tensor upload(const std::vector<float>& values, const Shape& shape, bool apart) {
  std::vector<bf16> v;
  v.reserve(values.size());
  for (const float x : values) v.push_back(bf16::from_float(x));
  if (!apart) return Tensor::from<bf16>(shape, std::span<const bf16>(v), kGpu);
  Shape wide = shape;
  wide[2] *= 3;
  std::vector<bf16> spread(v.size() * 3, bf16::from_float(1e30f));
  const auto row = static_cast<std::size_t>(shape[2] * shape[3]);
  for (std::size_t i = 0; i < v.size(); ++i) spread[i / row * 3 * row + row + i % row] = v[i];
  const Tensor all = Tensor::from<bf16>(wide, std::span<const bf16>(spread), kGpu);
  return views::slice(all, 2, shape[2], 2 * shape[2]);
}

struct Case {
  Setting s;
  double scale;
  std::vector<float> q, k, v, dy;
  std::vector<Interval> rows;      // [B, Tq]
  std::vector<std::int32_t> ends;  // [B]

  explicit Case(const Setting& setting) : s(setting) {
    scale = 1.3 / std::sqrt(static_cast<double>(s.width));
    const std::int64_t queries = s.batch * s.queries * s.heads * s.width;
    const std::int64_t keys = s.batch * s.keys * s.key_heads * s.width;
    q = drawn(queries, 1);
    k = drawn(keys, 2);
    v = drawn(keys, 3);
    dy = drawn(queries, 4);
    for (std::int64_t b = 0; b < s.batch; ++b) {
      std::int64_t end = 0;
      for (std::int64_t i = 0; i < s.queries; ++i) {
        rows.push_back(interval_of(s, b, i));
        if (rows.back().first < rows.back().last) end = std::max(end, rows.back().last);
      }
      ends.push_back(static_cast<std::int32_t>(end));
      // What nobody sees may be anything.
      const auto from = static_cast<std::size_t>((b * s.keys + end) * s.key_heads * s.width);
      const auto to = static_cast<std::size_t>((b + 1) * s.keys * s.key_heads * s.width);
      for (std::size_t i = from; i < to; ++i) k[i] = v[i] = std::numeric_limits<float>::quiet_NaN();
    }
  }

  ops::VisibleKeys visible() const {
    std::vector<std::int32_t> all;
    double pairs = 0;
    for (const Interval& r : rows) all.push_back(static_cast<std::int32_t>(r.first));
    for (const Interval& r : rows) {
      all.push_back(static_cast<std::int32_t>(r.last));
      pairs += static_cast<double>(r.last - r.first);
    }
    return {Tensor::from<std::int32_t>({2, s.batch, s.queries}, std::span<const std::int32_t>(all),
                                       kGpu),
            Tensor::from<std::int32_t>({s.batch}, std::span<const std::int32_t>(ends), kGpu),
            s.keys, pairs};
  }
};

constexpr RandomKey kDropped{0x123456789abcdefULL, 11, 12};

// By what a weight is multiplied: 0 or 1 / (1 - dropout). Each row of keys begins with a block of
// four random numbers.
double kept_times(const Setting& s, std::int64_t row, std::int64_t key) {
  if (s.dropout == 0) return 1;
  const std::int64_t block = row * ((s.keys + 3) / 4) + key / 4;
  const std::uint32_t drawn =
      philox(kDropped, static_cast<std::uint64_t>(block))[static_cast<std::size_t>(key % 4)];
  return drawn < static_cast<std::uint32_t>(s.dropout * 0x1p32) ? 0 : 1 / (1 - s.dropout);
}

// y, the sums of rows, dq, dk, dv.
struct Outcome {
  std::vector<double> y, sums, dq, dk, dv;
  bool operator==(const Outcome&) const = default;
};

// One query of one head, forward and backward.
void define_row(const Case& c, std::int64_t b, std::int64_t i, std::int64_t h, Outcome& o) {
  const Setting& s = c.s;
  const auto [first, last] = c.rows[static_cast<std::size_t>(b * s.queries + i)];
  const auto width = static_cast<std::size_t>(s.width);
  const auto at = static_cast<std::size_t>((b * s.queries + i) * s.heads + h) * width;
  const auto key_at = [&](std::int64_t j) {
    return static_cast<std::size_t>((b * s.keys + j) * s.key_heads + h / (s.heads / s.key_heads)) *
           width;
  };
  const auto dot = [width](const auto* x, const auto* y) {
    double sum = 0;
    for (std::size_t d = 0; d < width; ++d)
      sum += static_cast<double>(x[d]) * static_cast<double>(y[d]);
    return sum;
  };
  std::vector<double> p, kept;
  const std::int64_t row = (b * s.heads + h) * s.queries + i;
  double top = -std::numeric_limits<double>::infinity(), sum = 0, delta = 0;
  for (std::int64_t j = first; j < last; ++j) {
    p.push_back(c.scale * dot(&c.q[at], &c.k[key_at(j)]));
    kept.push_back(kept_times(s, row, j));
    top = std::max(top, p.back());
  }
  for (double& x : p) sum += x = std::exp(x - top);
  for (std::size_t n = 0; n < p.size(); ++n) {
    p[n] /= sum;
    for (std::size_t d = 0; d < width; ++d)
      o.y[at + d] += p[n] * kept[n] *
                     static_cast<double>(c.v[key_at(first + static_cast<std::int64_t>(n)) + d]);
  }
  o.sums[static_cast<std::size_t>(row)] =
      p.empty() ? 0 : (top + std::log(sum)) * std::numbers::log2e;
  for (std::size_t d = 0; d < width; ++d) delta += o.y[at + d] * static_cast<double>(c.dy[at + d]);
  for (std::size_t n = 0; n < p.size(); ++n) {
    const std::size_t key = key_at(first + static_cast<std::int64_t>(n));
    const double ds = c.scale * p[n] * (kept[n] * dot(&c.dy[at], &c.v[key]) - delta);
    for (std::size_t d = 0; d < width; ++d) {
      o.dq[at + d] += ds * static_cast<double>(c.k[key + d]);
      o.dk[key + d] += ds * static_cast<double>(c.q[at + d]);
      o.dv[key + d] += p[n] * kept[n] * static_cast<double>(c.dy[at + d]);
    }
  }
}

Outcome by_definition(const Case& c) {
  const Setting& s = c.s;
  Outcome o;
  o.y = o.dq = std::vector<double>(c.q.size());
  o.dk = o.dv = std::vector<double>(c.k.size());
  o.sums = std::vector<double>(static_cast<std::size_t>(s.batch * s.heads * s.queries));
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t i = 0; i < s.queries; ++i)
      for (std::int64_t h = 0; h < s.heads; ++h) define_row(c, b, i, h, o);
  return o;
}

std::vector<double> numbers_of(const Tensor& x) {
  std::vector<double> wide;
  if (x.dtype() == DType::f32)
    for (const float v : x.to_vector<float>()) wide.push_back(static_cast<double>(v));
  else
    for (const bf16 v : x.to_vector<bf16>()) wide.push_back(static_cast<double>(v.to_float()));
  return wide;
}

Outcome on_gpu(const Case& c) {
  const Setting& s = c.s;
  const Shape queries{s.batch, s.queries, s.heads, s.width};
  const Shape keys{s.batch, s.keys, s.key_heads, s.width};
  ops::AttentionInputs in;
  in.q = upload(c.q, queries, s.apart);
  in.k = upload(c.k, keys, s.apart);
  in.v = upload(c.v, keys, s.apart);
  in.options.scale = c.scale;
  in.options.dropout = s.dropout;
  in.options.key = kDropped;
  in.keys = c.visible();
  const auto fresh = [](const Shape& shape, DType dtype) {
    return Tensor::empty(shape, dtype, kGpu);
  };
  Tensor y = fresh(queries, DType::bf16), sums = fresh({s.batch, s.heads, s.queries}, DType::f32);
  Tensor dq = fresh(queries, DType::bf16), dk = fresh(keys, DType::bf16);
  Tensor dv = fresh(keys, DType::bf16), none[5];
  const Tensor dy = upload(c.dy, queries, false);
  backend::launch(ops::AttentionCall{in, y, sums, none[0]});
  backend::launch(ops::AttentionBackwardCall{in, y, sums, none[0], dy, dq, dk, dv, none[1], none[2],
                                             none[3], none[4]});
  return {numbers_of(y), numbers_of(sums), numbers_of(dq), numbers_of(dk), numbers_of(dv)};
}

// |a - b| / |b|; a NaN counts as everything.
double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double error = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    error += (a[i] - b[i]) * (a[i] - b[i]);
    size += b[i] * b[i];
  }
  const double d = std::sqrt(error / std::max(size, 1e-30));
  return std::isnan(d) ? std::numeric_limits<double>::infinity() : d;
}

void judge_attention(const Setting& s) {
  const Case c(s);
  const Outcome wanted = by_definition(c), got = on_gpu(c);
  const auto close = [&](const char* what, const std::vector<double>& a,
                         const std::vector<double>& b, double tolerance) {
    const double d = distance(a, b);
    judge_true(s.name() + ", " + what + ": off by " + std::to_string(d), d <= tolerance);
  };
  close("y", got.y, wanted.y, 6e-3);
  close("sums", got.sums, wanted.sums, 1e-5);
  close("dq", got.dq, wanted.dq, 8e-3);
  close("dk", got.dk, wanted.dk, 8e-3);
  close("dv", got.dv, wanted.dv, 8e-3);
  for (int again = 0; again < 3; ++again)
    judge_true(s.name() + ": other bits the next time", got == on_gpu(c));
}

}  // namespace

void test_attention() {
  for (const std::int64_t width : {64, 128, 32}) {
    for (const Mask mask :
         {Mask::full, Mask::causal, Mask::window, Mask::prefix, Mask::padding, Mask::documents}) {
      judge_attention({2, 320, 320, 4, 2, width, mask});
      judge_attention({1, 517, 517, 2, 1, width, mask, true});
      judge_attention({2, 191, 390, 2, 2, width, mask});
    }
    judge_attention({1, 9, 9, 1, 1, width});
    judge_attention({1, 128, 128, 1, 1, width});
    judge_attention({3, 300, 100, 2, 1, width});                // more queries than keys
    judge_attention({3, 300, 129, 3, 1, width, Mask::causal});  // the first ones see nothing
    for (const Mask mask : {Mask::full, Mask::causal, Mask::window, Mask::documents}) {
      judge_attention({2, 320, 320, 4, 2, width, mask, false, 0.2});
      judge_attention({1, 517, 517, 2, 1, width, mask, true, 0.5});
      judge_attention({2, 191, 390, 2, 2, width, mask, false, 0.9});
    }
    judge_attention({3, 300, 129, 3, 1, width, Mask::padding, false, 0.2});
  }
  // What is kept of three heads is drawn together, then that of the last one.
  judge_attention({1, 17000, 17000, 4, 4, 64, Mask::window, false, 0.2});
}

// Many blocks of threads that add to the same dq: at sizes that fill the GPU, does every bit
// repeat?
void test_attention_bits() {
  for (const std::int64_t width : {64, 128}) {
    const std::int64_t heads = 512 / width;
    for (const Setting& s : {Setting{2, 4096, 4096, heads, heads, width, Mask::full},
                             {4, 2048, 2048, heads, heads, width, Mask::causal},
                             {1, 10000, 10000, heads, heads / 2, width, Mask::causal},
                             // more blocks of keys than an H200 has multiprocessors
                             {1, 1000, 20000, heads, heads, width, Mask::full},
                             {1, 20000, 20000, heads / 2, heads / 2, width, Mask::causal},
                             {4, 2048, 2048, heads, heads, width, Mask::causal, false, 0.2},
                             {1, 1000, 20000, heads, heads, width, Mask::full, false, 0.2}}) {
      const Case c(s);
      const Outcome first = on_gpu(c);
      for (int again = 0; again < 3; ++again)
        judge_true(s.name() + ": other bits the next time", first == on_gpu(c));
    }
  }
}

}  // namespace heddle::cuda_tests
