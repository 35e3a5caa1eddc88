#include "report/run/live_report.h"

#include <exception>
#include <utility>

#include "language/language.h"
#include "report/run/training.h"

namespace heddle::report {

namespace {

constexpr int kShare = 100;  // the time between two pages is so many times what one takes
constexpr std::chrono::seconds kLongest(30);

}  // namespace

bool ReportRhythm::overdue(Clock::time_point now) const {
  return affordable(now) && now >= last_ + kLongest;
}

void ReportRhythm::wrote(Clock::time_point from, Clock::time_point to) {
  last_ = to;
  next_ = to + kShare * (to - from);
}

LiveReport::LiveReport(std::string directory, Say say)
    : directory_(std::move(directory)), say_(std::move(say)), rhythm_(ReportRhythm::Clock::now()) {}

void LiveReport::evaluated() {
  if (rhythm_.affordable(ReportRhythm::Clock::now())) renew(RunState::running);
}

void LiveReport::stepped() {
  if (rhythm_.overdue(ReportRhythm::Clock::now())) renew(RunState::running);
}

void LiveReport::end(RunState state) { renew(state); }

void LiveReport::renew(RunState state) {
  const auto from = ReportRhythm::Clock::now();
  std::string complaint;
  try {
    write_training_report(directory_, state);
  } catch (const std::exception& e) {
    complaint = e.what();
  }
  if (!complaint.empty() && complaint != complaint_) say_(tr("no report: {}", complaint));
  complaint_ = std::move(complaint);
  rhythm_.wrote(from, ReportRhythm::Clock::now());
}

}  // namespace heddle::report
