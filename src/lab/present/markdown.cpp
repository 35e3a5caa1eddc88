// docs/lab.md.
#include <fmt/format.h>

#include "lab/present/documents.h"
#include "lab/present/present.h"
#include "lab/present/words.h"
#include "language/language.h"
#include "report/page/formula.h"

namespace heddle::lab {

namespace {

std::string verdict_of(const Outcome& o) {
  return o.problem.empty() ? words(*o.findings.measured_verdict()) : tr(said::failed);
}

// A pipe would end a cell, an asterisk or underscore begin a style.
std::string cell(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '|' || c == '*' || c == '_' || c == '<') out += '\\';
    out += c;
  }
  return out;
}

std::string table(std::span<const Outcome> outcomes) {
  std::string out = fmt::format("| {} | {} | {} |\n|---|---|---|\n", tr(said::experiment),
                                tr(said::verdict), tr(said::claim));
  for (const Outcome& o : outcomes)
    out += fmt::format("| [{}](#{}){} | {} | {} |\n", o.experiment->name, o.experiment->name,
                       o.experiment->slow ? tr(" ({})", tr(said::slow)) : "", verdict_of(o),
                       cell(tr(o.experiment->claim)));
  return out;
}

std::string experiment(const Outcome& o) {
  const Experiment& e = *o.experiment;
  const auto item = [&](const char* name, const std::string& text) {
    return fmt::format("- **{}**: {}\n", tr(name), cell(text));
  };
  std::string out =
      fmt::format("### {}\n\n**{}** {}\n\n", e.name, cell(tr(e.title)), cell(tr(e.claim)));
  if (!e.formula.empty()) out += item(said::formula, report::formula_text(e.formula));
  out += item(said::source, tr(e.source)) + item(said::method, tr(e.method)) +
         item(said::threshold, tr(e.threshold));
  out += item(said::verdict, verdict_of(o) + ": " + tr(e.because)) + "\n";
  if (!o.findings.numbers().empty()) {
    out += fmt::format("| {} | {} |\n|---|---:|\n", tr(said::quantity), tr(said::measured));
    for (const Findings::Number& n : o.findings.numbers())
      out += fmt::format("| {} | {} |\n", cell(n.label), measured_text(n));
    out += "\n";
  }
  for (const std::string& note : o.findings.notes()) out += cell(note) + "\n\n";
  return out;
}

}  // namespace

std::string outcomes_markdown(std::span<const Outcome> outcomes) {
  std::string out = "# " + tr(said::lab) + "\n\n";
  out += tr(said::about) + "\n\n" + tr(said::usage) + "\n\n";
  out += table(outcomes) + "\n## " + tr(said::documents_title) + "\n\n";
  for (const Document& d : documents())
    out += fmt::format("- **{}: {}**. {}\n", d.number, tr(d.title), cell(tr(d.about)));
  std::string topic;
  for (const Outcome& o : outcomes) {
    if (tr(o.experiment->topic) != topic) {
      topic = tr(o.experiment->topic);
      out += "\n## " + topic + "\n\n";
    }
    out += experiment(o);
  }
  return out;
}

}  // namespace heddle::lab
