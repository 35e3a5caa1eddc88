#include "bench/train.h"

#include <memory>

#include "backend/cpu/probe/probe.h"
#include "backend/repeat.h"
#include "base/process_memory.h"
#include "bench/clock.h"
#include "bench/rival.h"
#include "heddle/cost.h"
#include "heddle/memory.h"
#include "heddle/runtime.h"
#include "language/language.h"
#include "model/model.h"
#include "optim/optimizer.h"
#include "optim/repeated_step.h"
#include "tensor/engine.h"

namespace heddle::bench {

namespace {

constexpr double kRate = 1e-4, kClip = 1.0;

struct Case {
  DecoderShape shape;
  std::int64_t batch, context;
  int steps;  // in a round
  const char* name = shape.name;

  std::string request(const char* mode, int count) const {
    std::string words = "train";
    for (const std::int64_t n :
         {shape.layers, shape.heads, shape.width, shape.vocabulary, batch, context})
      words += " " + std::to_string(n);
    return words + " " + mode + " " + std::to_string(count);
  }
};

constexpr Case kGpt2Steps = {kGpt2, 4, 256, 1};
constexpr Case kTinySteps = {kTiny, 12, 64, 20};
constexpr Case kGpt2StepsOfGpu = {kGpt2, 32, 1024, 5};

model::Batch random_batch(const Case& c, std::uint32_t step) {
  model::Batch b;
  const Shape shape{c.batch, c.context};
  b.tokens = random_ids(shape, c.shape.vocabulary, {1, step, 1});
  b.targets = random_ids(shape, c.shape.vocabulary, {1, step, 2});
  b.counted = b.targets.elements();
  return b;
}

class Training {
 public:
  Training(const Case& c, DType precision, Device device) : case_(c), device_(device) {
    model_ = model::build_model(config_of(c.shape, c.context), {.seed = 1, .device = device});
    config_.learning_rate = kRate;
    config_.clip = kClip;
    config_.precision = precision;
    config_.batch = c.batch;
    optimizer_ = std::make_unique<optim::Optimizer>(config_, model_->parameters());
  }

  void step() {
    const model::Batch batch = random_batch(case_, static_cast<std::uint32_t>(++steps_));
    const optim::StepSums sums = repeated_.gradients(*model_, batch, config_, steps_);
    optimizer_->step(steps_, kRate, optimizer_->gradient_norm(), sums.losses);
  }

  // Seconds of a step, of `count` that the device has finished.
  double seconds(int count) {
    const double start = now();
    for (int i = 0; i < count; ++i) step();
    if (!device_.is_cpu()) engine_of(device_).synchronize();
    return (now() - start) / count;
  }

  std::int64_t parameters() const { return model_->parameters().count(); }

 private:
  Case case_;
  Device device_;
  std::unique_ptr<model::Model> model_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  recipe::TrainConfig config_;
  optim::RepeatedStep repeated_;
  std::int64_t steps_ = 0;
};

// The peak of the units that the matrix products of this precision run on.
double peak_beside(DType precision) {
  const auto probe = cpu::fastest_probe(precision);
  return probe ? cpu::peak_flops(*probe, 0.02) : 0;
}

// Each way is tried in a process of its own so that memory is its own too.
FastestRival fastest_rival(const Case& c, const ModelBenchOptions& options) {
  FastestRival best;
  double least = 0;
  for (const char* mode : kTorchModes) {
    if (!options.torch_mode.empty() && options.torch_mode != mode) continue;
    options.progress(std::string(c.name) + ": PyTorch, " + mode);
    auto rival = std::make_unique<TorchRival>(options.torch, threads());
    rival->seconds(c.request(mode, 2));  // compiles, allocates
    const double seconds = rival->seconds(c.request(mode, c.steps));
    if (best.process && seconds >= least) continue;
    best = {std::move(rival), mode};
    least = seconds;
  }
  return best;
}

// GPUs have units for bf16 alone.
DType faster_precision(const Case& c, const ModelBenchOptions& options) {
  if (!options.device.is_cpu()) return DType::bf16;
  double least = 0;
  DType best = DType::f32;
  for (const DType precision : {DType::f32, DType::bf16}) {
    options.progress(std::string(c.name) + ": Heddle, " + std::string(to_string(precision)));
    Training training(c, precision, options.device);
    training.step();
    const double seconds = training.seconds(c.steps);
    if (least == 0 || seconds < least) {
      least = seconds;
      best = precision;
    }
  }
  trim_memory();
  return best;
}

TrainFigure measure(const Case& c, const ModelBenchOptions& options) {
  const DType precision = faster_precision(c, options);
  const FastestRival rival = options.torch.empty() ? FastestRival{} : fastest_rival(c, options);
  reset_resident_peak();
  reset_peak_memory(options.device);
  Training training(c, precision, options.device);
  const int unmeasured = backend::can_repeat(options.device) ? 4 : 1;  // the third is recorded
  for (int i = 0; i < unmeasured; ++i) training.step();
  TrainFigure f;
  {
    const CostMeter meter;
    training.step();
    f.flops_per_step = meter.cost().flops;
  }
  std::vector<double> ours, shares, theirs, ratios;
  for (int round = 0; round < options.rounds; ++round) {
    options.progress(tr("{}: round {}", c.name, round + 1));
    const double peak = options.device.is_cpu() ? peak_beside(precision) : 0;
    ours.push_back(training.seconds(c.steps));
    if (peak > 0) shares.push_back(f.flops_per_step / ours.back() / peak);
    if (!rival.process) continue;
    theirs.push_back(rival.process->seconds(c.request(rival.mode, c.steps)));
    ratios.push_back(theirs.back() / ours.back());
  }
  const auto tokens = static_cast<double>(c.batch * c.context);
  f.name = c.name;
  f.precision = to_string(precision);
  f.parameters = training.parameters();
  f.step_seconds = median(ours);
  f.tokens_per_s = tokens / f.step_seconds;
  f.peak_bytes = options.device.is_cpu() ? resident_peak() : memory_use(options.device).peak;
  if (!shares.empty()) f.share_of_peak = median(shares);
  if (!theirs.empty()) {
    const auto bytes = static_cast<std::int64_t>(rival.process->seconds("peak"));
    f.torch = TrainFigure::Torch{rival.mode, tokens / median(theirs), bytes};
    f.times_torch = median(ratios);
  }
  return f;
}

}  // namespace

std::vector<TrainFigure> measure_training(const ModelBenchOptions& options) {
  std::vector<TrainFigure> figures;
  for (Case c : {kTinySteps, options.device.is_cpu() ? kGpt2Steps : kGpt2StepsOfGpu}) {
    if (!options.wants(c.shape)) continue;
    if (options.batch > 0) c.batch = options.batch;
    if (options.context > 0) c.context = options.context;
    figures.push_back(measure(c, options));
    trim_memory();
  }
  return figures;
}

}  // namespace heddle::bench
