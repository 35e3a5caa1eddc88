#include "report/charts/bars.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "language/language.h"
#include "report/charts/axis.h"
#include "report/charts/chart.h"

namespace heddle::report {

namespace {

constexpr double kWidth = 1000, kHeight = 360;
constexpr double kLeft = 70, kRight = 20, kTop = 40, kBottom = 40;
constexpr std::size_t kColours = 8;

struct Scale {
  bool logarithmic = false;
  double low = 0, high = 1;  // of the values, or of their logarithms

  bool takes(double v) const { return std::isfinite(v) && (!logarithmic || v > 0); }
  double y(double v) const {
    const double share = ((logarithmic ? std::log10(v) : v) - low) / (high - low);
    return kHeight - kBottom - share * (kHeight - kBottom - kTop);
  }
  double ground() const { return logarithmic ? kHeight - kBottom : y(0); }
};

Scale scale_of(const Bars& bars) {
  Scale s;
  s.logarithmic = bars.log_y;
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const Bars::Series& series : bars.series)
    for (const double v : series.values) {
      if (!s.takes(v)) continue;
      low = std::min(low, bars.log_y ? std::log10(v) : v);
      high = std::max(high, bars.log_y ? std::log10(v) : v);
    }
  if (low > high) return s;
  // Bars begin at 0; of logarithms at the power of ten below the smallest, so that it has a length.
  s.low = bars.log_y ? std::ceil(low) - 1 : std::min(0.0, low * 1.12);
  s.high = bars.log_y ? std::floor(high) + 1 : std::max(0.0, high * 1.08);
  if (s.high <= s.low) s.high = s.low + 1;
  return s;
}

std::vector<double> levels(const Scale& s) {
  if (!s.logarithmic) return ticks(s.low, s.high, 5);
  std::vector<double> out;
  const double step = std::max(1.0, std::ceil((s.high - s.low) / 8));
  for (double e = s.low; e <= s.high; e += step) out.push_back(std::pow(10, e));
  return out;
}

std::string short_value(double v) {
  const double size = std::abs(v);
  if (v == 0) return "0";
  if (size >= 1e5 || size < 1e-3) return scientific(v, 1);
  return size >= 1e3 ? fmt::format("{:.0f}", v) : fmt::format("{:.4g}", v);
}

// Numbers that are wider than their bars stand on two levels, so that neighbours do not meet. A
// character takes 7 units.
double level_of(const std::string& text, double width, std::size_t series) {
  const auto wide =
      std::count_if(text.begin(), text.end(),
                    [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }) *
      7.0;
  return wide > width && series % 2 == 1 ? 16 : 0;
}

std::string bar_svg(const Scale& s, double x, double width, double value, std::size_t colour) {
  const double top = std::min(s.y(value), s.ground()), bottom = std::max(s.y(value), s.ground());
  const std::string text = short_value(value);
  const double level = level_of(text, width, colour);
  return fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
      "style=\"fill:var(--s{})\"/><text class=\"value\" x=\"{:.1f}\" y=\"{:.1f}\" "
      "text-anchor=\"middle\">{}</text>\n",
      x, top, width, std::max(1.0, bottom - top), colour % kColours, x + width / 2,
      value < 0 ? bottom + 14 + level : top - 5 - level, text);
}

std::string frame_svg(const Bars& bars, const Scale& s, double group_width) {
  std::string out = fmt::format("<text x=\"{}\" y=\"16\">{}</text>\n", kLeft,
                                escaped(axis_label(bars.y_label, bars.log_y)));
  const std::vector<double> heights = levels(s);
  const std::vector<std::string> texts = tick_texts(heights);
  for (std::size_t i = 0; i < heights.size(); ++i) {
    const double t = heights[i];
    out += fmt::format(
        "<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/><text x=\"{}\" "
        "y=\"{:.1f}\" text-anchor=\"end\" dominant-baseline=\"middle\">{}</text>\n",
        kLeft, kWidth - kRight, s.y(t), s.y(t), kLeft - 8, s.y(t), texts[i]);
  }
  for (std::size_t g = 0; g < bars.groups.size(); ++g)
    out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                       kLeft + (static_cast<double>(g) + 0.5) * group_width, kHeight - kBottom + 20,
                       escaped(bars.groups[g]));
  return out;
}

std::string legend(const Bars& bars) {
  std::string out = "<div class=\"legend\">";
  for (std::size_t i = 0; i < bars.series.size(); ++i)
    out += fmt::format("<span><i style=\"background:var(--s{})\"></i>{}</span>", i % kColours,
                       escaped(bars.series[i].name));
  return out + "</div>\n";
}

}  // namespace

Html bars(const Bars& bars) {
  if (bars.groups.empty() || bars.series.empty()) return paragraph(tr("Nothing was measured."));
  const Scale s = scale_of(bars);
  const double group_width = (kWidth - kLeft - kRight) / static_cast<double>(bars.groups.size());
  const double width = std::min(90.0, 0.8 * group_width / static_cast<double>(bars.series.size()));
  std::string out =
      fmt::format("<div class=\"scroll\"><svg class=\"bars\" viewBox=\"0 0 {} {}\" role=\"img\">\n",
                  kWidth, kHeight);
  out += frame_svg(bars, s, group_width);
  for (std::size_t i = 0; i < bars.series.size(); ++i)
    for (std::size_t g = 0; g < std::min(bars.groups.size(), bars.series[i].values.size()); ++g) {
      const double value = bars.series[i].values[g];
      const double middle = kLeft + (static_cast<double>(g) + 0.5) * group_width;
      const double x =
          middle + width * (static_cast<double>(i) - static_cast<double>(bars.series.size()) / 2);
      if (s.takes(value)) out += bar_svg(s, x + 1, width - 2, value, i);
    }
  out += "</svg></div>\n";
  return {out + (bars.series.size() > 1 ? legend(bars) : "")};
}

}  // namespace heddle::report
