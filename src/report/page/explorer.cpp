#include "report/page/explorer.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "heddle/error.h"
#include "language/language.h"
#include "report/charts/axis.h"
#include "report/charts/chart.h"
#include "report/page/explorer_files.h"

namespace heddle::report {

namespace {

using nlohmann::json;

std::vector<double> places_on(const Explorer::Axis& axis) {
  if (!axis.logarithmic) return ticks(axis.low, axis.high, 6);
  std::vector<double> out;
  for (double e = std::ceil(std::log10(axis.low) - 1e-9); e <= std::log10(axis.high) + 1e-9; ++e)
    out.push_back(std::pow(10.0, e));
  return out.size() >= 2 ? out : ticks(axis.low, axis.high, 6);
}

json axis_json(const Explorer::Axis& axis) {
  json marks = json::array();
  const std::vector<double> places = places_on(axis);
  const std::vector<std::string> texts = tick_texts(places);
  for (std::size_t i = 0; i < places.size(); ++i) marks.push_back({places[i], texts[i]});
  return {{"label", axis_label(axis.label, axis.logarithmic)},
          {"low", axis.low},
          {"high", axis.high},
          {"log", axis.logarithmic},
          {"marks", marks}};
}

void check_explorer(const Explorer& e) {
  const auto need = [&e](bool ok, const char* what, const char* expected) {
    if (!ok) fail(ErrorCode::invalid_argument, "explorer " + e.name, what, expected);
  };
  const auto in_order = [](double low, double high, bool logarithmic) {
    return std::isfinite(low) && std::isfinite(high) && low < high && (!logarithmic || low > 0);
  };
  need(!e.name.empty(), "name", "one that no other on the page has");
  need(e.slider.steps > 0, "steps of the slider", "1 or more");
  need(in_order(e.slider.low, e.slider.high, e.slider.logarithmic), "slider", "low < high");
  need(e.slider.start >= e.slider.low && e.slider.start <= e.slider.high, "start of the slider",
       "between low and high");
  need(in_order(e.x.low, e.x.high, e.x.logarithmic), "x axis", "low < high");
  need(in_order(e.y.low, e.y.high, e.y.logarithmic), "y axis", "low < high");
  need(!e.lines.empty(), "lines", "one or more");
}

json document_of(const Explorer& e) {
  json samples = json::array(), readings = json::array();
  for (const Explorer::Sample& s : e.measured) samples.push_back({s.at, s.line, s.x, s.y});
  for (const Explorer::Reading& r : e.readings)
    readings.push_back({{"label", r.label}, {"measured", r.measured}});
  return {{"name", e.name},
          {"law", e.law},
          {"numbers", e.numbers},
          {"slider",
           {{"low", e.slider.low},
            {"high", e.slider.high},
            {"start", e.slider.start},
            {"steps", e.slider.steps},
            {"log", e.slider.logarithmic},
            {"digits", e.slider.digits}}},
          {"x", axis_json(e.x)},
          {"y", axis_json(e.y)},
          {"lines", e.lines},
          {"measured", samples},
          {"readings", readings}};
}

}  // namespace

const char* explorer_script() { return kExplorerScript; }
const char* explorer_style() { return kExplorerStyle; }

Html explorer(const Explorer& e) {
  check_explorer(e);
  const std::string id = "explore-" + e.name;
  std::string out = fmt::format("<div class=\"explorer\" id=\"{}\" data-explorer=\"{}\">\n",
                                escaped(id), escaped(document_of(e).dump()));
  out += fmt::format(
      "<h3>{}</h3>\n<div class=\"slider\"><label for=\"{}-slider\">{}</label> "
      "<input type=\"range\" id=\"{}-slider\" min=\"0\" max=\"{}\" step=\"1\"> "
      "<output for=\"{}-slider\"></output></div>\n",
      escaped(e.title), escaped(id), escaped(e.slider.label), escaped(id), e.slider.steps,
      escaped(id));
  out +=
      "<div class=\"scroll\"><svg class=\"plot\" viewBox=\"0 0 1000 420\" role=\"img\" "
      "aria-label=\"" +
      escaped(e.title) + "\"></svg></div>\n<p class=\"readings\"></p>\n";
  out += "<p class=\"hint\">" + escaped(e.caption) + " " +
         escaped(e.law == "grid"
                     ? tr("All dots were measured in this run.")
                     : tr("Dots were measured in this run; lines are computed from its numbers.")) +
         "</p>\n";
  return {out + "</div>\n"};
}

}  // namespace heddle::report
