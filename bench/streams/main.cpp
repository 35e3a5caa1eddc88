// How much of the memory bandwidth elementwise ops and optimisers reach, on arrays far larger than
// the cache. Every sample of an op stands beside samples of a probe with the same reads and writes
// (with ordinary and with streaming stores, the faster counts); the median of the shares is
// reported, because the machine changes under us.
//
// usage: bench_streams [elements [samples]]
//
// On a busy machine HEDDLE_THREADS=1 gives steadier shares: one thread is timed by the time it ran.
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "heddle/ops.h"
#include "probe.h"

namespace {

using heddle::DType;
using heddle::Tensor;
using heddle::bench::Mix;
namespace ops = heddle::ops;

// With one thread the time it ran, so that others on the machine do not count; else the time of
// day.
double now() {
  if (heddle::cpu::thread_count() > 1)
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double seconds(const std::function<void()>& body) {
  const double start = now();
  body();
  return now() - start;
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

struct Case {
  std::string name;
  double op_bytes;  // moved by the op, per element
  std::function<void()> op;
  Mix mix;  // of the probe, in f32
};

class Bench {
 public:
  Bench(std::int64_t n, int samples) : n_(n), samples_(samples) {
    for (int i = 0; i < 5; ++i) {
      arrays_.push_back(Tensor::full({n}, 0.25 + i));
      probe_.push_back(Tensor::full({n}, 1e-3));
    }
  }

  Tensor& array(int i) { return arrays_[static_cast<std::size_t>(i)]; }

  Mix mix(int reads, int writes, bool out) {
    Mix m;
    m.reads = reads;
    m.writes = writes;
    for (int i = 0; i < reads; ++i)
      m.arrays[i] = probe_[static_cast<std::size_t>(i)].mutable_data<float>();
    if (out) m.out = probe_[4].mutable_data<float>();
    return m;
  }

  void measure(const Case& c) {
    std::vector<double> op_rates, probe_rates, shares;
    const double probe_bytes =
        4.0 * (c.mix.reads + c.mix.writes + (c.mix.out != nullptr ? 1 : 0)) * count();
    c.op();
    for (int i = 0; i < samples_; ++i) {
      const double before = probe_rate(c.mix, probe_bytes);
      const double op = c.op_bytes * count() / seconds(c.op);
      const double after = probe_rate(c.mix, probe_bytes);
      op_rates.push_back(op);
      probe_rates.push_back((before + after) / 2);
      shares.push_back(op / probe_rates.back());
    }
    std::printf("%-16s %8.1f GB/s   probe %8.1f GB/s   share %5.1f %%\n", c.name.c_str(),
                median(op_rates) / 1e9, median(probe_rates) / 1e9, 100 * median(shares));
    std::fflush(stdout);
  }

 private:
  double count() const { return static_cast<double>(n_); }

  double probe_rate(Mix m, double bytes) const {
    double best = bytes / seconds([&] { probe(m, n_); });
    if (m.out == nullptr) return best;
    m.streaming = true;
    return std::max(best, bytes / seconds([&] { probe(m, n_); }));
  }

  std::int64_t n_;
  int samples_;
  std::vector<Tensor> arrays_, probe_;
};

void unary(Bench& b, const char* name, Tensor (*op)(const Tensor&)) {
  b.measure({name, 8, [&b, op] { op(b.array(0)); }, b.mix(1, 0, true)});
  const Tensor x = ops::cast(b.array(0), DType::bf16);
  b.measure({std::string(name) + " bf16", 4, [&x, op] { op(x); }, b.mix(1, 0, true)});
}

void optimisers(Bench& b) {
  ops::AdamWOptions adam;
  b.measure({"adamw", 28, [&] { ops::adamw(b.array(0), b.array(1), b.array(2), b.array(3), adam); },
             b.mix(4, 3, false)});
  b.measure({"sgd momentum", 20,
             [&] { ops::sgd(b.array(0), b.array(1), b.array(2), {1e-3, 0.9, false, 0.1}); },
             b.mix(3, 2, false)});
  Tensor none;
  b.measure({"sgd", 12, [&] { ops::sgd(b.array(0), b.array(1), none, {1e-3, 0, false, 0.1}); },
             b.mix(2, 1, false)});
  b.measure(
      {"global_norm", 4, [&] { ops::global_norm(std::span(&b.array(0), 1)); }, b.mix(1, 0, false)});
}

// Rows of 768 from a table of 50257, picked at random.
void embedding(Bench& b, std::int64_t n) {
  constexpr std::int64_t kRows = 50257, kWidth = 768;
  Tensor table = ops::random_normal({kRows, kWidth}, 0, 1, {1, 0, 0});
  const std::int64_t tokens = n / kWidth;
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i < tokens; ++i)
    ids.push_back(static_cast<std::int32_t>(
        heddle::philox({7, 0, 0}, static_cast<std::uint64_t>(i))[0] % kRows));
  const Tensor index = Tensor::from<std::int32_t>({tokens}, ids);
  b.measure({"embedding", 8, [&] { ops::embedding(table, index, DType::f32); }, b.mix(1, 0, true)});
  b.measure(
      {"embedding bf16", 6, [&] { ops::embedding(table, index, DType::bf16); }, b.mix(1, 0, true)});
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t n = (argc > 1 ? std::atoll(argv[1]) : std::int64_t{1} << 25) / 64 * 64;
  const int samples = argc > 2 ? std::atoi(argv[2]) : 15;
  if (n <= 0 || samples <= 0) {
    std::fprintf(stderr, "usage: bench_streams [elements [samples]]\n");
    return 2;
  }
  Bench b(n, samples);
  std::printf("%lld elements, %d threads\n", static_cast<long long>(n),
              heddle::cpu::thread_count());
  optimisers(b);
  b.measure({"add", 12, [&] { ops::add(b.array(0), b.array(1)); }, b.mix(2, 0, true)});
  unary(b, "relu", ops::relu);
  unary(b, "gelu_tanh", ops::gelu_tanh);
  unary(b, "gelu", ops::gelu);
  unary(b, "silu", ops::silu);
  unary(b, "dropout", [](const Tensor& x) { return ops::dropout(x, 0.1, {1, 2, 3}); });
  embedding(b, n);
  return 0;
}
