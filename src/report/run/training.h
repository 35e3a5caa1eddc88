// report.html of a run: what happened, as curves.
#pragma once

#include <optional>
#include <string>

#include "report/run/run_view.h"

namespace heddle::report {

using run::parse_training_log;

struct PageOptions {
  std::string script = {};  // at the end of the page
};

std::string training_page(const RunView& run, const PageOptions& options = {});

// Writes the page of view_run(directory, state) to `out`, or else to report.html of the run;
// returns its path.
std::string write_training_report(const std::string& directory, std::optional<RunState> state = {},
                                  const std::string& out = {});

}  // namespace heddle::report
