// Experiments on a terminal.
#include <fmt/format.h>

#include <cmath>
#include <map>

#include "lab/present/present.h"
#include "lab/present/words.h"
#include "language/language.h"
#include "language/layout.h"
#include "report/page/formula.h"
#include "report/page/numbers.h"

namespace heddle::lab {

namespace {

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

std::string entry(const char* name, const std::string& text, std::size_t columns) {
  constexpr std::size_t kIndent = 13;
  return "  " + padded(tr(name), kIndent - 2) + wrapped(text, columns - kIndent, kIndent) + "\n";
}

// The measured quantity on the left, in as many lines as it needs, and the number behind the last.
std::string measured_row(const std::string& label, const std::string& number, std::size_t columns) {
  constexpr std::size_t kIndent = 4, kNumber = 24;
  const std::size_t room = columns - kNumber;
  std::string text = std::string(kIndent, ' ') + wrapped(label, room - kIndent, kIndent);
  const std::size_t last = text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1;
  return text.substr(0, last) + padded(text.substr(last), room) + " " + number + "\n";
}

// The deciding conditions, each with its word on the claim; then those which show that the
// measurement can be trusted and say nothing of the claim.
std::string checks_text(const Findings& findings, bool colour, std::size_t columns) {
  std::string deciding, controls;
  for (const Findings::Check& c : findings.checks()) {
    const std::string number =
        fmt::format("{} {} {}", number_text(c.value), symbol(c.relation), number_text(c.bound));
    if (c.role == Findings::Role::control) {
      controls += measured_row((c.satisfied ? "· " : "✗ ") + c.what, number, columns);
      continue;
    }
    const bool against = c.contradicts();
    std::string row = measured_row((against ? "✗ " : "✓ ") + c.what, number, columns);
    deciding += styled(row, against ? "31" : "32", colour);
  }
  std::string out;
  if (!deciding.empty()) out += "  " + tr(said::marks) + "\n" + deciding;
  if (!controls.empty()) out += "  " + tr(said::of_measurement) + "\n" + controls;
  return out;
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
  const bool whole = value == std::round(value) || std::abs(value) >= 1e4;
  if (std::isfinite(value) && whole && std::abs(value) < 1e15)
    return fmt::format("{:.0f}", value == 0 ? 0.0 : value);
  return fmt::format("{:.4g}", value);
}

std::string measured_text(const Findings::Number& number) {
  if (number.unit == "bytes") return report::bytes_text(number.value);
  return number_text(number.value) + (number.unit.empty() ? "" : " " + tr(number.unit));
}

std::string list_text(std::span<const Experiment* const> list, std::size_t columns) {
  std::string out, topic;
  for (const Experiment* e : list) {
    if (tr(e->topic) != topic) {
      topic = tr(e->topic);
      out += (out.empty() ? "" : "\n") + topic + "\n";
    }
    const std::string title = tr(e->title) + (e->slow ? tr(" ({})", tr(said::slow)) : "");
    out += "  " + padded(e->name, 24) + padded(words(e->expected), 12) +
           wrapped(title, columns - 38, 38) + "\n";
  }
  return out;
}

std::string outcome_text(const Outcome& outcome, bool colour, std::size_t columns) {
  const Experiment& e = *outcome.experiment;
  std::string out = styled(e.name, "1", colour) + ": " + tr(e.title) + "\n";
  const auto add = [&](const char* name, const std::string& text) {
    out += entry(name, text, columns);
  };
  if (const std::string& name = outcome.findings.planted(); !name.empty())
    add(said::planted, name + ": " + tr(fault_of(e, name).what));
  add(said::claim, tr(e.claim));
  if (!e.formula.empty()) add(said::formula, report::formula_text(e.formula));
  add(said::source, tr(e.source));
  add(said::method, tr(e.method));
  for (const Findings::Number& n : outcome.findings.numbers())
    out += measured_row(n.label, measured_text(n), columns);
  for (const std::string& note : outcome.findings.notes())
    out += "    " + wrapped(note, columns - 4, 4) + "\n";
  add(said::threshold, tr(e.threshold));
  out += checks_text(outcome.findings, colour, columns);
  add(said::verdict, verdict_line(outcome, colour));
  if (outcome.pass()) add(said::because, tr(e.because));
  std::string names;
  for (const Fault& fault : e.faults) names += (names.empty() ? "" : ", ") + fault.name;
  if (!names.empty()) add(said::faults, "--plant " + names);
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
  for (const auto& [verdict, count] : counts) {
    const std::string one = fmt::format("{} {}", words(verdict), count);
    out = out.empty() ? one : tr("{}, {}", out, one);
  }
  out = tr("{}  ({:.1f} s)", out, seconds) + "\n";
  if (!wrong.empty()) out += fmt::format("✗ {}: {}\n", tr(said::differs), wrong);
  return out;
}

}  // namespace heddle::lab
