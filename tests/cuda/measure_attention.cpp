// How fast attention is: TFLOP/s of visible pairs (4 · D operations forward, 10 · D backward), 16k
// tokens of width 2048 in bf16, as docs/performance.md has them.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "cuda/sides.h"
#include "cuda/timing.h"
#include "ops/attention/attention.call.h"

namespace heddle::cuda_tests {

namespace {

using backend::launch;

const Device kDevice = Device::cuda(0);

struct Setting {
  std::int64_t batch, queries, keys, heads, key_heads, width;
  bool causal = false;
  std::int64_t look_back = 0;  // 0: everything
  double dropout = 0;
};

// Queries stand at the end of the keys.
ops::VisibleKeys intervals_of(const Setting& s) {
  std::vector<std::int32_t> all(static_cast<std::size_t>(2 * s.batch * s.queries));
  double pairs = 0;
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t i = 0; i < s.queries; ++i) {
      const std::int64_t position = i + s.keys - s.queries;
      const std::int64_t last = s.causal ? position + 1 : s.keys;
      const std::int64_t first =
          s.look_back > 0 ? std::max<std::int64_t>(position - s.look_back, 0) : 0;
      const auto at = static_cast<std::size_t>(b * s.queries + i);
      all[at] = static_cast<std::int32_t>(first);
      all[at + all.size() / 2] = static_cast<std::int32_t>(last);
      pairs += static_cast<double>(last - first);
    }
  const std::vector<std::int32_t> ends(static_cast<std::size_t>(s.batch),
                                       static_cast<std::int32_t>(s.keys));
  return {Tensor::from<std::int32_t>({2, s.batch, s.queries}, std::span<const std::int32_t>(all),
                                     kDevice),
          Tensor::from<std::int32_t>({s.batch}, std::span<const std::int32_t>(ends), kDevice),
          s.keys, pairs};
}

struct Attention {
  ops::AttentionInputs in;
  Tensor y, sums, parts, dy, dq, dk, dv, none;

  Attention(const Setting& s, DType dtype) {
    in.q = noise({s.batch, s.queries, s.heads, s.width}, dtype);
    in.k = noise({s.batch, s.keys, s.key_heads, s.width}, dtype);
    in.v = noise({s.batch, s.keys, s.key_heads, s.width}, dtype);
    in.options.scale = 1 / std::sqrt(static_cast<double>(s.width));
    in.options.dropout = s.dropout;
    in.keys = intervals_of(s);
    y = Tensor::empty(in.q.shape(), dtype, kDevice);
    sums = Tensor::empty({s.batch, s.heads, s.queries}, DType::f32, kDevice);
    dy = noise(in.q.shape(), dtype);
    dq = Tensor::empty(in.q.shape(), dtype, kDevice);
    dk = Tensor::empty(in.k.shape(), dtype, kDevice);
    dv = Tensor::empty(in.v.shape(), dtype, kDevice);
  }

  void forward() { launch(ops::AttentionCall{in, y, sums, parts}); }
  void backward() {
    Tensor w, bias, sinks, mask;
    launch(ops::AttentionBackwardCall{in, y, sums, parts, dy, dq, dk, dv, w, bias, sinks, mask});
  }
};

void measured(const std::string& name, const Setting& s, DType dtype, int times) {
  Attention a(s, dtype);
  const double pairs = a.in.visible_pairs() * static_cast<double>(s.width);
  const double forward = seconds([&] { a.forward(); }, times);
  const double backward = seconds([&] { a.backward(); }, times);
  std::printf("%-34s forward %7.1f  backward %7.1f TFLOP/s  (%.3f, %.3f ms)\n", name.c_str(),
              4e-12 * pairs / forward, 10e-12 * pairs / backward, 1e3 * forward, 1e3 * backward);
  std::fflush(stdout);
}

// One query against a cache: what counts is how fast the cache is read.
void decoded(const std::string& name, const Setting& s) {
  Attention a(s, DType::bf16);
  const double t = seconds([&] { a.forward(); }, 20);
  const double bytes = static_cast<double>(a.in.k.bytes() + a.in.v.bytes());
  std::printf("%-34s %7.3f TB/s of keys and values (%.1f us)\n", name.c_str(), 1e-12 * bytes / t,
              1e6 * t);
  std::fflush(stdout);
}

}  // namespace

void measure_attention() {
  for (const std::int64_t width : {128, 64})
    for (const std::int64_t n : {1024, 4096, 16384}) {
      const std::int64_t heads = 2048 / width, batch = 16384 / n;
      const std::string what = "D" + std::to_string(width) + " n" + std::to_string(n / 1024) + "k";
      measured(what + " full", {batch, n, n, heads, heads, width}, DType::bf16, 3);
      measured(what + " causal", {batch, n, n, heads, heads, width, true}, DType::bf16, 3);
      if (n > 1024)
        measured(what + " window of 1024", {batch, n, n, heads, heads, width, true, 1024},
                 DType::bf16, 3);
    }
  for (const double dropout : {0.0, 0.2}) {
    const std::string what = dropout > 0 ? "dropout, " : "";
    measured(what + "D64 n256 causal", {64, 256, 256, 6, 6, 64, true, 0, dropout}, DType::bf16, 10);
    measured(what + "D64 n1k causal", {16, 1024, 1024, 32, 32, 64, true, 0, dropout}, DType::bf16,
             3);
    measured(what + "D128 n4k causal", {4, 4096, 4096, 16, 16, 128, true, 0, dropout}, DType::bf16,
             3);
  }
  measured("D128 n4k causal, 4 key heads", {4, 4096, 4096, 16, 4, 128, true}, DType::bf16, 3);
  measured("D256 n4k causal", {4, 4096, 4096, 8, 8, 256, true}, DType::bf16, 3);
  measured("D64 n1k causal f32", {4, 1024, 1024, 12, 12, 64, true}, DType::f32, 2);
  decoded("decode 512 keys, 32 / 4 heads", {1, 1, 512, 32, 4, 64});
  decoded("decode 8k keys, 32 / 8 heads", {1, 1, 8192, 32, 8, 128});
  decoded("decode 64 x 2k keys, 32 / 8 heads", {64, 1, 2048, 32, 8, 128});
}

}  // namespace heddle::cuda_tests
