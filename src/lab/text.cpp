// Experiments on a terminal.
#include <fmt/format.h>

#include <cmath>
#include <map>

#include "lab/present.h"
#include "lab/words.h"
#include "language/layout.h"

namespace heddle::lab {

namespace {

constexpr std::size_t kColumns = 96;

const char* style(Verdict verdict) {
  switch (verdict) {
    case Verdict::holds: return "1;32";
    case Verdict::conditional: return "1;33";
    case Verdict::refuted: return "1;31";
  }
  return "1";
}

std::string styled(const std::string& text, const char* style, bool colour) {
  return colour ? fmt::format("\033[{}m{}\033[0m", style, text) : text;
}

std::string entry(const char* name, const std::string& text) {
  constexpr std::size_t kIndent = 13;
  return "  " + padded(tr(name), kIndent - 2) + wrapped(text, kColumns - kIndent, kIndent) + "\n";
}

std::string with_unit(double value, const std::string& unit) {
  return unit.empty() ? number_text(value) : number_text(value) + " " + unit;
}

std::string verdict_line(const Outcome& outcome, bool colour) {
  if (!outcome.problem.empty())
    return styled(tr(said::failed), "1;31", colour) + ": " + outcome.problem;
  const Verdict verdict = *outcome.findings.measured_verdict();
  std::string line = styled(words(verdict), style(verdict), colour);
  if (!outcome.pass())
    line += fmt::format("  ✗ {} ({})", tr(said::differs), words(outcome.experiment->expected));
  return line;
}

}  // namespace

std::string number_text(double value) {
  if (std::isfinite(value) && value == std::round(value) && std::abs(value) < 1e15)
    return fmt::format("{:.0f}", value == 0 ? 0.0 : value);
  return fmt::format("{:.4g}", value);
}

std::string list_text(std::span<const Experiment* const> list) {
  std::string out, topic;
  for (const Experiment* e : list) {
    if (tr(e->topic) != topic) {
      topic = tr(e->topic);
      out += (out.empty() ? "" : "\n") + topic + "\n";
    }
    out += "  " + padded(e->name, 24) + padded(words(e->expected), 12) + tr(e->title) +
           (e->slow ? " (" + tr(said::slow) + ")" : "") + "\n";
  }
  return out;
}

std::string outcome_text(const Outcome& outcome, bool colour) {
  const Experiment& e = *outcome.experiment;
  std::string out = styled(e.name, "1", colour) + ": " + tr(e.title) + "\n";
  if (const std::string& name = outcome.findings.planted(); !name.empty())
    out += entry(said::planted, name + ": " + tr(fault_of(e, name).what));
  out += entry(said::claim, tr(e.claim));
  out += entry(said::source, tr(e.source));
  out += entry(said::method, tr(e.method));
  for (const Findings::Number& n : outcome.findings.numbers())
    out += "    " + padded(n.label, 72) + " " + with_unit(n.value, n.unit) + "\n";
  for (const std::string& note : outcome.findings.notes())
    out += "    " + wrapped(note, kColumns - 4, 4) + "\n";
  out += entry(said::threshold, tr(e.threshold));
  for (const Findings::Check& c : outcome.findings.checks())
    out += fmt::format("    {} {} {} {} {}\n", c.satisfied ? "✓" : "✗", padded(c.what, 70),
                       number_text(c.value), symbol(c.relation), number_text(c.bound));
  out += entry(said::verdict, verdict_line(outcome, colour));
  if (outcome.pass()) out += entry(said::because, tr(e.because));
  std::string names;
  for (const Fault& fault : e.faults) names += (names.empty() ? "" : ", ") + fault.name;
  if (!names.empty()) out += entry(said::faults, "--plant " + names);
  return out;
}

std::string summary_text(std::span<const Outcome> outcomes) {
  std::map<Verdict, std::size_t> counts;
  std::string wrong;
  double seconds = 0;
  for (const Outcome& o : outcomes) {
    if (o.findings.measured_verdict()) ++counts[*o.findings.measured_verdict()];
    if (!o.pass()) wrong += (wrong.empty() ? "" : ", ") + o.experiment->name;
    seconds += o.seconds;
  }
  std::string out;
  for (const auto& [verdict, count] : counts)
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", words(verdict), count);
  out += fmt::format("  ({:.1f} s)\n", seconds);
  if (!wrong.empty()) out += fmt::format("✗ {}: {}\n", tr(said::differs), wrong);
  return out;
}

}  // namespace heddle::lab
