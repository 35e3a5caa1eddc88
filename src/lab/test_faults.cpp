// The measurements of the lab on trial: each fault that an experiment names is planted into its
// measurement, and the experiment must not pass. A measurement that cannot fail shows nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "heddle/error.h"
#include "lab/experiments.h"
#include "lab/present/present.h"
#include "lab/run.h"
#include "language/test_support.h"

namespace heddle::lab {
namespace {

struct Trial {
  const Experiment* experiment;
  std::string fault;  // empty: none
};

// An experiment that measures time wants a machine of its own, and one of these takes long without
// its window.
bool takes_long(const Experiment& e) {
  static const std::set<std::string> names = {"window-cost", "attention-flops"};
  return e.slow || names.count(e.name) != 0;
}

std::vector<Trial> trials(bool long_ones) {
  std::vector<Trial> all;
  for (const Experiment& e : experiments()) {
    if (takes_long(e) != long_ones) continue;
    all.push_back({&e, {}});
    for (const Fault& fault : e.faults) all.push_back({&e, fault.name});
  }
  return all;
}

std::string name_of(const testing::TestParamInfo<Trial>& info) {
  std::string name =
      info.param.experiment->name + "__" + (info.param.fault.empty() ? "right" : info.param.fault);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

class LabFaults : public testing::TestWithParam<Trial> {};

TEST_P(LabFaults, TurnTheVerdict) {
  const auto& [experiment, fault] = GetParam();
  const std::vector<Outcome> outcomes = run(std::span(&experiment, 1), {}, fault);
  const Outcome& o = outcomes.front();
  const auto& asked = o.findings.asked_faults();
  if (fault.empty()) {
    EXPECT_TRUE(o.pass()) << o.problem;
    std::set<std::string, std::less<>> named;
    for (const Fault& f : experiment->faults) named.insert(f.name);
    EXPECT_EQ(asked, named) << "faults that are named and faults that are asked for";
  } else {
    EXPECT_TRUE(asked.count(fault) != 0) << "the measurement never asks for it";
    EXPECT_FALSE(o.pass()) << "the fault changed nothing that decides";
    // A measurement that merely breaks would hide that nothing judges it.
    EXPECT_TRUE(o.problem.empty() || o.problem.find("a control is not met") != std::string::npos)
        << o.problem;
  }
}

INSTANTIATE_TEST_SUITE_P(Quick, LabFaults, testing::ValuesIn(trials(false)), name_of);
INSTANTIATE_TEST_SUITE_P(Long, LabFaults, testing::ValuesIn(trials(true)), name_of);

// Experiments whose measurement was never put on trial. The list may only become shorter.
const std::set<std::string>& without_faults() {
  static const std::set<std::string> names = {};
  return names;
}

TEST(LabFaultNames, EveryExperimentHasSomeInBothLanguages) {
  for (const Experiment& e : experiments()) {
    EXPECT_EQ(e.faults.empty(), without_faults().count(e.name) != 0) << e.name;
    std::set<std::string> names;
    for (const Fault& fault : e.faults) {
      EXPECT_TRUE(names.insert(fault.name).second) << e.name << " has twice " << fault.name;
      EXPECT_EQ(fault.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"),
                std::string::npos)
          << fault.name;
      EXPECT_FALSE(fault.what.empty()) << e.name << " " << fault.name;
      const InChinese chinese;
      EXPECT_NE(tr(fault.what), fault.what) << e.name << " " << fault.name;
    }
  }
}

TEST(LabFaultNames, AFaultIsPlantedByNameIntoOneExperiment) {
  Experiment one;
  one.name = "one";
  one.faults = {{"twice", "counted twice"}};
  one.run = [](Findings& f) {
    const double value = f.fault("twice") ? 2 : 1;
    f.verdict(value == 1 ? Verdict::holds : Verdict::refuted);
  };
  const Experiment* chosen[] = {&one, &one};
  const auto first = std::span(chosen).first(1);
  EXPECT_TRUE(run(first).front().pass());
  const Outcome faulty = run(first, {}, "twice").front();
  EXPECT_FALSE(faulty.pass());
  EXPECT_EQ(faulty.findings.planted(), "twice");
  // Nobody must take its numbers for a measurement.
  for (const std::string& shown :
       {outcome_text(faulty, false), outcomes_page(std::span(&faulty, 1))})
    EXPECT_NE(shown.find("twice: counted twice"), std::string::npos) << shown;
  EXPECT_THROW(run(chosen, {}, "twice"), Error) << "into which of the two?";
  try {
    run(first, {}, "thrice");
    FAIL() << "a fault that the experiment does not have was planted";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("one of twice"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace heddle::lab
