#include "check/check.h"

#include "backend/cpu/settings.h"
#include "check/paths.h"

namespace heddle::check {

Report check_model(const model::ModelConfig& model, const Options& options) {
  const cpu::SettingsScope restore;
  Subject subject(model, options.label_smoothing, options.documents);
  subject.threads = options.threads;
  subject.progress = options.progress;
  Report report;
  check_definitions(subject, report);
  check_differences(subject, report);
  check_passes(subject, report);
  check_generation(subject, report);
  check_training(subject, report);
  return report;
}

}  // namespace heddle::check
