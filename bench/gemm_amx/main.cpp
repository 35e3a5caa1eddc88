// How much of the tiles' peak the AMX product reaches, and what its parameters do to that.
//
// Stands alone; a static binary runs on any Linux with AMX. From the root of the repository:
//
//   g++ -std=c++20 -O3 -static -pthread -Isrc -Iinclude -DHEDDLE_ISA=amx -DHWY_COMPILE_ONLY_STATIC
//     -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512cd -mavx512bf16 -mfma -mavx2 -mbmi -mbmi2
//     -mf16c -mlzcnt -mmovbe -maes -mpclmul -mamx-tile -mamx-bf16
//     bench/gemm_amx/*.cpp
//     src/backend/cpu/gemm/amx/{path,plan,halves,scratch,pack,epilogue}.cpp
//     src/backend/cpu/gemm/amx/kernel_{tiles,emulated}.cpp src/backend/cpu/probe/amx.cpp
//     src/backend/cpu/{isa,scratch,threads,tile_state}.cpp src/base/{error,dtype}.cpp -o
//     bench_gemm_amx
//
// Every sample stands between two runs of the peak probe; its share is of their mean, and the
// median of the shares is reported. "quiet" takes only samples whose probes reached 90 % of the
// best one.
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "backend/cpu/gemm/amx/amx.h"
#include "backend/cpu/gemm/amx/plan.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/probe/amx.h"
#include "backend/cpu/threads.h"
#include "base/divide.h"
#include "check.h"
#include "heddle/dtype.h"

namespace heddle::bench {
namespace {

using cpu::amx::Choice;
using cpu::amx::Tuning;

struct Options {
  int threads = 2;
  double seconds = 0.2;        // per line of the table
  double sweep_seconds = 0.1;  // per line of the sweep
  double limit = 58;           // for all of it
  bool emulated = false;       // for trying the program itself on a machine without AMX
  bool sweep = true;
  std::string only;  // shapes whose name contains it
};

double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

template <class F>
double seconds_of(F f) {
  const double start = now();
  f();
  return now() - start;
}

double median(std::vector<double> v) {
  if (v.empty()) return std::nan("");
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

// Huge pages, filled with small random bf16 (which are also sane floats in pairs).
char* allocate(std::size_t bytes) {
  constexpr std::size_t page = std::size_t{2} << 20;
  bytes = round_up(bytes, page);
  void* p = std::aligned_alloc(page, bytes);
  if (p == nullptr) std::abort();
  madvise(p, bytes, MADV_HUGEPAGE);
  auto* values = static_cast<std::uint16_t*>(p);
  std::uint32_t state = 1;
  for (std::size_t i = 0; i < bytes / 2; ++i) {
    state = state * 1664525u + 1013904223u;
    values[i] =
        static_cast<std::uint16_t>(0x3e00 | (state >> 23 & 0x1ff) >> 1 | (state >> 16 & 0x8000));
  }
  return static_cast<char*>(p);
}

// y[M, N] = x[M, K] · W[N, K]ᵀ and its gradients.
struct Layer {
  std::int64_t m, n, k;
  std::string name() const {
    return std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k);
  }
};

constexpr Layer kLayers[] = {{1024, 3072, 768}, {1024, 2304, 768},  {1024, 768, 3072},
                             {1024, 768, 768},  {1024, 50304, 768}, {768, 128, 128},
                             {768, 384, 128},   {768, 512, 128},    {768, 128, 512}};

enum class Pass { forward_bf16, forward_f32, forward_gelu, input_grad, weight_grad };

const char* to_string(Pass pass) {
  switch (pass) {
    case Pass::forward_bf16: return "forward bf16";
    case Pass::forward_f32: return "forward f32";
    case Pass::forward_gelu: return "forward bias+gelu";
    case Pass::input_grad: return "input grad bf16";
    case Pass::weight_grad: return "weight grad f32";
  }
  return "";
}

struct Memory {
  char *a, *b, *packed, *c, *pre, *bias;
};

// One product as the benchmark runs it.
class Task {
 public:
  Task(const cpu::GemmPath& path, const Layer& layer, Pass pass, const Memory& memory)
      : path_(path), memory_(memory) {
    const auto [m, n, k] = layer;
    job_.packed_b = memory.packed;
    job_.c = memory.c;
    job_.c_dtype = DType::bf16;
    b_ = {memory.b, DType::bf16, 0, 1};
    switch (pass) {
      case Pass::forward_gelu:
        job_.epilogue.activation = Activation::gelu;
        job_.epilogue.bias = memory.bias;
        job_.epilogue.derivative = memory.pre;
        [[fallthrough]];
      case Pass::forward_bf16:
      case Pass::forward_f32:  // A = x, B = Wᵀ
        set_shape(m, n, k);
        job_.a = {memory.a, DType::bf16, k, 1};
        b_.row_stride = 1;
        b_.col_stride = k;
        if (pass == Pass::forward_f32) job_.c_dtype = DType::f32;
        break;
      case Pass::input_grad:  // dx[M, K] = dy[M, N] · W[N, K]
        set_shape(m, k, n);
        job_.a = {memory.a, DType::bf16, n, 1};
        b_.row_stride = k;
        break;
      case Pass::weight_grad:  // dW[N, K] = dy[M, N]ᵀ · x[M, K]
        set_shape(n, k, m);
        job_.a = {memory.a, DType::bf16, 1, n};
        b_.row_stride = k;
        job_.c_dtype = DType::f32;
        // Activations are packed for every product, weights once for many.
        job_.packed_b = nullptr;
        job_.b = b_;
        job_.room_for_b = memory.packed;
        return;
    }
    pack();
  }

  double flops() const {
    return 2.0 * static_cast<double>(job_.m) * static_cast<double>(job_.n) *
           static_cast<double>(job_.k);
  }
  void run() const { path_.run(job_); }
  void pack() const { path_.pack_b(job_.k, job_.n, b_, memory_.packed); }
  const cpu::GemmJob& job() const { return job_; }

 private:
  void set_shape(std::int64_t m, std::int64_t n, std::int64_t k) {
    job_.m = m, job_.n = n, job_.k = k;
    job_.c_row_stride = n;
  }

  const cpu::GemmPath& path_;
  Memory memory_;
  cpu::GemmJob job_;
  cpu::MatrixRef b_;
};

struct Result {
  double share, quiet, rate, peak, seconds;
  std::size_t samples, quiet_samples;
};

class Meter {
 public:
  explicit Meter(bool has_tiles) : has_tiles_(has_tiles) {}

  double probe() {
    const double p = has_tiles_ ? cpu::amx_bf16_peak(4e-4) : 1e12;
    best_ = std::max(best_, p);
    return p;
  }

  template <class Run>
  Result measure(double flops, double seconds, Run run) {
    run();
    const double once = seconds_of(run);
    const int inner = std::max(1, static_cast<int>(5e-4 / once));
    std::vector<double> shares, quiet, rates, peaks;
    const double start = now();
    while (shares.size() < 3 || (now() - start < seconds && shares.size() < 101)) {
      const double before = probe();
      const double took = seconds_of([&] {
        for (int i = 0; i < inner; ++i) run();
      });
      const double rate = flops * inner / took;
      const double after = probe();
      const double peak = (before + after) / 2;
      rates.push_back(rate);
      peaks.push_back(peak);
      shares.push_back(rate / peak);
      if (std::min(before, after) > 0.9 * best_) quiet.push_back(rate / peak);
    }
    const double rate = median(rates);
    return {median(shares), median(quiet), rate,        median(peaks),
            flops / rate,   shares.size(), quiet.size()};
  }

 private:
  bool has_tiles_;
  double best_ = 0;
};

void print(const std::string& name, const Result& r) {
  std::printf(
      "%-52s share %5.1f %%  quiet %5.1f %% (%zu of %zu)  %5.2f of %5.2f TFLOP/s  %8.3f ms\n",
      name.c_str(), 100 * r.share, 100 * r.quiet, r.quiet_samples, r.samples, r.rate / 1e12,
      r.peak / 1e12, 1e3 * r.seconds);
  std::fflush(stdout);
}

void print_plan(cpu::GemmJob job) {
  if (job.packed_b == nullptr && !cpu::amx::packs_own_b(job)) job.packed_b = job.room_for_b;
  const cpu::amx::Plan p = cpu::amx::make_plan(job, cpu::thread_count());
  std::printf("    %ld chunks; unit %ld x %ld; K in %ld outer of %ld, inner %ld;%s%s\n", p.chunks,
              32 * p.m_unit, 32 * p.n_unit, p.outer_count, 32 * p.outer, 32 * p.inner,
              p.own_b           ? " A and B packed by the chunks"
              : p.load_in_place ? " A in place"
                                : " A packed",
              p.stream ? ", C streamed" : "");
}

struct Variant {
  const char* name;
  void (*apply)(Tuning&);
};

const Variant kVariants[] = {
    {"default", [](Tuning&) {}},
    {"k_inner 192", [](Tuning& t) { t.k_inner = 192; }},
    {"k_inner 256", [](Tuning& t) { t.k_inner = 256; }},
    {"k_inner 512", [](Tuning& t) { t.k_inner = 512; }},
    {"k_inner whole", [](Tuning& t) { t.k_inner = 1 << 20; }},
    {"k_outer 512", [](Tuning& t) { t.k_outer = t.k_whole = 512; }},
    {"k_outer 1024", [](Tuning& t) { t.k_outer = 1024; }},
    {"k_outer 1536", [](Tuning& t) { t.k_outer = t.k_whole = 1536; }},
    {"K whole, m_unit 128", [](Tuning& t) { t.k_outer = t.k_whole = 1 << 20, t.m_unit = 128; }},
    {"K whole, m_unit 128, k_inner whole",
     [](Tuning& t) { t.k_outer = t.k_whole = t.k_inner = 1 << 20, t.m_unit = 128; }},
    {"m_unit 128", [](Tuning& t) { t.m_unit = 128; }},
    {"m_unit 256", [](Tuning& t) { t.m_unit = 256; }},
    {"m_unit 512", [](Tuning& t) { t.m_unit = 512; }},
    {"n_unit 96", [](Tuning& t) { t.n_unit = 96; }},
    {"n_unit 192", [](Tuning& t) { t.n_unit = 192; }},
    {"n_unit 384", [](Tuning& t) { t.n_unit = 384; }},
    {"n_unit 768", [](Tuning& t) { t.n_unit = 768; }},
    {"n_unit whole", [](Tuning& t) { t.n_unit = 1 << 20; }},
    {"m_unit 512, n_unit 256", [](Tuning& t) { t.m_unit = 512, t.n_unit = 256; }},
    {"few_chunks 4", [](Tuning& t) { t.few_chunks = 4; }},
    {"few_chunks 16", [](Tuning& t) { t.few_chunks = 16; }},
    {"chunks 16", [](Tuning& t) { t.chunks = 16; }},
    {"chunks 64", [](Tuning& t) { t.chunks = 64; }},
    {"stream never", [](Tuning& t) { t.stream = Choice::never; }},
    {"stream always", [](Tuning& t) { t.stream = Choice::always; }},
    {"pack_a always", [](Tuning& t) { t.pack_a = Choice::always; }},
    {"no prefetch_a", [](Tuning& t) { t.prefetch_a = false; }},
    {"no prefetch_b", [](Tuning& t) { t.prefetch_b = false; }},
    {"no prefetch", [](Tuning& t) { t.prefetch_a = t.prefetch_b = false; }},
    {"no defer", [](Tuning& t) { t.defer = false; }},
    {"defer_wait 0", [](Tuning& t) { t.defer_wait = 0; }},
    {"defer_wait 4", [](Tuning& t) { t.defer_wait = 4; }},
};

struct SweepCase {
  Layer layer;
  Pass pass;
};

const SweepCase kSweep[] = {
    {{1024, 3072, 768}, Pass::forward_bf16}, {{1024, 3072, 768}, Pass::forward_f32},
    {{1024, 768, 3072}, Pass::forward_bf16}, {{1024, 768, 3072}, Pass::weight_grad},
    {{1024, 3072, 768}, Pass::weight_grad},  {{768, 128, 128}, Pass::forward_bf16},
    {{1024, 768, 768}, Pass::forward_bf16},  {{1024, 50304, 768}, Pass::forward_f32},
    {{1024, 50304, 768}, Pass::input_grad},
};

void table(const cpu::GemmPath& path, const Memory& memory, const Options& options, Meter& meter) {
  for (const Layer& layer : kLayers) {
    if (layer.name().find(options.only) == std::string::npos) continue;
    for (const Pass pass : {Pass::forward_bf16, Pass::forward_f32, Pass::forward_gelu,
                            Pass::input_grad, Pass::weight_grad}) {
      if (pass == Pass::forward_gelu && layer.n > 4096) continue;
      const Task task(path, layer, pass, memory);
      print(layer.name() + " " + to_string(pass),
            meter.measure(task.flops(), options.seconds, [&] { task.run(); }));
      print_plan(task.job());
      if (pass != Pass::weight_grad) continue;
      std::vector<double> times;
      times.reserve(9);
      for (int i = 0; i < 9; ++i) times.push_back(seconds_of([&] { task.pack(); }));
      std::printf("    pack_b alone %.3f ms\n", 1e3 * median(times));
    }
  }
}

// One parameter at a time, until `deadline`.
void sweep(const cpu::GemmPath& path, const Memory& memory, const Options& options, Meter& meter,
           double deadline) {
  const Tuning start = cpu::amx::tuning();
  for (const SweepCase& c : kSweep) {
    if (c.layer.name().find(options.only) == std::string::npos) continue;
    std::printf("\nsweep %s %s\n", c.layer.name().c_str(), to_string(c.pass));
    const Task task(path, c.layer, c.pass, memory);
    double best = 0;
    const char* best_name = "";
    for (const Variant& v : kVariants) {
      if (now() > deadline) break;
      cpu::amx::tuning() = start;
      v.apply(cpu::amx::tuning());
      const Result r = meter.measure(task.flops(), options.sweep_seconds, [&] { task.run(); });
      print(std::string("  ") + v.name, r);
      if (r.share > best) best = r.share, best_name = v.name;
    }
    std::printf("  best: %s, %.1f %%\n", best_name, 100 * best);
  }
  cpu::amx::tuning() = start;
}

[[noreturn]] void usage() {
  std::fprintf(
      stderr,
      "usage: bench_gemm_amx [--threads N] [--seconds S] [--sweep-seconds S] [--no-sweep]\n"
      "  [--limit S] [--only 1024x3072] [--emulated] and, as the start of all that follows:\n"
      "  [--a-bytes B] [--partial-bytes B] [--k-outer K] [--k-whole K] [--k-inner K]\n"
      "  [--m-unit M] [--n-unit N] [--chunks C] [--few-chunks C] [--stream-bytes B]\n"
      "  [--defer-wait S] [--stream never|always] [--pack-a always] [--no-prefetch-a] "
      "[--no-prefetch-b]\n"
      "  [--no-defer]\n");
  std::exit(2);
}

Options parse(int argc, char** argv) {
  Options options;
  Tuning& t = cpu::amx::tuning();
  const struct {
    const char* name;
    std::int64_t* value;
  } numbers[] = {{"--a-bytes", &t.a_bytes},       {"--partial-bytes", &t.partial_bytes},
                 {"--k-outer", &t.k_outer},       {"--k-whole", &t.k_whole},
                 {"--k-inner", &t.k_inner},       {"--m-unit", &t.m_unit},
                 {"--n-unit", &t.n_unit},         {"--chunks", &t.chunks},
                 {"--few-chunks", &t.few_chunks}, {"--stream-bytes", &t.stream_bytes},
                 {"--defer-wait", &t.defer_wait}};
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const auto next = [&]() -> const char* { return i + 1 < argc ? argv[++i] : (usage(), ""); };
    bool known = true;
    if (flag == "--threads")
      options.threads = std::atoi(next());
    else if (flag == "--seconds")
      options.seconds = std::atof(next());
    else if (flag == "--sweep-seconds")
      options.sweep_seconds = std::atof(next());
    else if (flag == "--limit")
      options.limit = std::atof(next());
    else if (flag == "--no-sweep")
      options.sweep = false;
    else if (flag == "--emulated")
      options.emulated = true;
    else if (flag == "--only")
      options.only = next();
    else if (flag == "--stream")
      t.stream = *next() == 'n' ? Choice::never : Choice::always;
    else if (flag == "--pack-a")
      t.pack_a = *next() == 'n' ? Choice::never : Choice::always;
    else if (flag == "--no-prefetch-a")
      t.prefetch_a = false;
    else if (flag == "--no-prefetch-b")
      t.prefetch_b = false;
    else if (flag == "--no-defer")
      t.defer = false;
    else
      known = false;
    for (const auto& n : numbers)
      if (flag == n.name) *n.value = std::atoll(next()), known = true;
    if (!known) usage();
  }
  return options;
}

int run(const Options& options) {
  const auto& isas = cpu::available_isas();
  const bool has_tiles = std::find(isas.begin(), isas.end(), cpu::Isa::amx) != isas.end();
  if (!has_tiles && !options.emulated) {
    // No failure: `make bench` goes on with the next one.
    std::fprintf(stderr, "this machine has no AMX: nothing measured; --emulated runs without\n");
    return 0;
  }
  cpu::set_threads(options.threads);
  const cpu::GemmPath& path =
      options.emulated ? cpu::amx_bf16_path_emulated() : cpu::amx_bf16_path();
  const double start = now();
  if (!check_products(path, options.emulated ? nullptr : &cpu::amx_bf16_path_emulated())) return 1;

  Meter meter(has_tiles);
  if (has_tiles) {
    std::printf("%d threads; peak", cpu::thread_count());
    for (int i = 0; i < 8; ++i) std::printf(" %.2f", meter.probe() / 1e12);
    std::printf(" TFLOP/s\n");
  } else {
    std::printf("no tiles here, no peak: shares are of 1 TFLOP/s\n");
  }
  if (options.emulated && options.only.empty()) return 0;  // the rest would take hours

  constexpr std::size_t largest = std::size_t{50304} * 1024;
  const Memory memory{allocate(largest * 2),
                      allocate(largest * 2),
                      allocate(largest * 2),
                      allocate(largest * 4),
                      allocate(std::size_t{1024} * 3072 * 2),
                      allocate(50304 * 4)};
  table(path, memory, options, meter);
  if (options.sweep) sweep(path, memory, options, meter, start + options.limit);
  std::printf("%.1f s\n", now() - start);
  return 0;
}

}  // namespace
}  // namespace heddle::bench

int main(int argc, char** argv) { return heddle::bench::run(heddle::bench::parse(argc, argv)); }
