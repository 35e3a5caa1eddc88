// Experiments on a terminal.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "lab/present.h"
#include "lab/words.h"

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

// A Chinese character takes two columns of a terminal and three bytes.
std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80 || (byte >= 0xC0 && byte < 0xE3)) columns += 1;  // also Greek, →, ≤ …
    if (byte >= 0xE3) columns += 2;
  }
  return columns;
}

std::string padded(const std::string& text, std::size_t columns) {
  const std::size_t own = columns_of(text);
  return own < columns ? text + std::string(columns - own, ' ') : text;
}

// No line begins with one of these, nor ends with an opening one.
constexpr std::string_view kClosing[] = {"，", "。", "、", "：", "；", "！", "？", "）",
                                         "」", "』", "》", "”",  "’",  "…",  ")",  " "};
constexpr std::string_view kOpening[] = {"（", "「", "『", "《"};

bool may_end_between(std::string_view before, std::string_view after) {
  return std::none_of(std::begin(kClosing), std::end(kClosing),
                      [&](std::string_view mark) { return after.starts_with(mark); }) &&
         std::none_of(std::begin(kOpening), std::end(kOpening),
                      [&](std::string_view mark) { return before.ends_with(mark); });
}

// Where a line may end: behind a space, and behind a Chinese character but for its punctuation.
std::string wrapped(const std::string& text, std::size_t indent) {
  std::string out, line;
  std::string word;
  const auto flush = [&] {
    if (indent + columns_of(line) + columns_of(word) > kColumns && !line.empty()) {
      while (line.ends_with(' ')) line.pop_back();
      out += line + "\n" + std::string(indent, ' ');
      line.clear();
    }
    line += word;
    word.clear();
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    word += text[i];
    const bool ends_character =
        i + 1 == text.size() || (static_cast<unsigned char>(text[i + 1]) & 0xC0U) != 0x80;
    const bool chinese = static_cast<unsigned char>(text[i]) >= 0x80 && ends_character &&
                         word.size() >= 3 &&
                         static_cast<unsigned char>(word[word.size() - 3]) >= 0xE3;
    const bool may_end = may_end_between(word, std::string_view(text).substr(i + 1));
    if (text[i] == ' ' || (chinese && may_end)) flush();
  }
  flush();
  return out + line;
}

std::string entry(const char* name, const std::string& text) {
  constexpr std::size_t kIndent = 13;
  return "  " + padded(tr(name), kIndent - 2) + wrapped(text, kIndent) + "\n";
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
  for (const std::string& note : outcome.findings.notes()) out += "    " + wrapped(note, 4) + "\n";
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
