// A run as a terminal shows it while somebody watches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/run/run_view.h"

namespace heddle::report {

// The state of a run besides its log.
struct WatchView {
  RunView run;
  std::vector<std::int64_t> checkpoints = {};  // steps
};

// Seconds until its last step, by its last lines, evaluations included. 0: not known.
double seconds_left(const RunView& run);

// The whole screen: at most `rows` lines of at most `columns`.
std::vector<std::string> watch_screen(const WatchView& view, std::size_t columns, std::size_t rows);

// "step 120 of 5000  loss 1.8342  ...": the last line of the log, where there is no screen to draw.
std::string step_line(const RunView& run);
// "step 1000: validation loss 1.9012 (best)"
std::string evaluation_line(const RunView& run, std::size_t evaluation);
// How the run stands, in a sentence.
std::string state_line(const RunView& run);

}  // namespace heddle::report
