// Experiments for programs.
#include <nlohmann/json.hpp>

#include "lab/present.h"

namespace heddle::lab {

namespace {

using Json = nlohmann::ordered_json;

Json faults_of(const Experiment& e, Language language) {
  Json all = Json::object();
  for (const Fault& fault : e.faults) all[fault.name] = fault.what.in(language);
  return all;
}

Json described(const Experiment& e, Language language) {
  return {{"name", e.name},
          {"topic", e.topic.in(language)},
          {"title", e.title.in(language)},
          {"claim", e.claim.in(language)},
          {"expected", to_string(e.expected)},
          {"slow", e.slow},
          {"faults", faults_of(e, language)}};
}

Json checks_of(const Findings& findings, Language language) {
  Json all = Json::array();
  for (const Findings::Check& c : findings.checks())
    all.push_back({{"what", c.what.in(language)},
                   {"value", c.value},
                   {"relation", symbol(c.relation)},
                   {"bound", c.bound},
                   {"true", c.satisfied}});
  return all;
}

Json to_json(const Outcome& outcome, Language language) {
  Json j = described(*outcome.experiment, language);
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
  j["checks"] = checks_of(outcome.findings, language);
  j["seconds"] = outcome.seconds;
  return j;
}

}  // namespace

std::string list_json(std::span<const Experiment* const> list, Language language) {
  Json all = Json::array();
  for (const Experiment* e : list) all.push_back(described(*e, language));
  return Json{{"experiments", all}}.dump(2);
}

std::string outcomes_json(std::span<const Outcome> outcomes, Language language) {
  Json all = Json::array();
  for (const Outcome& o : outcomes) all.push_back(to_json(o, language));
  return Json{{"experiments", all}}.dump(2);
}

}  // namespace heddle::lab
