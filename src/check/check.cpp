#include "check/check.h"

#include "backend/cpu/settings.h"
#include "check/paths.h"

namespace heddle::check {

namespace {

// Of a few hundred choices between experts one in some thousand is as close as this.
constexpr double kMostSpreadOfChoices = 1.6e-5;

bool uncertain(const Subject& all) {
  const Spreads spreads = spreads_of_passes(all, {.label_smoothing = all.label_smoothing});
  return spreads.of("logits", DType::f32, Measure::mean) > kMostSpreadOfChoices;
}

}  // namespace

Report check_model(const model::ModelConfig& model, const Options& options) {
  const cpu::SettingsScope restore;
  Subject subject(model, options.label_smoothing, options.documents);
  subject.threads = options.threads;
  subject.progress = options.progress;
  subject.uncertain_in_f32 = model.moe && uncertain(subject.at_all_experts());
  Report report;
  check_definitions(subject, report);
  check_differences(subject, report);
  check_passes(subject, report);
  check_generation(subject, report);
  check_training(subject, report);
  return report;
}

}  // namespace heddle::check
