// Choosing experiments by name and running them.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lab/experiment.h"
#include "lab/findings.h"

namespace heddle::lab {

// The experiments that are meant by names, in the order of the list: "all" stands for those that
// are not slow, and with `slow` for those too; a slow one that is named is run. Error for a name
// that is not there, with the nearest one.
// A word that is no name chooses what has it in its name, topic, title or claim; see found_by().
std::vector<const Experiment*> choose(std::span<const Experiment> list,
                                      std::span<const std::string> names, bool slow);

// The experiments that a word which is no name has found.
struct Match {
  std::string word;
  std::vector<const Experiment*> experiments;
  std::vector<const Experiment*> slow;  // found too, but run only by their names
};
std::vector<Match> found_by(std::span<const Experiment> list, std::span<const std::string> names);

struct Outcome {
  const Experiment* experiment = nullptr;
  Findings findings;
  double seconds = 0;
  std::string problem;  // what went wrong, when it did not come to an end

  // It came to the verdict that it states.
  bool pass() const {
    return problem.empty() && findings.measured_verdict() == experiment->expected;
  }
};

// The fault of that name. Error when the experiment has none such, with those that it has.
const Fault& fault_of(const Experiment& experiment, const std::string& name);

// Calls that tell of the progress.
struct Watch {
  std::function<void(const Experiment&, std::size_t number, std::size_t of)> begins = {};
  std::function<void(const Outcome&)> ended = {};
};

// Outcomes point at their experiments: those must outlive them.
// `fault` is planted into the measurement; then there must be one experiment, which has it.
std::vector<Outcome> run(std::span<const Experiment* const> chosen, const Watch& watch = {},
                         const std::string& fault = {});

// The status that the program ends with: 0 when all pass, 1 otherwise.
int exit_status(std::span<const Outcome> outcomes);

}  // namespace heddle::lab
