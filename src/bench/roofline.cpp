#include "bench/roofline.h"

#include <algorithm>
#include <cmath>

#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/probe/probe.h"
#include "backend/cpu/threads.h"
#include "bench/clock.h"
#include "bench/rival.h"
#include "heddle/random.h"
#include "heddle/runtime.h"
#include "heddle/tensor.h"
#include "language/language.h"

namespace heddle::bench {

namespace {

using cpu::Isa;
using cpu::ProbeKind;

struct NamedProbe {
  ProbeKind kind;
  const char* name;
  Isa needs;
};

constexpr NamedProbe kProbes[] = {{ProbeKind::amx_bf16, "amx_bf16", Isa::amx},
                                  {ProbeKind::avx512_bf16, "avx512_bf16", Isa::avx512_bf16},
                                  {ProbeKind::avx512_f32, "avx512_f32", Isa::avx512},
                                  {ProbeKind::avx2_f32, "avx2_f32", Isa::avx2},
                                  {ProbeKind::neon_bf16, "neon_bf16", Isa::neon_bf16},
                                  {ProbeKind::neon_f32, "neon_f32", Isa::neon}};

bool available(Isa isa) {
  const auto& all = cpu::available_isas();
  return std::find(all.begin(), all.end(), isa) != all.end();
}

Tensor random_matrix(std::int64_t rows, std::int64_t cols, DType dtype, std::uint32_t stream) {
  Tensor t = Tensor::empty({rows, cols}, dtype);
  void* data = t.mutable_raw();
  const RandomKey key{7, 0, stream};
  cpu::parallel_ranges(rows * cols / 4, 1 << 14, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const PhiloxBlock block = philox(key, static_cast<std::uint64_t>(i));
      for (std::size_t j = 0; j < 4; ++j) {
        const float v = unit_float(block[j]) - 0.5f;
        const std::size_t at = static_cast<std::size_t>(i) * 4 + j;
        if (dtype == DType::bf16)
          static_cast<bf16*>(data)[at] = bf16::from_float(v);
        else
          static_cast<float*>(data)[at] = v;
      }
    }
  });
  return t;
}

// One product of a layer, ready to be timed. The weight, which the layer would have packed once per
// step, is packed here; everything else is inside run().
class Product {
 public:
  Product(GemmFigure& figure, Pass pass) : path_(cpu::gemm_path(cpu::current_isa(), figure.dtype)) {
    const auto [m, n, k] = std::tuple(figure.m, figure.n, figure.k);
    const DType t = figure.dtype;
    switch (pass) {
      case Pass::forward:  // y[m, n] = x[m, k] · Wᵀ
        left_ = random_matrix(m, k, t, 1);
        set(m, n, k, {left_.raw(), t, k, 1}, t);
        pack_weight(random_matrix(n, k, t, 2), {nullptr, t, 1, k});
        break;
      case Pass::input_grad:  // dx[m, k] = dy[m, n] · W
        left_ = random_matrix(m, n, t, 1);
        set(m, k, n, {left_.raw(), t, n, 1}, t);
        pack_weight(random_matrix(n, k, t, 2), {nullptr, t, k, 1});
        break;
      case Pass::weight_grad:  // dW[n, k] = dyᵀ · x, in f32; what is packed is packed in the timing
        left_ = random_matrix(m, n, t, 1);
        right_ = random_matrix(m, k, t, 2);
        set(n, k, m, {left_.raw(), t, 1, n}, DType::f32);
        job_.b = {right_.raw(), t, k, 1};
        job_.room_for_b = packed_.mutable_raw();
        break;
    }
  }

  void run() { path_.run(job_); }

 private:
  void set(std::int64_t m, std::int64_t n, std::int64_t k, const cpu::MatrixRef& a, DType out) {
    output_ = Tensor::zeros({m, n}, out);
    packed_ = Tensor::zeros({static_cast<std::int64_t>(path_.packed_bytes(k, n))}, DType::u8);
    job_.m = m;
    job_.n = n;
    job_.k = k;
    job_.a = a;
    job_.c = output_.mutable_raw();
    job_.c_dtype = out;
    job_.c_row_stride = n;
  }

  void pack_weight(const Tensor& weight, cpu::MatrixRef ref) {
    ref.data = weight.raw();
    path_.pack_b(job_.k, job_.n, ref, packed_.mutable_raw());
    job_.packed_b = packed_.raw();
  }

  const cpu::GemmPath& path_;
  cpu::GemmJob job_;
  Tensor left_, right_, packed_, output_;
};

std::string request(const GemmFigure& f, int repeats) {
  return "gemm " + std::to_string(f.m) + " " + std::to_string(f.n) + " " + std::to_string(f.k) +
         " " + std::string(to_string(f.dtype)) + " " + std::string(to_string(f.pass)) + " " +
         std::to_string(repeats);
}

void measure(GemmFigure& f, const RooflineOptions& options) {
  Product product(f, f.pass);
  const double flops =
      2 * static_cast<double>(f.m) * static_cast<double>(f.n) * static_cast<double>(f.k);
  product.run();
  const auto once = [&] { product.run(); };
  const int repeats = repeats_for(options.seconds, seconds_of(2, once));
  const auto probe = cpu::fastest_probe(f.dtype);
  const double probe_seconds = 0.02;
  if (options.rival != nullptr) options.rival->seconds(request(f, 2));
  std::vector<double> rates, shares, peaks, torch_rates, ratios;
  for (int round = 0; round < options.rounds; ++round) {
    const double before = probe ? cpu::peak_flops(*probe, probe_seconds) : 0;
    const double rate = flops / seconds_of(repeats, once);
    const double after = probe ? cpu::peak_flops(*probe, probe_seconds) : 0;
    rates.push_back(rate);
    peaks.push_back((before + after) / 2);
    shares.push_back(rate / peaks.back());
    if (options.rival != nullptr) {
      torch_rates.push_back(flops / options.rival->seconds(request(f, repeats)));
      ratios.push_back(rate / torch_rates.back());
    }
  }
  f.flops_per_s = median(rates);
  if (probe) {
    f.peak_flops_per_s = median(peaks);
    f.share_of_peak = median(shares);
  }
  if (!ratios.empty()) {
    f.torch_flops_per_s = median(torch_rates);
    f.times_torch = median(ratios);
  }
}

}  // namespace

std::string_view to_string(Pass pass) {
  switch (pass) {
    case Pass::forward: return "forward";
    case Pass::input_grad: return "input_grad";
    case Pass::weight_grad: return "weight_grad";
  }
  return "";
}

Roofline measure_roofline(const RooflineOptions& options) {
  Roofline r;
  r.cpu = cpu_name();
  r.threads = threads();
  r.isa = available_instruction_sets();
  (void)cpu::current_isa();  // a bad HEDDLE_ISA is told before anything is measured
  for (const NamedProbe& p : kProbes)
    if (available(p.needs)) {
      options.progress(tr("peak of {}", p.name));
      r.peaks.push_back({p.name, cpu::peak_flops(p.kind, 0.3)});
    }
  options.progress(tr("memory bandwidth"));
  r.read_bandwidth = cpu::read_bandwidth(0.5);
  r.copy_bandwidth = cpu::stream_bandwidth(1, 1, 0.5);
  const std::int64_t shapes[][3] = {
      {768, 128, 128}, {1024, 2304, 768}, {1024, 3072, 768}, {1024, 768, 3072}, {1024, 50304, 768}};
  for (const auto& shape : shapes)
    for (const DType dtype : {DType::bf16, DType::f32})
      for (const Pass pass : {Pass::forward, Pass::input_grad, Pass::weight_grad}) {
        if (options.quick && shape[1] > 2304) continue;
        if (options.only && *options.only != dtype) continue;
        GemmFigure f;
        f.m = shape[0];
        f.n = shape[1];
        f.k = shape[2];
        f.dtype = dtype;
        f.pass = pass;
        options.progress(request(f, 1));
        measure(f, options);
        r.gemm.push_back(f);
      }
  return r;
}

}  // namespace heddle::bench
