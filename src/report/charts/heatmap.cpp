#include "report/charts/heatmap.h"
#include "base/divide.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace heddle::report {

namespace {

constexpr double kWidth = 1000, kTop = 46, kRight = 12, kBottom = 12;
constexpr double kLargestCell = 56;  // a small matrix is not blown up to the width of the page
constexpr std::size_t kNumberedColumns = 16, kNamedColumns = 40;
constexpr double kFullColour = 0.62;  // opacity at which black and white numbers stay readable

struct Layout {
  const HeatMap& map;
  std::size_t columns;
  double left, cell, height;
  double limit;

  double x(std::size_t column) const { return left + static_cast<double>(column) * cell; }
  double y(std::size_t row) const { return kTop + static_cast<double>(row) * height; }
};

double largest(const HeatMap& map) {
  double most = 0;
  for (const auto& row : map.values)
    for (const double v : row)
      if (std::isfinite(v)) most = std::max(most, std::abs(v));
  return most > 0 ? most : 1;
}

std::string shown(double value, int digits) {
  if (std::isnan(value)) return "";
  if (std::isinf(value)) return value < 0 ? "−∞" : "∞";
  const std::string text = fmt::format("{:.{}f}", value, digits);
  return text.starts_with('-') && text.find_first_not_of("-0.") == std::string::npos
             ? text.substr(1)
             : text;
}

// Room for the names of the rows and for what they are. A byte takes 7 units at most.
double room_on_the_left(const HeatMap& map) {
  std::size_t longest = std::max<std::size_t>(map.y_label.size(), 3);
  for (const std::string& name : map.rows) longest = std::max(longest, name.size());
  return 20 + 7 * static_cast<double>(std::min<std::size_t>(longest, 24));
}

std::string name_of(const std::vector<std::string>& names, std::size_t i) {
  return i < names.size() ? names[i] : fmt::format("{}", i);
}

std::string cell_svg(const Layout& l, std::size_t row, std::size_t column) {
  const double value = l.map.values[row][column];
  const bool number = std::isfinite(value);
  const double strength = number ? kFullColour * std::min(1.0, std::abs(value) / l.limit) : 0;
  std::string out = fmt::format(
      "<g><title>{}, {}: {}</title><rect class=\"cell\" x=\"{:.2f}\" y=\"{:.2f}\" "
      "width=\"{:.2f}\" height=\"{:.2f}\" style=\"fill:var(--s{});fill-opacity:{:.3f}\"/>",
      escaped(name_of(l.map.rows, row)), escaped(name_of(l.map.columns, column)),
      number ? fmt::format("{:.6g}", value) : shown(value, 0), l.x(column), l.y(row), l.cell,
      l.height, value < 0 ? 1 : 0, strength);
  if (l.columns <= kNumberedColumns)
    out += fmt::format(
        "<text class=\"value\" x=\"{:.2f}\" y=\"{:.2f}\" text-anchor=\"middle\" "
        "dominant-baseline=\"central\">{}</text>",
        l.x(column) + l.cell / 2, l.y(row) + l.height / 2, shown(value, l.map.digits));
  return out + "</g>\n";
}

std::string names_svg(const Layout& l) {
  std::string out =
      fmt::format("<text x=\"{:.1f}\" y=\"14\">{}</text><text x=\"4\" y=\"{:.1f}\">{}</text>\n",
                  l.left, escaped(l.map.x_label), kTop - 8, escaped(l.map.y_label));
  const std::size_t column_step = ceil_div(l.columns, kNamedColumns);
  for (std::size_t c = 0; c < l.columns; c += column_step)
    out += fmt::format("<text x=\"{:.2f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
                       l.x(c) + l.cell / 2, kTop - 8, escaped(name_of(l.map.columns, c)));
  const std::size_t row_step = ceil_div(l.map.values.size(), kNamedColumns);
  for (std::size_t r = 0; r < l.map.values.size(); r += row_step)
    out += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.2f}\" text-anchor=\"end\" "
        "dominant-baseline=\"central\">{}</text>\n",
        l.left - 8, l.y(r) + l.height / 2, escaped(name_of(l.map.rows, r)));
  return out;
}

}  // namespace

Html heat_map(const HeatMap& map) {
  std::size_t columns = 0;
  for (const auto& row : map.values) columns = std::max(columns, row.size());
  if (columns == 0) return paragraph("Nothing was measured.");
  const double left = room_on_the_left(map);
  const double cell =
      std::min(kLargestCell, (kWidth - left - kRight) / static_cast<double>(columns));
  const double limit = map.limit > 0 ? map.limit : largest(map);
  Layout l{map,  columns, left, cell, columns > kNumberedColumns ? cell : std::min(cell, 30.0),
           limit};
  const double width = l.x(columns) + kRight, height = l.y(map.values.size()) + kBottom;
  // A small map is as wide as it needs to be: two of them fit beside each other.
  std::string out = fmt::format(
      "<svg class=\"map\" viewBox=\"0 0 {:.1f} {:.1f}\" style=\"width:{:.0f}px\" role=\"img\">\n",
      width, height, width);
  out += names_svg(l);
  for (std::size_t r = 0; r < map.values.size(); ++r)
    for (std::size_t c = 0; c < map.values[r].size(); ++c) out += cell_svg(l, r, c);
  return {out + "</svg>\n"};
}

}  // namespace heddle::report
