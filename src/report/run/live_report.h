// report.html of a run, renewed while the run goes.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "report/run/run_view.h"

namespace heddle::report {

// When the page may be renewed: so rarely that writing it takes a hundredth of the time at most.
class ReportRhythm {
 public:
  using Clock = std::chrono::steady_clock;
  explicit ReportRhythm(Clock::time_point began) : next_(began), last_(began) {}

  bool affordable(Clock::time_point now) const { return now >= next_; }
  // Without evaluations: half a minute after the last one, where that is affordable.
  bool overdue(Clock::time_point now) const;
  void wrote(Clock::time_point from, Clock::time_point to);

 private:
  Clock::time_point next_, last_;
};

// The page is a help, not a condition: where it cannot be written, that is said, once for each
// reason, and the run is no worse.
class LiveReport {
 public:
  using Say = std::function<void(const std::string& sentence)>;
  LiveReport(std::string directory, Say say);

  void evaluated();          // after an evaluation
  void stepped();            // after a step
  void end(RunState state);  // whatever it costs

 private:
  void renew(RunState state);

  std::string directory_;
  Say say_;
  ReportRhythm rhythm_;
  std::string complaint_;  // the last one that was said
};

}  // namespace heddle::report
