#include "check/subject.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "backend/cpu/threads.h"
#include "heddle/tape.h"
#include "language/language.h"
#include "ops/copy/copy.h"

namespace heddle::check {

void Setting::use() const {
  cpu::set_isa(isa);
  cpu::set_threads(threads);
}

Subject::Subject(const model::ModelConfig& model, double smoothing, bool with_documents)
    : config(model),
      label_smoothing(smoothing),
      documents(with_documents),
      weights(random_weights(model)),
      batch(random_batch(model)) {
  if (documents) add_documents(batch);
}

Subject::Subject(const model::ModelConfig& model, const Subject& like)
    : Subject(model, like.label_smoothing, like.documents) {
  threads = like.threads;
  progress = like.progress;
  uncertain_in_f32 = like.uncertain_in_f32;
}

std::unique_ptr<model::Model> Subject::model(const Jitter& jitter) const {
  auto moved = model(DType::f64);
  std::uint32_t stream = 0;
  for (const nn::Parameter& p : moved->parameters().all()) jitter.move(p.tensor, ++stream);
  return moved;
}

Subject Subject::at_all_experts() const {
  model::ModelConfig all = config;
  all.moe->active = all.moe->experts;
  return {all, *this};
}

std::vector<Setting> all_settings(const Subject& subject) {
  std::vector<Setting> all;
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16})
    for (const cpu::Isa isa : cpu::available_isas())
      for (const int threads : subject.threads) all.push_back({dtype, isa, threads});
  return all;
}

Setting reference_setting() { return {DType::f64, cpu::available_isas().front(), 1}; }

Setting best_setting(DType dtype) { return {dtype, cpu::available_isas().back(), 1}; }

nn::Pass evaluation_pass(DType dtype) {
  nn::Pass pass;
  pass.precision = dtype;
  return pass;
}

nn::Pass training_pass(DType dtype, bool recompute) {
  nn::Pass pass = evaluation_pass(dtype);
  pass.recompute = recompute;
  pass.random = RandomKey{1, 7, 0};
  return pass;
}

Evaluation evaluate(const model::Model& model, const model::Batch& batch, DType dtype,
                    const EvaluationOptions& options) {
  Evaluation e;
  std::vector<nn::Parameter> parameters = model.parameters().all();
  for (nn::Parameter& p : parameters) p.tensor.clear_grad();
  {
    Tape tape;
    const Tensor loss =
        model.loss(batch, training_pass(dtype, options.recompute), options.label_smoothing).total;
    tape.backward(loss);
    e.loss = loss.detach();
  }
  for (nn::Parameter& p : parameters) {
    e.gradients.push_back({p.name, p.tensor.grad()});
    p.tensor.clear_grad();
  }
  e.logits = logits_of(model, batch, dtype, options.logits_on_tape);
  return e;
}

Tensor logits_of(const model::Model& model, const model::Batch& batch, DType dtype, bool on_tape) {
  std::optional<NoGrad> no_grad;
  if (!on_tape) no_grad.emplace();
  const Tape tape;
  return model.logits(batch, evaluation_pass(dtype)).detach();
}

Spreads spreads_of_passes(const Subject& subject, const EvaluationOptions& options) {
  EvaluationOptions watched = options;
  watched.logits_on_tape = true;
  return measure_spreads([&](const Jitter& jitter) {
    const Evaluation e = evaluate(*subject.model(jitter), subject.batch, DType::f64, watched);
    std::vector<Named> all = e.gradients;
    all.push_back({.name = "loss", .value = e.loss, .group = "loss", .apart = true});
    all.push_back({.name = "logits", .value = e.logits, .group = "logits", .apart = true});
    return all;
  });
}

void add_case(Report& report, const std::string& path, const Setting& setting,
              const WorstError& worst, double tolerance) {
  report.cases.push_back({path, setting.dtype, std::string(cpu::to_string(setting.isa)),
                          setting.threads, worst.error, tolerance, worst.name});
}

void note_uncompared(Report& report, const std::string& path, const Setting& setting,
                     std::size_t count, std::size_t of) {
  const std::string note =
      tr("{}: {}: {} of {} not compared, because rounding alone moves them too far",
         to_string(setting.dtype), tr(path), count, of);
  if (std::ranges::find(report.notes, note) == report.notes.end()) report.notes.push_back(note);
}

void WorstError::add(double e, const std::string& where) {
  if (e <= error) return;
  error = e;
  name = where;
}

void add_case(Report& report, const std::string& path, const Setting& setting,
              const std::vector<Difference>& differences, const Allowance& allowance) {
  // Behind a jump single elements may be anything.
  const bool jumps = allowance.way.kinks && setting.dtype != DType::f64;
  WorstError worst;
  double limit = 0, nearest = -1;
  std::size_t uncompared = 0;
  for (const Difference& d : differences) {
    bool compared = false;
    for (const Measure measure : {Measure::largest, Measure::mean}) {
      const double error = measure == Measure::largest ? d.largest : d.mean;
      if (measure == Measure::largest && jumps && std::isfinite(error)) continue;
      std::optional<double> most = allowed(allowance, d.group, setting.dtype, measure);
      if (most && measure == Measure::mean) *most *= slack_of_few(d.elements);
      if (!most && std::isfinite(error)) continue;
      compared = true;
      const double share = error / most.value_or(1);
      if (share <= nearest) continue;
      nearest = share;
      worst = {error, d.name};
      limit = most.value_or(1);
    }
    if (!compared) ++uncompared;
  }
  if (nearest >= 0) add_case(report, path, setting, worst, limit);
  if (uncompared > 0) note_uncompared(report, path, setting, uncompared, differences.size());
}

}  // namespace heddle::check
