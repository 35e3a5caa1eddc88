#include "report/charts/stacked_bars.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "language/language.h"
#include "language/layout.h"

namespace heddle::report {

namespace {

constexpr double kWidth = 1000, kRow = 30, kBar = 18;
constexpr double kNames = 260, kSums = 110;  // room for the names and for the sums
constexpr std::size_t kColours = 8;
constexpr std::size_t kLongestName = 40;

double sum_of(const StackedBar& bar) {
  return std::accumulate(bar.parts.begin(), bar.parts.end(), 0.0);
}

std::string draw(const StackedBar& bar, const StackedBars& chart, double top, double scale) {
  const double middle = top + kRow / 2;
  std::string svg = fmt::format(
      "<text x=\"{}\" y=\"{}\" text-anchor=\"end\" dominant-baseline=\"middle\">{}</text>\n",
      kNames - 12, middle, escaped(shortened_name(bar.name)));
  double x = kNames;
  for (std::size_t i = 0; i < bar.parts.size(); ++i) {
    const double width = bar.parts[i] * scale;
    const std::string part = i < chart.parts.size() ? chart.parts[i] + ": " : "";
    svg += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" style=\"fill:var(--s{})\">"
        "<title>{}</title></rect>\n",
        x, middle - kBar / 2, width, kBar, i % kColours, escaped(part + chart.text(bar.parts[i])));
    x += width;
  }
  return svg + fmt::format("<text x=\"{:.1f}\" y=\"{}\" dominant-baseline=\"middle\">{}</text>\n",
                           x + 8, middle, escaped(chart.text(sum_of(bar))));
}

}  // namespace

std::string shortened_name(const std::string& name) {
  return columns_of(name) <= kLongestName ? name
                                          : std::string(cut_to(name, kLongestName - 1)) + "…";
}

Html stacked_bars(const StackedBars& chart) {
  double most = 0;
  for (const StackedBar& bar : chart.bars) most = std::max(most, sum_of(bar));
  if (!(most > 0) || !std::isfinite(most)) return paragraph(tr("Nothing was measured."));
  const double scale = (kWidth - kNames - kSums) / most;
  std::string out =
      fmt::format("<div class=\"scroll\"><svg class=\"bars\" viewBox=\"0 0 {} {}\" role=\"img\">\n",
                  kWidth, kRow * static_cast<double>(chart.bars.size()));
  for (std::size_t i = 0; i < chart.bars.size(); ++i)
    out += draw(chart.bars[i], chart, kRow * static_cast<double>(i), scale);
  out += "</svg></div>\n";
  if (chart.parts.size() < 2) return {out};
  out += "<div class=\"legend\">";
  for (std::size_t i = 0; i < chart.parts.size(); ++i)
    out += fmt::format("<span><i style=\"background:var(--s{})\"></i>{}</span>", i % kColours,
                       escaped(chart.parts[i]));
  return {out + "</div>\n"};
}

}  // namespace heddle::report
