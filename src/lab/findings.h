// The findings of an experiment: numbers, the conditions that decide, pictures, and the verdict.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lab/experiment.h"
#include "report/charts/bars.h"
#include "report/charts/chart.h"
#include "report/charts/heatmap.h"
#include "report/page/explorer.h"

namespace heddle::lab {

enum class Relation : std::uint8_t { less, at_most, greater, at_least, equal };

bool is_true(double value, Relation relation, double bound);  // false when one is NaN
std::string_view symbol(Relation relation);                   // "<", "≤", …

// Texts are in the language of the run, since numbers are part of them: tr("R² of {} layers", n).
class Findings {
 public:
  struct Number {
    std::string key;
    double value = 0;
    std::string label;
    std::string unit;  // "", "s", "bytes", …
  };
  // The consequence when a condition is met: the claim has what it needs, the claim is wrong, or
  // the measurement can be trusted.
  enum class Role : std::uint8_t { claim, counter, control };
  struct Check {
    std::string what;
    double value = 0;
    Relation relation = Relation::less;
    double bound = 0;
    bool satisfied = false;
    Role role = Role::claim;

    bool contradicts() const {
      return role == Role::counter ? satisfied : role == Role::claim && !satisfied;
    }
  };
  struct Figure {
    report::Html drawing;
    std::string caption;
  };

  // `planted` is the name of a fault, or empty: all is measured as it should be.
  explicit Findings(std::string planted = {}) : planted_(std::move(planted)) {}

  // Whether the measurement is to go wrong in this way. True only where a test or `heddle lab
  // --plant` planted that fault.
  bool fault(std::string_view name) const;

  // A measured number; `key` names it in JSON and is used once: Error otherwise.
  void number(const std::string& key, double value, const std::string& label,
              const std::string& unit = {});
  // A condition on measured numbers that is true when the claim is. Returns whether it is true.
  bool check(const std::string& what, double value, Relation relation, double bound);
  // One that is true when the claim is wrong, or not the whole truth.
  bool counter(const std::string& what, double value, Relation relation, double bound);
  // A condition that says nothing about the claim itself: whether the measurement can be trusted,
  // such as a part whose result is known, or whether the stated reason is true as well. Error when
  // it is not met: then there is no verdict.
  void control(const std::string& what, double value, Relation relation, double bound);
  // The conclusion from all checks. Must be called once: Error on a second time, and
  // for a verdict that they do not show: a claim holds when none contradicts it, else it does not.
  void verdict(Verdict verdict);
  // A sentence with measured numbers in it.
  void note(const std::string& note) { notes_.push_back(note); }

  // Pictures of the page.
  void figure(const report::LineChart& chart, const std::string& caption);
  void figure(const report::HeatMap& map, const std::string& caption);
  void figure(const report::Bars& bars, const std::string& caption);
  // A chart with a slider, below the pictures.
  void explore(report::Explorer explorer) { explorers_.push_back(std::move(explorer)); }

  const std::vector<Number>& numbers() const { return numbers_; }
  const std::vector<Check>& checks() const { return checks_; }
  const std::vector<std::string>& notes() const { return notes_; }
  const std::vector<Figure>& figures() const { return figures_; }
  const std::vector<report::Explorer>& explorers() const { return explorers_; }
  const std::optional<Verdict>& measured_verdict() const { return verdict_; }
  const std::string& planted() const { return planted_; }
  // Names that the measurement has asked for: a fault that is not among them cannot be planted.
  const std::set<std::string, std::less<>>& asked_faults() const { return asked_faults_; }

 private:
  bool add_check(Check check);

  std::string planted_;
  mutable std::set<std::string, std::less<>> asked_faults_;  // a record of reads
  std::vector<Number> numbers_;
  std::vector<Check> checks_;
  std::vector<std::string> notes_;
  std::vector<Figure> figures_;
  std::vector<report::Explorer> explorers_;
  std::optional<Verdict> verdict_;
};

}  // namespace heddle::lab
