#include "lab/run.h"

#include <algorithm>
#include <exception>

#include "base/stopwatch.h"
#include "heddle/error.h"
#include "io/errors.h"

namespace heddle::lab {

namespace {

constexpr std::string_view kAll = "all";

bool is_name(std::span<const Experiment> list, const std::string& name) {
  return name == kAll ||
         std::any_of(list.begin(), list.end(), [&](const Experiment& e) { return e.name == name; });
}

std::string lowered(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return text;
}

// Whether an experiment has to do with a word, in English or in the language of the process.
bool has_word(const Experiment& e, const std::string& word) {
  for (const std::string* text : {&e.name, &e.topic, &e.title, &e.claim})
    if (lowered(*text).find(word) != std::string::npos ||
        lowered(tr(*text)).find(word) != std::string::npos)
      return true;
  return false;
}

[[noreturn]] void refuse_name(std::span<const Experiment> list, const std::string& name) {
  std::vector<std::string> known = {std::string(kAll)};
  for (const Experiment& e : list) known.push_back(e.name);
  const std::string near = io::nearest_name(name, known);
  fail(ErrorCode::invalid_argument, "lab", "no experiment of that name, and none about that",
       near.empty() ? "one of those that `heddle lab list` shows" : "perhaps " + near,
       io::shown(name));
}

Outcome run_one(const Experiment& experiment, const std::string& fault) {
  Outcome outcome{&experiment, Findings(fault), 0, {}};
  const Stopwatch stopwatch;
  // Whatever happens inside of an experiment is its result, and the others still run.
  try {
    experiment.run(outcome.findings);
    if (!outcome.findings.measured_verdict()) outcome.problem = "it came to no verdict";
  } catch (const std::exception& e) {
    outcome.problem = e.what();
  }
  outcome.seconds = stopwatch.seconds();
  return outcome;
}

}  // namespace

std::vector<Match> found_by(std::span<const Experiment> list, std::span<const std::string> names) {
  std::vector<Match> matches;
  for (const std::string& name : names) {
    if (is_name(list, name)) continue;
    Match match{name, {}, {}};
    for (const Experiment& e : list)
      if (name.size() > 1 && has_word(e, lowered(name)))
        (e.slow ? match.slow : match.experiments).push_back(&e);
    if (match.experiments.empty() && match.slow.empty()) refuse_name(list, name);
    matches.push_back(std::move(match));
  }
  return matches;
}

std::vector<const Experiment*> choose(std::span<const Experiment> list,
                                      std::span<const std::string> names, bool slow) {
  const std::vector<Match> matches = found_by(list, names);
  const auto named = [&](std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const auto found = [&](const Experiment& e) {
    return std::any_of(matches.begin(), matches.end(), [&](const Match& m) {
      return std::find(m.experiments.begin(), m.experiments.end(), &e) != m.experiments.end();
    });
  };
  if (slow && !named(kAll))
    fail(ErrorCode::invalid_argument, "lab", "--slow", "beside all: what is named is run anyway");
  std::vector<const Experiment*> chosen;
  for (const Experiment& e : list)
    if (named(e.name) || found(e) || (named(kAll) && (slow || !e.slow))) chosen.push_back(&e);
  if (chosen.empty())
    fail(ErrorCode::invalid_argument, "lab", "all that this finds is slow, and is run by its name",
         matches.front().slow.front()->name, io::shown(matches.front().word));
  return chosen;
}

const Fault& fault_of(const Experiment& experiment, const std::string& name) {
  std::string known;
  for (const Fault& fault : experiment.faults) {
    if (fault.name == name) return fault;
    known += (known.empty() ? "one of " : ", ") + fault.name;
  }
  fail(ErrorCode::invalid_argument, experiment.name, "no fault of that name", known,
       io::shown(name));
}

std::vector<Outcome> run(std::span<const Experiment* const> chosen, const Watch& watch,
                         const std::string& fault) {
  if (!fault.empty()) {
    if (chosen.size() != 1)
      fail(ErrorCode::invalid_argument, "lab", "a fault is planted into one experiment",
           "the name of one", std::to_string(chosen.size()));
    fault_of(*chosen.front(), fault);
  }
  std::vector<Outcome> outcomes;
  for (const Experiment* e : chosen) {
    if (watch.begins) watch.begins(*e, outcomes.size() + 1, chosen.size());
    outcomes.push_back(run_one(*e, fault));
    if (watch.ended) watch.ended(outcomes.back());
  }
  return outcomes;
}

int exit_status(std::span<const Outcome> outcomes) {
  return std::all_of(outcomes.begin(), outcomes.end(), [](const Outcome& o) { return o.pass(); })
             ? 0
             : 1;
}

}  // namespace heddle::lab
