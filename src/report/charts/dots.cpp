#include "report/charts/dots.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "language/language.h"
#include "report/charts/axis.h"
#include "report/charts/chart.h"
#include "report/charts/stacked_bars.h"

namespace heddle::report {

namespace {

constexpr double kDotsWidth = 1000, kDotsRow = 30, kDotsBottom = 44;
constexpr double kDotsLeft = 260, kDotsRight = 30;  // names stand on the left
constexpr std::size_t kDotsColours = 8;

struct DotScale {
  double low = std::numeric_limits<double>::infinity(), high = -low;

  void take(double v) {
    if (!std::isfinite(v)) return;
    low = std::min(low, v);
    high = std::max(high, v);
  }
  double at(double v) const {
    return kDotsLeft + (v - low) / (high - low) * (kDotsWidth - kDotsLeft - kDotsRight);
  }
};

std::vector<double> finite_values(const DotRow& row) {
  std::vector<double> kept;
  std::ranges::copy_if(row.values, std::back_inserter(kept),
                       [](double v) { return std::isfinite(v); });
  return kept;
}

double mean_value(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return sum / static_cast<double>(values.size());
}

DotScale scale_of(const DotRows& rows) {
  DotScale s;
  for (const DotRow& row : rows.rows) {
    const std::vector<double> values = finite_values(row);
    for (const double v : values) s.take(v);
    if (values.empty() || !row.interval) continue;
    s.take(mean_value(values) - *row.interval);
    s.take(mean_value(values) + *row.interval);
  }
  const double room =
      s.high > s.low ? 0.04 * (s.high - s.low) : std::max(1e-3, 0.05 * std::abs(s.low));
  s.low -= room;
  s.high += room;
  return s;
}

std::string row_svg(const DotRow& row, const DotScale& s, double middle, std::size_t colour) {
  std::string svg = fmt::format(
      "<text x=\"{}\" y=\"{}\" text-anchor=\"end\" dominant-baseline=\"middle\">{}</text>\n",
      kDotsLeft - 12, middle, escaped(shortened_name(row.name)));
  const std::vector<double> values = finite_values(row);
  if (values.empty())
    return svg + fmt::format("<text x=\"{}\" y=\"{}\" dominant-baseline=\"middle\">{}</text>\n",
                             kDotsLeft, middle, escaped(row.instead));
  const double mean = mean_value(values);
  svg += fmt::format("<g style=\"fill:var(--s{0});stroke:var(--s{0})\">", colour % kDotsColours);
  if (row.interval)
    svg += fmt::format(
        "<rect class=\"interval\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"10\"/>",
        s.at(mean - *row.interval), middle - 5,
        s.at(mean + *row.interval) - s.at(mean - *row.interval));
  svg += fmt::format("<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\"/>",
                     s.at(mean), middle - 10, middle + 10);
  for (const double v : values)
    svg += fmt::format("<circle r=\"4\" cx=\"{:.1f}\" cy=\"{:.1f}\"><title>{:.4f}</title></circle>",
                       s.at(v), middle, v);
  return svg + "</g>\n";
}

}  // namespace

Html dot_rows(const DotRows& rows) {
  const bool any =
      std::ranges::any_of(rows.rows, [](const DotRow& r) { return !finite_values(r).empty(); });
  if (!any) return paragraph(tr("Nothing was measured."));
  const DotScale s = scale_of(rows);
  const double bottom = kDotsRow * static_cast<double>(rows.rows.size());
  std::string out = fmt::format(
      "<div class=\"scroll\"><svg class=\"bars dots\" viewBox=\"0 0 {} {}\" role=\"img\">\n",
      kDotsWidth, bottom + kDotsBottom);
  const std::vector<double> places = ticks(s.low, s.high, 6);
  const std::vector<std::string> texts = tick_texts(places);
  for (std::size_t i = 0; i < places.size(); ++i)
    out += fmt::format(
        "<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"0\" y2=\"{1}\"/><text "
        "x=\"{0:.1f}\" y=\"{2}\" text-anchor=\"middle\">{3}</text>\n",
        s.at(places[i]), bottom, bottom + 16, texts[i]);
  out += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                     (kDotsLeft + kDotsWidth - kDotsRight) / 2, bottom + 36, escaped(rows.label));
  for (std::size_t i = 0; i < rows.rows.size(); ++i)
    out += row_svg(rows.rows[i], s, kDotsRow * (static_cast<double>(i) + 0.5), i);
  return {out + "</svg></div>\n"};
}

}  // namespace heddle::report
