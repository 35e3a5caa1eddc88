#include <cmath>

#include "check/paths.h"
#include "check/tolerance.h"

namespace heddle::check {

namespace {

EvaluationOptions options_of(const Subject& subject) {
  return {.label_smoothing = subject.label_smoothing};
}

WorstError different_bits(const Evaluation& got, const Evaluation& want) {
  WorstError worst;
  const auto add = [&worst](const Tensor& a, const Tensor& b, const std::string& name) {
    worst.add(static_cast<double>(other_bits(a, b)), name);
  };
  add(got.loss, want.loss, "loss");
  add(got.logits, want.logits, "logits");
  for (std::size_t i = 0; i < want.gradients.size(); ++i)
    add(got.gradients[i].value, want.gradients[i].value, want.gradients[i].name);
  return worst;
}

// A mean of as many numbers as targets count, whose errors are independent and as large as those of
// the logits; and its own rounding.
double loss_tolerance(const Evaluation& truth, std::int64_t counted, const Way& way, DType dtype) {
  const double of_logits = tolerance(way, dtype, Measure::mean) * root_mean_square(truth.logits);
  const double loss = std::abs(truth.loss.item());
  return of_logits / (2 * loss * std::sqrt(static_cast<double>(counted))) +
         2 * epsilon(parameter_type(dtype));
}

void compare(const Evaluation& got, const Evaluation& truth, const Subject& subject,
             const Setting& setting, Report& report) {
  const Way way = way_through(subject.config);
  WorstError loss;
  loss.add(error_of(got.loss, truth.loss), {});
  add_case(report, "loss", setting, loss,
           loss_tolerance(truth, subject.batch.counted, way, setting.dtype));
  add_case(report, "logits", setting, errors_of({{"", got.logits}}, {{"", truth.logits}}), way);
  add_case(report, "gradients", setting, errors_of(got.gradients, truth.gradients),
           there_and_back(subject.config));
}

void check_passes_of(const Subject& subject, const std::vector<Setting>& settings, Report& report) {
  reference_setting().use();
  const Evaluation truth =
      evaluate(*subject.model(DType::f64), subject.batch, DType::f64, options_of(subject));
  Evaluation alone;  // with the first number of threads
  for (const Setting& s : settings) {
    subject.progress("passes: " + std::string(to_string(s.dtype)) + " " +
                     std::string(cpu::to_string(s.isa)));
    s.use();
    Evaluation e = evaluate(*subject.model(s.dtype), subject.batch, s.dtype, options_of(subject));
    if (comparable(subject.config, s.dtype)) compare(e, truth, subject, s, report);
    if (s.threads == subject.threads.front())
      alone = std::move(e);
    else
      add_case(report, "same bits for any threads", s, different_bits(e, alone), 0);
  }
}

}  // namespace

void check_passes(const Subject& subject, Report& report) {
  std::vector<Setting> settings = all_settings(subject), rough;
  if (subject.config.moe) {
    // Which experts are the strongest is for rounding to decide where two are close, so in bf16
    // every token goes to all of them.
    std::erase_if(settings, [](const Setting& s) { return s.dtype == DType::bf16; });
    for (const Setting& s : all_settings(subject))
      if (s.dtype == DType::bf16) rough.push_back(s);
  }
  if (!comparable(subject.config, DType::bf16))
    report.notes.emplace_back(
        "bf16: not compared, because weights by relu jump where their sum is nearly 0");
  check_passes_of(subject, settings, report);
  if (rough.empty()) return;
  model::ModelConfig all = subject.config;
  all.moe->active = all.moe->experts;
  check_passes_of(Subject(all, subject), rough, report);
  report.notes.emplace_back(
      "bf16: tokens go to all experts, because rounding may change which are the strongest");
}

}  // namespace heddle::check
