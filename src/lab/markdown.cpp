// docs/lab.md.
#include <fmt/format.h>

#include "lab/present.h"
#include "lab/words.h"

namespace heddle::lab {

namespace {

std::string verdict_of(const Outcome& o, Language language) {
  return o.problem.empty() ? words(*o.findings.measured_verdict()).in(language)
                           : said::failed.in(language);
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

std::string table(std::span<const Outcome> outcomes, Language language) {
  std::string out = fmt::format("| {} | {} | {} |\n|---|---|---|\n", said::experiment.in(language),
                                said::verdict.in(language), said::claim.in(language));
  for (const Outcome& o : outcomes)
    out += fmt::format("| [{}](#{}){} | {} | {} |\n", o.experiment->name, o.experiment->name,
                       o.experiment->slow ? " (" + said::slow.in(language) + ")" : "",
                       verdict_of(o, language), cell(o.experiment->claim.in(language)));
  return out;
}

std::string experiment(const Outcome& o, Language language) {
  const Experiment& e = *o.experiment;
  const auto item = [&](const Text& name, const std::string& text) {
    return fmt::format("- **{}**: {}\n", name.in(language), cell(text));
  };
  std::string out = fmt::format("### {}\n\n**{}** {}\n\n", e.name, cell(e.title.in(language)),
                                cell(e.claim.in(language)));
  out += item(said::source, e.source.in(language)) + item(said::method, e.method.in(language)) +
         item(said::threshold, e.threshold.in(language));
  out += item(said::verdict, verdict_of(o, language) + ": " + e.because.in(language)) + "\n";
  if (!o.findings.numbers().empty()) {
    out += fmt::format("| {} | {} |\n|---|---:|\n", said::quantity.in(language),
                       said::measured.in(language));
    for (const Findings::Number& n : o.findings.numbers())
      out += fmt::format("| {} | {}{} |\n", cell(n.label.in(language)), number_text(n.value),
                         n.unit.empty() ? "" : " " + n.unit);
    out += "\n";
  }
  for (const Text& note : o.findings.notes()) out += cell(note.in(language)) + "\n\n";
  return out;
}

}  // namespace

std::string outcomes_markdown(std::span<const Outcome> outcomes, Language language) {
  std::string out = "# " + said::lab.in(language) + "\n\n";
  out += said::about.in(language) + "\n\n" + said::usage.in(language) + "\n\n";
  out += table(outcomes, language) + "\n## " + said::documents_title.in(language) + "\n\n" +
         said::documents.in(language) + "\n";
  std::string topic;
  for (const Outcome& o : outcomes) {
    if (o.experiment->topic.in(language) != topic) {
      topic = o.experiment->topic.in(language);
      out += "\n## " + topic + "\n\n";
    }
    out += experiment(o, language);
  }
  return out;
}

}  // namespace heddle::lab
