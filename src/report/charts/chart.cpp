#include "report/charts/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "language/language.h"
#include "language/layout.h"
#include "report/charts/axis.h"
#include "report/charts/smooth.h"

namespace heddle::report {

namespace {

constexpr double kWidth = 1000, kHeight = 420;
constexpr double kLeft = 70, kRight = 20, kTop = 28, kBottom = 48;
constexpr std::size_t kMostPoints = 500;
constexpr std::size_t kMostDots = 40;  // series with so few points show them
constexpr std::size_t kColours = 8;
constexpr double kMostPowers = 8;                    // of ten that have a line
constexpr double kTickWidth = 55, kTickHeight = 22;  // units that a number beside an axis needs

// One axis: values to units of the drawing.
struct Axis {
  double low = 0, high = 1;  // of the values, or of their logarithms
  bool logarithmic = false;
  double from = 0, to = 1;                                // units
  double most = std::numeric_limits<double>::infinity();  // of the values; higher ones are left out

  double value(double v) const { return logarithmic ? std::log10(v) : v; }
  double at(double v) const { return from + (value(v) - low) / (high - low) * (to - from); }
  bool takes(double v) const { return std::isfinite(v) && v <= most && (!logarithmic || v > 0); }
};

// Room above and below what is drawn; beside it only where that is asked for.
Axis axis_over(const std::vector<double>& values, bool logarithmic, double from, double to,
               bool room_at_ends = false, double most = std::numeric_limits<double>::infinity()) {
  Axis axis{0, 1, logarithmic, from, to, most};
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const double v : values) {
    if (!axis.takes(v)) continue;
    low = std::min(low, axis.value(v));
    high = std::max(high, axis.value(v));
  }
  if (low > high) return axis;
  const double room = high > low ? 0.04 * (high - low) : std::max(0.5, std::abs(low) * 0.1);
  const bool vertical = from > to;
  axis.low = low - (vertical || room_at_ends ? room : 0);
  axis.high = high + (vertical || room_at_ends || high == low ? room : 0);
  return axis;
}

std::vector<double> ticks_of(const Axis& axis, int wanted) {
  if (!axis.logarithmic) return ticks(axis.low, axis.high, wanted);
  std::vector<double> out;
  const double step = std::max(1.0, std::ceil((axis.high - axis.low) / kMostPowers));
  for (double e = std::ceil(axis.low); e <= axis.high; e += step) out.push_back(std::pow(10, e));
  if (out.size() >= 2) return out;
  out.clear();
  // Round numbers lie closer to each other the larger they are: some have no room for their text.
  const double room = axis.from < axis.to ? kTickWidth : kTickHeight;
  for (const double t : ticks(std::pow(10, axis.low), std::pow(10, axis.high), wanted))
    if (t > 0 && (out.empty() || std::abs(axis.at(t) - axis.at(out.back())) >= room))
      out.push_back(t);
  return out;
}

std::vector<Point> thinned(const std::vector<Point>& points, const Axis& x, const Axis& y) {
  std::vector<Point> kept;
  kept.reserve(points.size());
  for (const Point& p : points)
    if (x.takes(p.x) && y.takes(p.y)) kept.push_back(p);
  return means_of_neighbours(kept, kMostPoints);
}

constexpr double kNameWidth = 7;  // units of a letter, about

struct Box {
  double left = 0, top = 0, right = 0, bottom = 0;

  bool meets(const Box& o) const {
    return left < o.right && o.left < right && top < o.bottom && o.top < bottom;
  }
};

struct Drawing {
  const LineChart& chart;
  Axis x, y;
  std::string svg;
  std::string data;  // what the page's script reads

  void grid() {
    const std::vector<double> levels = ticks_of(y, 6), places = ticks_of(x, 9);
    const std::vector<std::string> level_texts = tick_texts(levels),
                                   place_texts = tick_texts(places);
    for (std::size_t i = 0; i < levels.size(); ++i) {
      const double t = levels[i];
      svg += fmt::format(
          "<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>"
          "<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\" "
          "dominant-baseline=\"middle\">{}</text>\n",
          kLeft, kWidth - kRight, y.at(t), y.at(t), kLeft - 8, y.at(t), level_texts[i]);
    }
    for (std::size_t i = 0; i < places.size(); ++i)
      svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                         x.at(places[i]), kHeight - kBottom + 18, place_texts[i]);
    svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                       (kLeft + kWidth - kRight) / 2, kHeight - 8,
                       escaped(axis_label(chart.x_label, x.logarithmic)));
    svg += fmt::format("<text x=\"{}\" y=\"16\">{}</text>\n", kLeft,
                       escaped(axis_label(chart.y_label, y.logarithmic)));
  }

  void band(const Series& s, std::size_t colour) {
    std::string there, back;
    for (const Range& r : s.band) {
      const double high = std::min(r.high, y.most);
      if (!x.takes(r.x) || !y.takes(r.low) || !y.takes(high)) continue;
      there += fmt::format("{:.1f},{:.1f} ", x.at(r.x), y.at(high));
      back.insert(0, fmt::format("{:.1f},{:.1f} ", x.at(r.x), y.at(r.low)));
    }
    if (!there.empty())
      svg += fmt::format("<polygon class=\"band\" style=\"fill:var(--s{})\" points=\"{}{}\"/>\n",
                         colour % kColours, there, back);
  }

  // Points with their names; false where a name found no room, so that a legend has to tell it.
  bool named() {
    std::vector<Box> taken;
    for (const Series& s : chart.series)
      for (const Point& p : s.points)
        if (x.takes(p.x) && y.takes(p.y))
          taken.push_back({x.at(p.x) - 6, y.at(p.y) - 6, x.at(p.x) + 6, y.at(p.y) + 6});
    bool all = true;
    for (std::size_t i = 0; i < chart.series.size(); ++i)
      for (const Point& p : chart.series[i].points) {
        if (!x.takes(p.x) || !y.takes(p.y)) continue;
        svg +=
            fmt::format("<circle r=\"5\" cx=\"{:.1f}\" cy=\"{:.1f}\" style=\"fill:var(--s{})\"/>",
                        x.at(p.x), y.at(p.y), i % kColours);
        all = name_beside(x.at(p.x), y.at(p.y), chart.series[i].name, taken) && all;
        svg += "\n";
      }
    return all;
  }

  // Beside the point, on the left of those in the right half, or else wherever the name meets
  // neither a point nor another name.
  bool name_beside(double at, double level, const std::string& name, std::vector<Box>& taken) {
    const double width = kNameWidth * static_cast<double>(columns_of(name));
    const double side = at > (kLeft + kWidth - kRight) / 2 ? -1 : 1;
    for (const auto& [towards, down] : {std::pair(side, 0.0),
                                        {-side, 0.0},
                                        {side, -14.0},
                                        {side, 14.0},
                                        {-side, -14.0},
                                        {-side, 14.0}}) {
      const double from = towards > 0 ? at + 10 : at - 10 - width;
      const Box box{from, level + down - 7, from + width, level + down + 7};
      const auto meets = [&box](const Box& other) { return box.meets(other); };
      if (box.left < kLeft || box.right > kWidth || box.top < 0 || box.bottom > kHeight - kBottom ||
          std::ranges::any_of(taken, meets))
        continue;
      svg += fmt::format(
          "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" "
          "dominant-baseline=\"middle\">{}</text>",
          at + 10 * towards, level + down, towards > 0 ? "start" : "end", escaped(name));
      taken.push_back(box);
      return true;
    }
    return false;
  }

  void line(const Series& s, std::size_t colour) {
    std::string points, numbers, dots;
    const std::vector<Point> drawn = thinned(s.points, x, y);
    for (const Point& p : drawn) {
      if (drawn.size() <= kMostDots && !s.thin)
        dots += fmt::format("<circle r=\"3\" cx=\"{:.1f}\" cy=\"{:.1f}\"/>", x.at(p.x), y.at(p.y));
      points += fmt::format("{:.1f},{:.1f} ", x.at(p.x), y.at(p.y));
      numbers +=
          fmt::format("{}[{:.6g},{:.6g},{:.1f}]", numbers.empty() ? "" : ",", p.x, p.y, x.at(p.x));
    }
    svg += fmt::format("<polyline class=\"line{}\" style=\"stroke:var(--s{})\" points=\"{}\"/>\n",
                       s.thin ? " thin" : "", colour % kColours, points);
    if (!dots.empty())
      svg += fmt::format("<g style=\"fill:var(--s{})\">{}</g>\n", colour % kColours, dots);
    data += fmt::format("{}{{\"name\":\"{}\",\"points\":[{}]}}", data.empty() ? "" : ",",
                        json_text(s.name), numbers);
  }

  // A mark at the upper edge; one below the other where several lines leave.
  void leaving(const Series& s, std::size_t colour, std::size_t row) {
    const double at = std::clamp(x.at(s.leaves->x), kLeft, kWidth - kRight);
    const bool right = at > (kLeft + kWidth - kRight) / 2;
    const double line = kTop + 12 + 17 * static_cast<double>(row);
    svg += fmt::format(
        "<g style=\"fill:var(--s{})\"><path d=\"M{:.1f} {} l-7 12 h14 z\"/></g>"
        "<text class=\"leaving\" x=\"{:.1f}\" y=\"{}\" text-anchor=\"{}\">{}</text>\n",
        colour % kColours, at, kTop, at + (right ? -12 : 12), line, right ? "end" : "start",
        escaped(s.leaves->text));
  }

  static std::string json_text(const std::string& text) {
    std::string out;
    for (const char c : text) {
      if (c == '"' || c == '\\') out += '\\';
      if (static_cast<unsigned char>(c) >= 0x20) out += c;
    }
    return out;
  }
};

std::size_t colour_of(const LineChart& chart, std::size_t series) {
  return chart.series[series].like.value_or(series);
}

std::string legend(const LineChart& chart) {
  std::string out = "<div class=\"legend\">";
  for (std::size_t i = 0; i < chart.series.size(); ++i)
    out += fmt::format("<span><i{} style=\"background:var(--s{})\"></i>{}</span>",
                       chart.series[i].thin ? " class=\"thin\"" : "",
                       colour_of(chart, i) % kColours, escaped(chart.series[i].name));
  return out + "</div>\n";
}

}  // namespace

std::string axis_label(const std::string& label, bool logarithmic) {
  return logarithmic ? tr("{} (log scale)", label) : label;
}

std::vector<double> ticks(double low, double high, int wanted) {
  if (!(high > low) || wanted < 1) return {};
  const double raw = (high - low) / wanted;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  double step = 10 * power;
  for (const double m : {1.0, 2.0, 5.0})
    if (raw <= m * power) {
      step = m * power;
      break;
    }
  std::vector<double> out;
  for (double n = std::ceil(low / step); n * step <= high; ++n) out.push_back(n * step);
  return out;
}

Html chart(const LineChart& chart) {
  std::vector<double> xs, ys;
  for (const Series& s : chart.series) {
    for (const Point& p : s.points) {
      xs.push_back(p.x);
      ys.push_back(p.y);
    }
    for (const Range& r : s.band) ys.insert(ys.end(), {r.low, r.high});
  }
  if (xs.empty()) return paragraph(tr("Nothing was measured."));
  Drawing d{chart,
            axis_over(xs, chart.log_x, kLeft, kWidth - kRight, chart.named_points),
            axis_over(ys, chart.log_y, kHeight - kBottom, kTop, false, chart.top),
            {},
            {}};
  d.grid();
  for (std::size_t i = 0; i < chart.series.size(); ++i) d.band(chart.series[i], i);
  const bool all_named = chart.named_points && d.named();
  for (std::size_t i = 0; i < chart.series.size() && !chart.named_points; ++i)
    d.line(chart.series[i], colour_of(chart, i));
  std::size_t row = 0;
  for (std::size_t i = 0; i < chart.series.size(); ++i)
    if (chart.series[i].leaves) d.leaving(chart.series[i], i, row++);
  const std::string data =
      fmt::format("{{\"x\":\"{}\",\"series\":[{}]}}", Drawing::json_text(chart.x_label), d.data);
  std::string out = fmt::format(
      "<div class=\"scroll\"><svg class=\"chart\" viewBox=\"0 0 {} {}\" role=\"img\" "
      "data-chart=\"{}\">\n",
      kWidth, kHeight, escaped(data));
  out += d.svg;
  out += fmt::format(
      "<line class=\"pointer\" y1=\"{}\" y2=\"{}\"/><text class=\"reading\" x=\"{}\" y=\"16\" "
      "text-anchor=\"end\"></text>\n</svg></div>\n",
      kTop, kHeight - kBottom, kWidth - kRight);
  return {out + (chart.series.size() > 1 && !all_named ? legend(chart) : "")};
}

}  // namespace heddle::report
