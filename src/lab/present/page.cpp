// The lab's page: what was found on top, then each experiment with its numbers and its picture.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "lab/present/documents.h"
#include "lab/present/page_files.h"
#include "lab/present/present.h"
#include "lab/present/words.h"
#include "language/language.h"
#include "report/page/explorer.h"
#include "report/page/formula.h"
#include "report/page/html.h"

namespace heddle::lab {

namespace {

using report::escaped;
using report::Html;

// Letters with an index, as texts have them: W_q, h_{t−1}. The base is one letter or Greek, so that
// names such as look_back stay what they are.
std::string with_indices(const std::string& text) {
  std::string out;
  const auto is_letter = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           static_cast<unsigned char>(c) >= 0x80;
  };
  // Bytes of the character before `at`, and whether another letter stands before that.
  const auto base_is_one = [&](std::size_t at) {
    std::size_t first = at;
    while (first > 0 && (static_cast<unsigned char>(text[first - 1]) & 0xC0U) == 0x80U) --first;
    if (first == 0 || !is_letter(text[first - 1])) return false;
    --first;
    return first == 0 || std::isalnum(static_cast<unsigned char>(text[first - 1])) == 0;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_' || !base_is_one(i) || i + 1 == text.size()) {
      out += report::escaped(text.substr(i, 1));
      continue;
    }
    std::size_t end = i + 1;
    const bool group = text[end] == '{';
    if (group)
      end = text.find('}', end);
    else
      while (end < text.size() && std::isalnum(static_cast<unsigned char>(text[end])) != 0) ++end;
    if (end == std::string::npos || end == i + 1) {
      out += '_';
      continue;
    }
    const std::size_t first = i + 1 + (group ? 1 : 0);
    out += "<sub>" + report::escaped(text.substr(first, end - first)) + "</sub>";
    i = group ? end : end - 1;
  }
  return out;
}

std::string badge(const Outcome& o) {
  if (!o.problem.empty())
    return "<span class=\"badge wrong\">" + escaped(tr(said::failed)) + "</span>";
  const Verdict verdict = *o.findings.measured_verdict();
  return fmt::format("<span class=\"badge {}{}\">{}</span>", to_string(verdict),
                     o.pass() ? "" : " wrong", escaped(words(verdict)));
}

std::string dot(const Outcome& o) {
  const std::string verdict =
      o.problem.empty() ? std::string(to_string(*o.findings.measured_verdict())) : "refuted";
  const std::string words_of =
      o.problem.empty() ? words(*o.findings.measured_verdict()) : tr(said::failed);
  return fmt::format("<span class=\"dot {}{}\" role=\"img\" aria-label=\"{}\"></span>", verdict,
                     o.pass() ? "" : " wrong", escaped(words_of));
}

std::string verdict_key() {
  std::string out = "<p class=\"key\">";
  for (const Verdict v : {Verdict::holds, Verdict::conditional, Verdict::refuted})
    out += fmt::format("<span><span class=\"dot {}\"></span>{}</span>", to_string(v),
                       escaped(words(v)));
  return out + "</p>\n";
}

std::string index_of(std::span<const Outcome> outcomes) {
  std::string out = "<nav class=\"index\"><details open><summary>" + escaped(tr(said::index)) +
                    "</summary>\n" + verdict_key(),
              topic;
  for (const Outcome& o : outcomes) {
    const Experiment& e = *o.experiment;
    if (tr(e.topic) != topic) {
      if (!topic.empty()) out += "</ul>\n";
      topic = tr(e.topic);
      out += "<h3>" + escaped(topic) + "</h3><ul>\n";
    }
    out += fmt::format("<li><a href=\"#{}\">{}<span>{}</span></a></li>\n", escaped(e.name), dot(o),
                       with_indices(tr(e.title)));
  }
  out += topic.empty() ? "" : "</ul>\n";
  out +=
      fmt::format("<h3><a href=\"#documents\">{}</a></h3>\n", escaped(tr(said::documents_title)));
  return out + "</details></nav>\n";
}

std::string row(const char* name, const std::string& text) {
  return "<dt>" + escaped(tr(name)) + "</dt><dd>" + with_indices(text) + "</dd>\n";
}

std::string numbers_table(const Findings& findings) {
  if (findings.numbers().empty()) return {};
  std::string out = "<div class=\"scroll\"><table class=\"numbers\"><thead><tr>";
  for (const char* t : {said::quantity, said::measured, said::key})
    out += "<th>" + escaped(tr(t)) + "</th>";
  out += "</tr></thead><tbody>\n";
  for (const Findings::Number& n : findings.numbers())
    out += fmt::format("<tr><td>{}</td><td>{}</td><td><code>{}</code></td></tr>\n",
                       with_indices(n.label), escaped(measured_text(n)), escaped(n.key));
  return out + "</tbody></table></div>\n";
}

using Check = Findings::Check;

// Rows of conditions; what they say of the claim stands in the last column, where they say
// anything.
std::string checks_table(const std::vector<Check>& checks, bool of_claim) {
  std::string out = "<div class=\"scroll\"><table class=\"checks\"><thead><tr>";
  for (const char* t :
       {said::condition, said::measured, said::required, of_claim ? said::says : said::met})
    out += "<th>" + escaped(tr(t)) + "</th>";
  out += "</tr></thead><tbody>\n";
  for (const Check& c : checks) {
    const char* kind = !of_claim ? "met" : c.contradicts() ? "contradicts" : "supports";
    const std::string says = !of_claim         ? (c.satisfied ? tr(said::yes) : tr(said::no))
                             : c.contradicts() ? "✗ " + tr(said::contradicts)
                                               : "✓ " + tr(said::supports);
    out += fmt::format("<tr><td>{}</td><td>{}</td><td>{} {}</td><td class=\"{}\">{}</td></tr>\n",
                       with_indices(c.what), number_text(c.value), escaped(symbol(c.relation)),
                       number_text(c.bound), kind, escaped(says));
  }
  return out + "</tbody></table></div>\n";
}

// Conditions that show the measurement to be sound stand apart from those that decide: a sound one
// may well refute a claim.
std::string checks_html(const Findings& findings) {
  std::vector<Check> of_claim, controls;
  for (const Check& c : findings.checks())
    (c.role == Findings::Role::control ? controls : of_claim).push_back(c);
  std::string out;
  if (!of_claim.empty())
    out += "<h3 class=\"tests\">" + escaped(tr(said::of_claim)) + "</h3>\n" +
           checks_table(of_claim, true);
  if (!controls.empty())
    out += "<h3 class=\"tests\">" + escaped(tr(said::of_measurement)) + "</h3>\n<p>" +
           escaped(tr(said::controls)) + "</p>\n" + checks_table(controls, false);
  return out;
}

Html experiment_section(const Outcome& o) {
  const Experiment& e = *o.experiment;
  std::string out = fmt::format(
      "<section id=\"{}\">\n<div class=\"head\"><h2>{}<span "
      "class=\"name\">{}</span></h2>{}</div>\n",
      escaped(e.name), with_indices(tr(e.title)), escaped(e.name), badge(o));
  out += "<p class=\"claim\">" + with_indices(tr(e.claim)) + "</p>\n";
  if (!e.formula.empty()) out += report::formula(e.formula).text;
  out += "<dl class=\"about\">\n";
  if (const std::string& name = o.findings.planted(); !name.empty())
    out += row(said::planted, name + ": " + tr(fault_of(e, name).what));
  out += row(said::source, tr(e.source));
  out += row(said::method, tr(e.method));
  out += row(said::threshold, tr(e.threshold)) + "</dl>\n";
  out += numbers_table(o.findings);
  for (const std::string& note : o.findings.notes()) out += "<p>" + with_indices(note) + "</p>\n";
  out += "<div class=\"figures\">\n";
  for (const Findings::Figure& f : o.findings.figures())
    out += "<figure>" + f.drawing.text + "<figcaption>" + with_indices(f.caption) +
           "</figcaption></figure>\n";
  out += "</div>\n";
  for (const report::Explorer& x : o.findings.explorers()) out += report::explorer(x).text;
  out += checks_html(o.findings);
  out += "<p class=\"because\">" + badge(o) + " ";
  if (!o.problem.empty())
    out += escaped(o.problem);
  else if (o.pass())
    out += with_indices(tr(e.because));
  else
    out += escaped(tr(said::differs) + " (" + words(e.expected) + ")");
  return {out + "</p>\n</section>\n"};
}

// Each document with the claims of it that were put to the test here.
std::string documents_section(std::span<const Outcome> outcomes) {
  std::string out = "<section id=\"documents\" class=\"document\">\n<h2>" +
                    escaped(tr(said::documents_title)) + "</h2>\n";
  for (const Document& d : documents()) {
    out += fmt::format("<h3 id=\"document-{}\">{}: {}</h3>\n<p>{}</p>\n", d.number, d.number,
                       escaped(tr(d.title)), escaped(tr(d.about)));
    std::string claims;
    for (const Outcome& o : outcomes) {
      const std::vector<std::string> named = documents_of(*o.experiment);
      if (std::find(named.begin(), named.end(), d.number) == named.end()) continue;
      claims += fmt::format("<li>{} <a href=\"#{}\">{}</a></li>\n", badge(o),
                            escaped(o.experiment->name), with_indices(tr(o.experiment->title)));
    }
    if (!claims.empty()) out += "<ul>\n" + claims + "</ul>\n";
  }
  return out + "</section>\n";
}

}  // namespace

std::string outcomes_page(std::span<const Outcome> outcomes) {
  report::Page page(tr(said::lab), tr(said::about));
  page.add_style(kLabStyle);
  page.add_style(report::explorer_style());
  page.add({"<div class=\"lab\" id=\"top\">\n" + index_of(outcomes) + "<div class=\"body\">\n"});
  for (const Outcome& o : outcomes) page.add(experiment_section(o));
  page.add({documents_section(outcomes) + "</div></div>\n<a class=\"to-top\" href=\"#\" hidden>↑ " +
            escaped(tr(said::to_top)) + "</a>\n"});
  page.add_script(report::explorer_script());
  page.add_script(kLabScript);
  return page.html();
}

}  // namespace heddle::lab
