// Experiments for programs.
#include <nlohmann/json.hpp>

#include "lab/present/present.h"
#include "report/page/formula.h"

namespace heddle::lab {

namespace {

using Json = nlohmann::ordered_json;

Json faults_of(const Experiment& e) {
  Json all = Json::object();
  for (const Fault& fault : e.faults) all[fault.name] = tr(fault.what);
  return all;
}

Json described(const Experiment& e) {
  return {{"name", e.name},
          {"topic", tr(e.topic)},
          {"title", tr(e.title)},
          {"claim", tr(e.claim)},
          {"formula", e.formula.empty() ? "" : report::formula_text(e.formula)},
          {"expected", to_string(e.expected)},
          {"slow", e.slow},
          {"faults", faults_of(e)}};
}

Json checks_of(const Findings& findings) {
  Json all = Json::array();
  for (const Findings::Check& c : findings.checks())
    all.push_back({{"what", c.what},
                   {"value", c.value},
                   {"relation", symbol(c.relation)},
                   {"bound", c.bound},
                   {"true", c.satisfied},
                   {"of", c.role == Findings::Role::control ? "measurement" : "claim"},
                   {"contradicts", c.contradicts()}});
  return all;
}

Json to_json(const Outcome& outcome) {
  Json j = described(*outcome.experiment);
  if (!outcome.findings.planted().empty()) j["planted"] = outcome.findings.planted();
  // A verdict that was not reached is absent.
  if (outcome.problem.empty())
    j["verdict"] = to_string(*outcome.findings.measured_verdict());
  else
    j["problem"] = outcome.problem;
  j["pass"] = outcome.pass();
  Json numbers = Json::object();
  for (const Findings::Number& n : outcome.findings.numbers()) numbers[n.key] = n.value;
  j["numbers"] = numbers;
  j["checks"] = checks_of(outcome.findings);
  j["seconds"] = outcome.seconds;
  return j;
}

}  // namespace

std::string list_json(std::span<const Experiment* const> list) {
  Json all = Json::array();
  for (const Experiment* e : list) all.push_back(described(*e));
  return Json{{"experiments", all}}.dump(2);
}

std::string outcomes_json(std::span<const Outcome> outcomes) {
  Json all = Json::array();
  for (const Outcome& o : outcomes) all.push_back(to_json(o));
  return Json{{"experiments", all}}.dump(2);
}

}  // namespace heddle::lab
