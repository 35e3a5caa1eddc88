// The lab's page: what was found on top, then each experiment with its numbers and its picture.
#include <fmt/format.h>

#include "lab/present.h"
#include "lab/words.h"
#include "report/html.h"

namespace heddle::lab {

namespace {

using report::escaped;
using report::Html;

constexpr std::string_view kStyle = R"css(
:root { --holds: #2a8050; --conditional: #96650a; --refuted: #b3303c; }
@media (prefers-color-scheme: dark) {
  :root { --holds: #6cc794; --conditional: #dcb659; --refuted: #f2858e; }
}
.badge { display: inline-block; border: 1px solid currentColor; border-radius: 999px;
  padding: 0 .6em; font-size: .8rem; font-weight: 600; white-space: nowrap; }
.badge.holds { color: var(--holds); }
.badge.conditional { color: var(--conditional); }
.badge.refuted { color: var(--refuted); }
.badge.wrong { background: var(--refuted); color: var(--card); border-color: var(--refuted); }
.contents { columns: 2; column-gap: 2.2rem; }
.contents div { break-inside: avoid; margin-bottom: .9rem; }
.contents h3 { margin: 0 0 .25rem; font-size: .88rem; color: var(--soft); font-weight: 600; }
.contents ul { list-style: none; margin: 0; padding: 0; }
.contents li { display: flex; gap: .6rem; align-items: baseline; padding: .1rem 0; }
.contents li .badge { flex: none; min-width: 6.2em; text-align: center; }
.contents a { color: inherit; text-decoration-color: var(--line); text-underline-offset: .2em; }
h2 .name { font-family: ui-monospace, "Cascadia Mono", Menlo, monospace; font-size: .85em;
  color: var(--soft); font-weight: 500; margin-left: .5em; }
.head { display: flex; gap: 1rem; justify-content: space-between; align-items: baseline; }
.claim { font-size: 1.06rem; border-left: 3px solid var(--s0); padding-left: .9rem; margin: 0 0 .9rem; }
dl.about { display: grid; grid-template-columns: max-content 1fr; gap: .35rem 1.1rem; margin: 0 0 1rem; }
dl.about dt { color: var(--soft); font-size: .88rem; padding-top: .1rem; }
dl.about dd { margin: 0; }
.figures { display: flex; flex-wrap: wrap; gap: 0 2rem; align-items: flex-start; }
figure { margin: 1.1rem 0; flex: 1 1 100%; }
figure:has(svg.map) { flex: 0 1 auto; }
figure:has(svg.map) figcaption { max-width: 26rem; }
figcaption { color: var(--soft); font-size: .9rem; margin-top: .4rem; }
.checks .yes { color: var(--holds); } .checks .no { color: var(--refuted); }
.checks :is(td, th):not(:first-child), .numbers :is(td, th):not(:first-child) { text-align: right; white-space: nowrap; }
.because { margin: .9rem 0 0; }
code { font-family: ui-monospace, "Cascadia Mono", Menlo, monospace; font-size: .82rem;
  color: var(--soft); }
@media (max-width: 720px) { .contents { columns: 1; } dl.about { grid-template-columns: 1fr; } }
)css";

std::string badge(const Outcome& o) {
  if (!o.problem.empty())
    return "<span class=\"badge wrong\">" + escaped(tr(said::failed)) + "</span>";
  const Verdict verdict = *o.findings.measured_verdict();
  return fmt::format("<span class=\"badge {}{}\">{}</span>", to_string(verdict),
                     o.pass() ? "" : " wrong", escaped(words(verdict)));
}

Html contents(std::span<const Outcome> outcomes) {
  std::string out = "<section><div class=\"contents\">\n", topic;
  for (const Outcome& o : outcomes) {
    const Experiment& e = *o.experiment;
    if (tr(e.topic) != topic) {
      if (!topic.empty()) out += "</ul></div>\n";
      topic = tr(e.topic);
      out += "<div><h3>" + escaped(topic) + "</h3><ul>\n";
    }
    out += fmt::format("<li>{}<a href=\"#{}\">{}</a></li>\n", badge(o), escaped(e.name),
                       escaped(tr(e.title)));
  }
  return {out + (topic.empty() ? "" : "</ul></div>\n") + "</div></section>\n"};
}

std::string row(const char* name, const std::string& text) {
  return "<dt>" + escaped(tr(name)) + "</dt><dd>" + escaped(text) + "</dd>\n";
}

std::string numbers_table(const Findings& findings) {
  if (findings.numbers().empty()) return {};
  std::string out = "<div class=\"scroll\"><table class=\"numbers\"><thead><tr>";
  for (const char* t : {said::quantity, said::measured, said::key})
    out += "<th>" + escaped(tr(t)) + "</th>";
  out += "</tr></thead><tbody>\n";
  for (const Findings::Number& n : findings.numbers())
    out += fmt::format("<tr><td>{}</td><td>{}{}</td><td><code>{}</code></td></tr>\n",
                       escaped(n.label), number_text(n.value),
                       n.unit.empty() ? "" : " " + escaped(n.unit), escaped(n.key));
  return out + "</tbody></table></div>\n";
}

std::string checks_table(const Findings& findings) {
  if (findings.checks().empty()) return {};
  std::string out = "<div class=\"scroll\"><table class=\"checks\"><thead><tr>";
  for (const char* t : {said::condition, said::measured, said::required, said::met})
    out += "<th>" + escaped(tr(t)) + "</th>";
  out += "</tr></thead><tbody>\n";
  for (const Findings::Check& c : findings.checks())
    out += fmt::format("<tr><td>{}</td><td>{}</td><td>{} {}</td><td class=\"{}\">{}</td></tr>\n",
                       escaped(c.what), number_text(c.value), escaped(symbol(c.relation)),
                       number_text(c.bound), c.satisfied ? "yes" : "no",
                       escaped(tr(c.satisfied ? said::yes : said::no)));
  return out + "</tbody></table></div>\n";
}

Html experiment_section(const Outcome& o) {
  const Experiment& e = *o.experiment;
  std::string out = fmt::format(
      "<section id=\"{}\">\n<div class=\"head\"><h2>{}<span "
      "class=\"name\">{}</span></h2>{}</div>\n",
      escaped(e.name), escaped(tr(e.title)), escaped(e.name), badge(o));
  out += "<p class=\"claim\">" + escaped(tr(e.claim)) + "</p>\n<dl class=\"about\">\n";
  if (const std::string& name = o.findings.planted(); !name.empty())
    out += row(said::planted, name + ": " + tr(fault_of(e, name).what));
  out += row(said::source, tr(e.source));
  out += row(said::method, tr(e.method));
  out += row(said::threshold, tr(e.threshold)) + "</dl>\n";
  out += numbers_table(o.findings);
  for (const std::string& note : o.findings.notes()) out += report::paragraph(note).text;
  out += "<div class=\"figures\">\n";
  for (const Findings::Figure& f : o.findings.figures())
    out += "<figure>" + f.drawing.text + "<figcaption>" + escaped(f.caption) +
           "</figcaption></figure>\n";
  out += "</div>\n";
  out += checks_table(o.findings);
  out += "<p class=\"because\">" + badge(o) + " ";
  if (!o.problem.empty())
    out += escaped(o.problem);
  else if (o.pass())
    out += escaped(tr(e.because));
  else
    out += escaped(tr(said::differs) + " (" + words(e.expected) + ")");
  return {out + "</p>\n</section>\n"};
}

}  // namespace

std::string outcomes_page(std::span<const Outcome> outcomes) {
  report::Page page(tr(said::lab), tr(said::about));
  page.add_style(kStyle);
  page.add(contents(outcomes));
  for (const Outcome& o : outcomes) page.add(experiment_section(o));
  page.add(report::section(tr(said::documents_title), report::paragraph(tr(said::documents))));
  return page.html();
}

}  // namespace heddle::lab
