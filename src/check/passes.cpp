#include <algorithm>
#include <cmath>

#include "check/paths.h"
#include "check/tolerance.h"
#include "language/language.h"

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

// The expected results of passes.
struct Truth {
  Evaluation evaluation;
  Spreads spreads;
};

void compare(const Evaluation& got, const Truth& truth, const Subject& subject,
             const Setting& setting, Report& report) {
  const Evaluation& want = truth.evaluation;
  const Way way = way_through(subject.config);
  WorstError loss;
  loss.add(error_of(got.loss, want.loss), {});
  const double alone = loss_tolerance(want, subject.batch.counted, way, setting.dtype);
  const auto seen = allowed_spread({way, &truth.spreads}, "loss", setting.dtype, Measure::mean);
  add_case(report, mark("loss"), setting, loss, std::max(alone, seen.value_or(1)));
  add_case(report, mark("logits"), setting,
           differences_of({{"", got.logits}}, {{"", want.logits, "logits"}}),
           {way, &truth.spreads});
  add_case(report, mark("gradients"), setting, differences_of(got.gradients, want.gradients),
           {there_and_back(subject.config), &truth.spreads});
}

void check_passes_of(const Subject& subject, const std::vector<Setting>& settings, Report& report) {
  if (settings.empty()) return;
  Truth truth;
  truth.spreads = spreads_of_passes(subject, options_of(subject));
  reference_setting().use();
  truth.evaluation =
      evaluate(*subject.model(DType::f64), subject.batch, DType::f64, options_of(subject));
  Evaluation alone;  // with the first number of threads
  for (const Setting& s : settings) {
    subject.progress(tr("passes: {} {}", to_string(s.dtype), cpu::to_string(s.isa)));
    s.use();
    Evaluation e = evaluate(*subject.model(s.dtype), subject.batch, s.dtype, options_of(subject));
    if (comparable(subject.config, s.dtype)) compare(e, truth, subject, s, report);
    if (s.threads == subject.threads.front())
      alone = std::move(e);
    else
      add_case(report, mark("same bits for any threads"), s, different_bits(e, alone), 0);
  }
}

}  // namespace

namespace {

std::string why_left_out(const Subject& subject, DType dtype) {
  if (subject.config.attention.normaliser == ops::Normaliser::relu && dtype == DType::bf16)
    return tr("bf16: not compared, because weights by relu jump where their sum is nearly 0");
  return tr("{}: not compared, because scores far above their cap are signs that rounding decides",
            to_string(dtype));
}

}  // namespace

void check_passes(const Subject& subject, Report& report) {
  // Which experts are the strongest is for rounding to decide where two are close, so in bf16 every
  // token goes to all of them.
  std::vector<Setting> settings, rough;
  for (const Setting& s : all_settings(subject))
    (subject.routes_alike(s.dtype) ? settings : rough).push_back(s);
  for (const DType dtype : {DType::f32, DType::bf16})
    if (!comparable(subject.config, dtype)) report.notes.push_back(why_left_out(subject, dtype));
  check_passes_of(subject, settings, report);
  if (rough.empty()) return;
  check_passes_of(subject.at_all_experts(), rough, report);
  report.notes.push_back(
      tr("{}: tokens go to all experts, because rounding may change which are the strongest",
         subject.uncertain_in_f32 ? "f32, bf16" : "bf16"));
}

}  // namespace heddle::check
