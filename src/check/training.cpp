#include <algorithm>
#include <cmath>
#include <iterator>

#include "check/paths.h"
#include "check/tolerance.h"
#include "heddle/memory.h"
#include "language/language.h"
#include "optim/step.h"

namespace heddle::check {

namespace {

constexpr DType kTypes[] = {DType::f64, DType::f32, DType::bf16};

void check_recomputation(const Subject& subject, Report& report) {
  // In a stack with cross-attention the memory's gradient is summed in another order when layers
  // are recomputed. Everywhere else: the same bits.
  const bool reordered = subject.config.kind == model::Kind::encoder_decoder;
  Spreads spreads;
  if (reordered) spreads = spreads_of_passes(subject, {.label_smoothing = subject.label_smoothing});
  for (const DType dtype : kTypes) {
    const Setting s = best_setting(dtype);
    s.use();
    const auto model = subject.model(dtype);
    EvaluationOptions options{.label_smoothing = subject.label_smoothing};
    const Evaluation plain = evaluate(*model, subject.batch, dtype, options);
    options.recompute = true;
    const Evaluation again = evaluate(*model, subject.batch, dtype, options);
    std::vector<Difference> differences = differences_of(again.gradients, plain.gradients);
    differences.push_back(
        differences_of({{"loss", again.loss}}, {{"loss", plain.loss, "loss"}}).front());
    if (reordered) {
      add_case(report, mark("recomputed activations"), s, differences,
               {there_and_back(subject.config), &spreads});
      continue;
    }
    WorstError worst;
    for (const Difference& d : differences) worst.add(d.largest, d.name);
    add_case(report, mark("recomputed activations"), s, worst, 0);
  }
}

recipe::TrainConfig step_config(const Subject& subject, DType dtype, std::int64_t parts) {
  recipe::TrainConfig c;
  c.precision = dtype;
  c.accumulate = parts;
  c.label_smoothing = subject.label_smoothing;
  return c;
}

std::vector<Named> step_gradients(const model::Model& model, const model::Batch& batch,
                                  const recipe::TrainConfig& config) {
  optim::add_gradients(model, batch, config, 1);
  std::vector<Named> all;
  for (nn::Parameter p : model.parameters().all()) {
    // None, as of an expert whose tokens all belong to parts in which no target counts, is 0: that
    // is how the optimizer takes it.
    const Tensor grad = p.tensor.grad();
    all.push_back(
        {p.name, grad.defined() ? grad : Tensor::zeros(p.tensor.shape(), p.tensor.dtype())});
    p.tensor.clear_grad();
  }
  return all;
}

// Dropout's masks follow the parts, and experts' loads the tokens that come together: neither is
// part of this comparison.
void check_parts(const Subject& subject, Report& report) {
  model::ModelConfig config = subject.config;
  config.dropout = config.embedding_dropout = config.attention.dropout = 0;
  if (config.moe) {
    config.moe->balance = 0;
    config.moe->capacity = std::nullopt;
    report.notes.push_back(tr(
        "a batch in parts: without balance loss and capacity, which count the tokens of a part"));
  }
  Subject certain(config, subject);
  if (subject.uncertain_in_f32) certain = certain.at_all_experts();
  const Spreads spreads = measure_spreads([&](const Jitter& jitter) {
    return step_gradients(*certain.model(jitter), certain.batch,
                          step_config(subject, DType::f64, 1));
  });
  for (const DType dtype : kTypes) {
    if (config.moe && dtype == DType::bf16) continue;  // rounding chooses experts
    if (!comparable(config, dtype)) continue;
    const Setting s = best_setting(dtype);
    s.use();
    const auto model = certain.model(dtype);
    const auto whole = step_gradients(*model, certain.batch, step_config(subject, dtype, 1));
    std::vector<Difference> differences;
    for (const std::int64_t parts : {2, 3})
      std::ranges::copy(
          differences_of(step_gradients(*model, certain.batch, step_config(subject, dtype, parts)),
                         whole),
          std::back_inserter(differences));
    // The way there is the same: only the way back rounds differently.
    add_case(report, mark("a batch in parts"), s, differences, {way_through(config), &spreads});
  }
}

std::int64_t peak_of_step(const Subject& subject, DType dtype, Device device) {
  model::Batch batch = device.is_meta() ? on_meta(subject.batch) : subject.batch;
  // Experts leave padding out, which the meta device cannot see.
  if (subject.config.moe) batch.lengths = batch.target_lengths = {};
  const MemoryUse before = memory_use(device);
  const auto model = make_model(subject.config, subject.weights, dtype, device);
  reset_peak_memory(device);
  optim::add_gradients(*model, batch, step_config(subject, dtype, 1), 1);
  return memory_use(device).peak - before.live;
}

void check_memory(const Subject& subject, Report& report) {
  // The meta device sends equally many tokens to each expert; a model does so if all get all.
  model::ModelConfig config = subject.config;
  if (config.moe) {
    config.moe->active = config.moe->experts;
    config.moe->capacity = std::nullopt;
  }
  const Subject even(config, subject);
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Setting s = best_setting(dtype);
    s.use();
    const auto planned = static_cast<double>(peak_of_step(even, dtype, Device::meta));
    const auto used = static_cast<double>(peak_of_step(even, dtype, Device::cpu));
    WorstError worst;
    worst.add(std::abs(planned - used) / used, {});
    add_case(report, mark("bytes of a step, as planned"), s, worst, 0);
  }
}

}  // namespace

void check_training(const Subject& subject, Report& report) {
  subject.progress(tr("training: recomputation, parts, memory"));
  check_recomputation(subject, report);
  check_parts(subject, report);
  check_memory(subject, report);
}

}  // namespace heddle::check
