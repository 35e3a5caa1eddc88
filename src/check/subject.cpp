#include "check/subject.h"

#include "backend/cpu/threads.h"
#include "heddle/tape.h"
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
  const NoGrad no_grad;
  e.logits = model.logits(batch, evaluation_pass(dtype));
  return e;
}

void add_case(Report& report, const std::string& path, const Setting& setting,
              const WorstError& worst, double tolerance) {
  report.cases.push_back({path, setting.dtype, std::string(cpu::to_string(setting.isa)),
                          setting.threads, worst.error, tolerance, worst.name});
}

void Errors::add(const Errors& other) {
  largest.add(other.largest.error, other.largest.name);
  mean.add(other.mean.error, other.mean.name);
}

Errors errors_of(const std::vector<Named>& got, const std::vector<Named>& want) {
  return {worst_error(got, want, Measure::largest), worst_error(got, want, Measure::mean)};
}

void add_case(Report& report, const std::string& path, const Setting& setting, const Errors& errors,
              const Way& way) {
  const double of_mean = tolerance(way, setting.dtype, Measure::mean);
  const double of_largest = tolerance(way, setting.dtype, Measure::largest);
  // Behind a jump single elements may be anything.
  const bool jumps = way.kinks && setting.dtype != DType::f64;
  if (!jumps && errors.largest.error / of_largest > errors.mean.error / of_mean)
    add_case(report, path, setting, errors.largest, of_largest);
  else
    add_case(report, path, setting, errors.mean, of_mean);
}

}  // namespace heddle::check
