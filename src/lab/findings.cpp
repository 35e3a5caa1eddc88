#include "lab/findings.h"

#include <fmt/format.h>

#include <algorithm>

#include "heddle/error.h"

namespace heddle::lab {

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::holds: return "holds";
    case Verdict::conditional: return "conditional";
    case Verdict::refuted: return "refuted";
  }
  return "unknown";
}

std::string words(Verdict verdict) {
  switch (verdict) {
    case Verdict::holds: return tr("holds");
    case Verdict::conditional: return tr("holds if …");
    case Verdict::refuted: break;
  }
  return tr("refuted");
}

bool is_true(double value, Relation relation, double bound) {
  switch (relation) {
    case Relation::less: return value < bound;
    case Relation::at_most: return value <= bound;
    case Relation::greater: return value > bound;
    case Relation::at_least: return value >= bound;
    case Relation::equal: return value == bound;
  }
  return false;
}

std::string_view symbol(Relation relation) {
  switch (relation) {
    case Relation::less: return "<";
    case Relation::at_most: return "≤";
    case Relation::greater: return ">";
    case Relation::at_least: return "≥";
    case Relation::equal: return "=";
  }
  return "?";
}

bool Findings::fault(std::string_view name) const {
  asked_faults_.emplace(name);
  return name == planted_;
}

void Findings::number(const std::string& key, double value, const std::string& label,
                      const std::string& unit) {
  if (std::any_of(numbers_.begin(), numbers_.end(), [&](const Number& n) { return n.key == key; }))
    fail(ErrorCode::invalid_argument, "lab", "key of a number", "one that was not used", key);
  numbers_.push_back({key, value, label, unit});
}

bool Findings::add_check(Check check) {
  check.satisfied = is_true(check.value, check.relation, check.bound);
  checks_.push_back(std::move(check));
  return checks_.back().satisfied;
}

bool Findings::check(const std::string& what, double value, Relation relation, double bound) {
  return add_check({what, value, relation, bound});
}

bool Findings::counter(const std::string& what, double value, Relation relation, double bound) {
  return add_check({what, value, relation, bound, false, Role::counter});
}

void Findings::control(const std::string& what, double value, Relation relation, double bound) {
  if (add_check({what, value, relation, bound, false, Role::control})) return;
  fail(ErrorCode::failed, "lab", "a control is not met: " + what,
       fmt::format("{} {:g}", symbol(relation), bound), fmt::format("{:g}", value));
}

void Findings::verdict(Verdict verdict) {
  if (verdict_) fail(ErrorCode::invalid_argument, "lab", "an experiment gave two verdicts");
  const bool contradicted =
      std::any_of(checks_.begin(), checks_.end(), [](const Check& c) { return c.contradicts(); });
  if (contradicted == (verdict == Verdict::holds))
    fail(ErrorCode::failed, "lab", "the checks do not show the verdict",
         contradicted ? "a claim that does not hold: a check contradicts it"
                      : "a claim that holds: no check contradicts it",
         to_string(verdict));
  verdict_ = verdict;
}

void Findings::figure(const report::LineChart& chart, const std::string& caption) {
  figures_.push_back({report::chart(chart), caption});
}

void Findings::figure(const report::HeatMap& map, const std::string& caption) {
  figures_.push_back({report::heat_map(map), caption});
}

void Findings::figure(const report::Bars& bars, const std::string& caption) {
  figures_.push_back({report::bars(bars), caption});
}

}  // namespace heddle::lab
