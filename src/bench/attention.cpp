#include "bench/attention.h"

#include "backend/cpu/probe/probe.h"
#include "bench/clock.h"
#include "bench/rival.h"
#include "heddle/cost.h"
#include "heddle/memory.h"
#include "heddle/ops/attention.h"
#include "heddle/ops/random.h"
#include "heddle/tape.h"

namespace heddle::bench {

namespace {

// One call of the case, with random operands.
class Call {
 public:
  explicit Call(const AttentionCase& c) : case_(c) {
    const std::int64_t width = c.additive ? c.score_width : c.head_width;
    q_ = random({c.batch, c.n, c.heads, width}, 1);
    k_ = random({c.batch, c.n, c.kv_heads, width}, 2);
    v_ = random({c.batch, c.n, c.kv_heads, c.head_width}, 3);
    dy_ = random({c.batch, c.n, c.heads, c.head_width}, 4);
    if (c.additive) w_ = ops::random_normal({c.heads, width}, 0, 0.3, {1, 0, 5});
    options_.mask.causal = c.causal;
    options_.mask.look_back = c.look_back;
    if (c.both)
      for (Tensor* t : {&q_, &k_, &v_, &w_})
        if (t->defined()) t->set_requires_grad(true);
  }

  void run() {
    if (!case_.both) {
      (void)forward();
      return;
    }
    Tape tape;
    const Tensor y = forward();
    tape.backward(std::span(&y, 1), std::span(&dy_, 1));
    for (Tensor* t : {&q_, &k_, &v_, &w_}) t->clear_grad();
  }

  // Peak bytes of a call besides its operands and results.
  std::int64_t extra_bytes() {
    const std::int64_t before = memory_use(Device::cpu).live;
    reset_peak_memory(Device::cpu);
    run();
    std::int64_t given = static_cast<std::int64_t>(dy_.bytes());  // y is as large
    if (case_.both)
      for (const Tensor* t : {&q_, &k_, &v_, &w_})
        if (t->defined()) given += static_cast<std::int64_t>(t->bytes());
    const MemoryUse use = memory_use(Device::cpu);
    return use.peak - before - given + use.thread_buffers_peak;
  }

 private:
  Tensor random(const Shape& shape, std::uint32_t stream) const {
    return ops::random_normal(shape, 0, 1, {1, 0, stream}, case_.dtype);
  }
  Tensor forward() const {
    return case_.additive ? ops::additive_attention(q_, k_, w_, v_, options_)
                          : ops::attention(q_, k_, v_, options_);
  }

  AttentionCase case_;
  ops::AttentionOptions options_;
  Tensor q_, k_, v_, w_, dy_;
};

std::string request(const AttentionCase& c, int repeats) {
  std::string text = "attention";
  for (const std::int64_t size : {c.batch, c.n, c.heads, c.kv_heads, c.head_width})
    text += " " + std::to_string(size);
  return text + " " + std::string(to_string(c.dtype)) + (c.causal ? " causal" : " none") +
         (c.both ? " both " : " forward ") + std::to_string(repeats);
}

// PyTorch's fused attention knows neither windows nor other scores.
bool torch_has(const AttentionCase& c) { return !c.additive && !c.look_back; }

AttentionFigure measure(const AttentionCase& c, const AttentionBenchOptions& options) {
  AttentionFigure f;
  f.what = c;
  Call call(c);
  const auto once = [&] { call.run(); };
  double flops = 0;
  {
    const CostMeter meter;
    once();
    flops = meter.cost().flops;
  }
  f.extra_bytes = call.extra_bytes();
  const int repeats = repeats_for(options.seconds, seconds_of(1, once));
  const bool rival = options.rival != nullptr && torch_has(c);
  if (rival) options.rival->seconds(request(c, 1));
  const auto probe = cpu::fastest_probe(c.dtype);
  std::vector<double> ours, shares, theirs, ratios;
  for (int round = 0; round < options.rounds; ++round) {
    const double peak = probe ? cpu::peak_flops(*probe, 0.01) : 0;
    ours.push_back(seconds_of(repeats, once));
    if (probe) shares.push_back(flops / ours.back() / peak);
    if (!rival) continue;
    theirs.push_back(options.rival->seconds(request(c, repeats)));
    ratios.push_back(theirs.back() / ours.back());
  }
  f.seconds = median(ours);
  f.flops_per_s = flops / f.seconds;
  if (probe) f.share_of_peak = median(shares);
  if (rival) {
    f.torch_seconds = median(theirs);
    f.times_torch = median(ratios);
  }
  return f;
}

std::vector<AttentionCase> all_cases(bool quick) {
  std::vector<AttentionCase> cases;
  for (const DType dtype : {DType::bf16, DType::f32})
    for (const bool both : {false, true}) {
      AttentionCase c;
      c.dtype = dtype;
      c.both = both;
      for (const std::int64_t width : {64, 128})
        for (std::int64_t n = 512; n <= (quick ? 1024 : 8192); n *= 2) {
          c.head_width = width;
          c.n = n;
          cases.push_back(c);
        }
      c.head_width = 64;
      c.n = quick ? 1024 : 4096;
      c.causal = false;
      cases.push_back(c);
      c.causal = true;
      if (dtype == DType::f32) {
        c.additive = true;
        c.n = 1024;
        cases.push_back(c);
        c.additive = false;
        cases.push_back(c);
      }
      c.heads = c.kv_heads = 2;
      for (std::int64_t n = 4096; n <= (quick ? 4096 : 32768); n *= 2) {
        c.n = n;
        c.look_back = 256;
        cases.push_back(c);
      }
      c.look_back.reset();
      c.n = 16384;
      if (!quick) cases.push_back(c);
    }
  return cases;
}

}  // namespace

std::vector<AttentionFigure> measure_attention(const AttentionBenchOptions& options) {
  std::vector<AttentionFigure> figures;
  for (const AttentionCase& c : all_cases(options.quick)) {
    if (options.only && *options.only != c.dtype) continue;
    options.progress(request(c, 1));
    figures.push_back(measure(c, options));
  }
  return figures;
}

}  // namespace heddle::bench
