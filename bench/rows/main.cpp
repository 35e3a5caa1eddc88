// Kernels that work on rows, as a share of what this machine's memory gives.
//
//   bench_rows [rows columns [part of a name]]
//
// Each kernel is compared with a probe that moves as many arrays in and out and does nothing else,
// with plain or with streaming stores, whichever is faster. Kernel and probes take turns, so that a
// busy neighbour slows all of them down; medians are shown.
#include <immintrin.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "backend/cpu/isa.h"
#include "backend/cpu/threads.h"
#include "heddle/ops.h"
#include "heddle/tape.h"

namespace {

using heddle::DType;
using heddle::Tensor;
using Tensors = std::vector<Tensor>;

constexpr int kRounds = 21;

// With one thread (HEDDLE_THREADS=1) this is the thread's own time, which stands still while
// another process has the core; with several it is the time on the wall.
double now() {
  timespec t{};
  clock_gettime(heddle::cpu::thread_count() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double seconds_of(const std::function<void()>& work) {
  const double begin = now();
  work();
  return now() - begin;
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

// Combines `from` and writes the result to all of `to`, for floats [begin, end), by whole cache
// lines where the machine can store them at once: streaming stores of parts of a line are slower.
// The numbers of arrays are template arguments: a loop over arrays inside the loop over lines would
// be what is measured.
template <int Reads, int Writes, bool Stream>
void move_sse(const float* const* from, float* const* to, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; i += 4) {
    __m128i v = _mm_load_si128(reinterpret_cast<const __m128i*>(from[0] + i));
    for (int k = 1; k < Reads; ++k)
      v = _mm_xor_si128(v, _mm_load_si128(reinterpret_cast<const __m128i*>(from[k] + i)));
    for (int k = 0; k < Writes; ++k) {
      if constexpr (Stream)
        _mm_stream_si128(reinterpret_cast<__m128i*>(to[k] + i), v);
      else
        _mm_store_si128(reinterpret_cast<__m128i*>(to[k] + i), v);
    }
  }
}

template <int Reads, int Writes, bool Stream>
__attribute__((target("avx512f"))) void move_avx512(const float* const* from, float* const* to,
                                                    std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; i += 16) {
    __m512i v = _mm512_load_si512(from[0] + i);
    for (int k = 1; k < Reads; ++k) v = _mm512_xor_si512(v, _mm512_load_si512(from[k] + i));
    for (int k = 0; k < Writes; ++k) {
      if constexpr (Stream)
        _mm512_stream_si512(reinterpret_cast<__m512i*>(to[k] + i), v);
      else
        _mm512_store_si512(to[k] + i, v);
    }
  }
}

template <int Reads, int Writes, bool Stream>
void move_arrays(const Tensors& in, Tensors& out) {
  const auto lines = static_cast<std::int64_t>(in[0].bytes() / 64);
  const float* from[Reads];
  float* to[Writes];
  for (std::size_t i = 0; i < Reads; ++i) from[i] = static_cast<const float*>(in[i].raw());
  for (std::size_t i = 0; i < Writes; ++i) to[i] = static_cast<float*>(out[i].mutable_raw());
  const auto move = heddle::cpu::current_isa() >= heddle::cpu::Isa::avx512
                        ? move_avx512<Reads, Writes, Stream>
                        : move_sse<Reads, Writes, Stream>;
  heddle::cpu::parallel_ranges(lines, 4096, [&](std::int64_t begin, std::int64_t end) {
    move(from, to, 16 * begin, 16 * end);
    _mm_sfence();
  });
}

template <bool Stream>
void probe(int reads, int writes, const Tensors& in, Tensors& out) {
  if (reads == 1 && writes == 1) return move_arrays<1, 1, Stream>(in, out);
  if (reads == 2 && writes == 1) return move_arrays<2, 1, Stream>(in, out);
  if (reads == 2 && writes == 2) return move_arrays<2, 2, Stream>(in, out);
  if (reads == 3 && writes == 1) return move_arrays<3, 1, Stream>(in, out);
  if (reads == 3 && writes == 2) return move_arrays<3, 2, Stream>(in, out);
  std::fprintf(stderr, "no probe for %d reads and %d writes\n", reads, writes);
  std::exit(2);
}

class Bench {
 public:
  Bench(const heddle::Shape& shape, DType dtype, std::string wanted)
      : shape_(shape), dtype_(dtype), wanted_(std::move(wanted)) {
    for (unsigned i = 0; i < 4; ++i) arrays_.push_back(random(i));
    for (int i = 0; i < 2; ++i) targets_.push_back(Tensor::zeros(shape_, dtype));
  }

  const Tensor& array(std::size_t i) const { return arrays_[i]; }

  // `op` reads `reads` and writes `writes` arrays of rows × columns elements.
  void forward(const char* name, int reads, int writes, const std::function<Tensors()>& op) {
    compare(name, reads, writes, [&] {
      Tensors kept;
      return seconds_of([&] { kept = op(); });
    });
  }

  // The vjp of `op`, which is run on a tape outside of the clock.
  void backward(const char* name, int reads, int writes, Tensors leaves,
                const std::function<Tensors()>& op) {
    for (Tensor& leaf : leaves)
      if (!leaf.requires_grad()) leaf.set_requires_grad(true);
    compare(name, reads, writes, [&] {
      heddle::Tape tape;
      const Tensors outputs = op();
      const Tensors cotangents(arrays_.begin() + 2,
                               arrays_.begin() + 2 + static_cast<std::ptrdiff_t>(outputs.size()));
      const double seconds = seconds_of([&] { tape.backward(outputs, cotangents); });
      for (Tensor& leaf : leaves) leaf.clear_grad();
      return seconds;
    });
  }

 private:
  void compare(const char* name, int reads, int writes, const std::function<double()>& timed) {
    if (std::string(name).find(wanted_) == std::string::npos) return;
    double fastest = 1e9, fastest_probe = 1e9;
    std::vector<double> shares;
    timed();  // allocates
    for (int i = 0; i < kRounds; ++i) {
      const double plain = seconds_of([&] { probe<false>(reads, writes, arrays_, targets_); });
      const double kernel = timed();
      const double stream = seconds_of([&] { probe<true>(reads, writes, arrays_, targets_); });
      fastest = std::min(fastest, kernel);
      fastest_probe = std::min({fastest_probe, plain, stream});
      shares.push_back(std::min(plain, stream) / kernel);
    }
    const double bytes = static_cast<double>(arrays_[0].bytes()) * (reads + writes);
    std::printf(
        "%-4s %-20s %7.2f ms  %5.1f GB/s  probe %5.1f GB/s  share %3.0f %%, median %3.0f %%\n",
        std::string(heddle::to_string(dtype_)).c_str(), name, 1e3 * fastest, 1e-9 * bytes / fastest,
        1e-9 * bytes / fastest_probe, 100 * fastest_probe / fastest, 100 * median(shares));
    std::fflush(stdout);
  }

  Tensor random(std::uint32_t seed) const {
    std::vector<float> v(static_cast<std::size_t>(heddle::elements_of(shape_)));
    std::uint32_t state = 12345u + seed;
    for (float& x : v) {
      state = state * 1664525u + 1013904223u;
      x = static_cast<float>(state >> 8) * 0x1p-23f - 1.0f;
    }
    return heddle::ops::cast(Tensor::from<float>(shape_, v), dtype_);
  }

  heddle::Shape shape_;
  DType dtype_;
  std::string wanted_;
  Tensors arrays_;   // inputs; cotangents from [2] on
  Tensors targets_;  // of the probe
};

void norms(Bench& b, std::int64_t columns) {
  using namespace heddle::ops;
  const Tensor gain = Tensor::full({columns}, 1.5);
  const Tensor bias = Tensor::full({columns}, 0.5);
  const Tensor &x = b.array(0), &residual = b.array(1);
  const auto rms = [&] { return Tensors{rms_norm(x, gain, 1e-5)}; };
  const auto layer = [&] { return Tensors{layer_norm(x, gain, bias, 1e-5)}; };
  const auto add_rms = [&] {
    const auto r = add_rms_norm(x, residual, gain, 1e-5);
    return Tensors{r.sum, r.y};
  };
  const auto add_layer = [&] {
    const auto r = add_layer_norm(x, residual, gain, bias, 1e-5);
    return Tensors{r.sum, r.y};
  };
  b.forward("rms_norm", 1, 1, rms);
  b.backward("rms_norm vjp", 2, 1, {x, gain}, rms);
  b.forward("add_rms_norm", 2, 2, add_rms);
  b.backward("add_rms_norm vjp", 3, 1, {x, gain}, add_rms);
  b.forward("layer_norm", 1, 1, layer);
  b.backward("layer_norm vjp", 2, 1, {x, gain, bias}, layer);
  b.forward("add_layer_norm", 2, 2, add_layer);
  b.backward("add_layer_norm vjp", 3, 1, {x, gain, bias}, add_layer);
}

void others(Bench& b) {
  using namespace heddle::ops;
  const Tensor &x = b.array(0), &up = b.array(1);
  const auto soft = [&] { return Tensors{softmax(x)}; };
  const auto log_soft = [&] { return Tensors{log_softmax(x)}; };
  const auto gated = [&] { return Tensors{glu(x, up)}; };
  b.forward("softmax", 1, 1, soft);
  b.backward("softmax vjp", 2, 1, {x}, soft);
  b.forward("log_softmax", 1, 1, log_soft);
  b.backward("log_softmax vjp", 2, 1, {x}, log_soft);
  b.forward("glu", 2, 1, gated);
  b.backward("glu vjp", 3, 2, {x, up}, gated);
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t rows = argc > 2 ? std::atoll(argv[1]) : 16384;
  const std::int64_t columns = argc > 2 ? std::atoll(argv[2]) : 1024;
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Bench b({rows, columns}, dtype, argc > 3 ? argv[3] : "");
    norms(b, columns);
    others(b);
  }
}
