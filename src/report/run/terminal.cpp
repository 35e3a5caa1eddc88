#include "report/run/terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "language/layout.h"

namespace heddle::report {

namespace {

// A canvas of braille dots: 2 × 4 in each character.
class Dots {
 public:
  Dots(std::size_t columns, std::size_t rows)
      : columns_(columns), cells_(columns * rows), marks_(columns * rows) {}

  void set(std::size_t x, std::size_t y) {
    static constexpr std::array<std::array<std::uint32_t, 4>, 2> kBits = {
        {{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}}};
    cells_[y / 4 * columns_ + x / 2] |= kBits[x % 2][y % 4];
  }
  void mark(std::size_t x, std::size_t y) { marks_[y / 4 * columns_ + x / 2] = true; }

  std::string row(std::size_t row) const {
    std::string text;
    for (std::size_t c = row * columns_; c < (row + 1) * columns_; ++c) {
      if (marks_[c])
        text += "●";
      else if (cells_[c] == 0)
        text += ' ';
      else
        text += {static_cast<char>(0xE2), static_cast<char>(0xA0 | cells_[c] >> 6),
                 static_cast<char>(0x80 | (cells_[c] & 0x3F))};
    }
    while (text.ends_with(' ')) text.pop_back();
    return text;
  }

 private:
  std::size_t columns_;
  std::vector<std::uint32_t> cells_;
  std::vector<bool> marks_;
};

// The place of each part of the drawing.
struct Frame {
  double x_low = 0, x_high = 1, y_low = 0, y_high = 1;
  std::size_t width = 0, height = 0;  // dots

  static std::size_t part(double share, std::size_t dots) {
    const double at = std::clamp(share, 0.0, 1.0) * static_cast<double>(dots - 1);
    return static_cast<std::size_t>(std::lround(at));
  }
  std::size_t x(double v) const { return part((v - x_low) / (x_high - x_low), width); }
  std::size_t y(double v) const { return part((y_high - v) / (y_high - y_low), height); }
};

std::vector<Point> finite_points(const std::vector<Point>& points) {
  std::vector<Point> kept;
  kept.reserve(points.size());
  for (const Point& p : points)
    if (std::isfinite(p.x) && std::isfinite(p.y)) kept.push_back(p);
  return kept;
}

Frame frame_of(const std::vector<Point>& line, const std::vector<Point>& marks) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Frame f{kInfinity, -kInfinity, kInfinity, -kInfinity};
  for (const auto* points : {&line, &marks})
    for (const Point& p : *points) {
      f.x_low = std::min(f.x_low, p.x);
      f.x_high = std::max(f.x_high, p.x);
      f.y_low = std::min(f.y_low, p.y);
      f.y_high = std::max(f.y_high, p.y);
    }
  if (f.y_high <= f.y_low) f.y_high = f.y_low + std::max(1e-6, std::abs(f.y_low) * 0.1);
  return f;
}

// The mean of what falls on each column of dots, joined to the last column that has any.
void draw_line(const std::vector<Point>& line, const Frame& frame, Dots& dots) {
  std::vector<double> sums(frame.width), counts(frame.width);
  for (const Point& p : line) {
    sums[frame.x(p.x)] += p.y;
    counts[frame.x(p.x)] += 1;
  }
  std::size_t last_x = 0, last_y = 0;
  bool begun = false;
  for (std::size_t x = 0; x < frame.width; ++x) {
    if (counts[x] == 0) continue;
    const std::size_t y = frame.y(sums[x] / counts[x]);
    if (!begun) dots.set(x, y);
    for (std::size_t between = last_x; begun && between <= x; ++between) {
      const double share = x == last_x ? 1 : double(between - last_x) / double(x - last_x);
      const double at = double(last_y) + share * (double(y) - double(last_y));
      dots.set(between, static_cast<std::size_t>(std::lround(at)));
    }
    // Steep pieces have no holes.
    for (std::size_t i = std::min(y, last_y); begun && x == last_x + 1 && i < std::max(y, last_y);
         ++i)
      dots.set(x, i);
    last_x = x;
    last_y = y;
    begun = true;
  }
}

}  // namespace

std::vector<std::string> packed(const std::vector<std::string>& pieces, std::size_t columns) {
  std::vector<std::string> lines;
  for (const std::string& piece : pieces) {
    if (piece.empty()) continue;
    if (!lines.empty() && columns_of(lines.back()) + 2 + columns_of(piece) <= columns)
      lines.back().append("  ").append(piece);
    else
      lines.emplace_back(cut_to(piece, columns));
  }
  return lines;
}

std::string progress_bar(double share, std::size_t columns) {
  const double full = std::clamp(share, 0.0, 1.0) * static_cast<double>(columns);
  const auto whole = static_cast<std::size_t>(full);
  std::string bar;
  for (std::size_t i = 0; i < columns; ++i) bar += i < whole ? "█" : "░";
  return bar;
}

std::vector<std::string> text_chart(const TextChart& chart) {
  const std::vector<Point> line = finite_points(chart.line), marks = finite_points(chart.marks);
  Frame frame = frame_of(line, marks);
  const std::string high = fmt::format("{:.4g}", frame.y_high),
                    low = fmt::format("{:.4g}", frame.y_low);
  const std::size_t label = std::max(high.size(), low.size());
  if (line.size() < 2 || frame.x_high <= frame.x_low || chart.rows < 2 ||
      chart.columns < label + 12)
    return {};
  const std::size_t columns = chart.columns - label - 2;
  frame.width = 2 * columns;
  frame.height = 4 * chart.rows;
  Dots dots(columns, chart.rows);
  draw_line(line, frame, dots);
  for (const Point& p : marks) dots.mark(frame.x(p.x), frame.y(p.y));
  std::vector<std::string> lines;
  lines.reserve(chart.rows + 1);
  for (std::size_t row = 0; row < chart.rows; ++row) {
    const bool first = row == 0, last = row + 1 == chart.rows;
    lines.push_back(fmt::format("{:>{}} {}{}",
                                first  ? high
                                : last ? low
                                       : "",
                                label, first || last ? "┤" : "│", dots.row(row)));
  }
  const std::string from = fmt::format("{:.6g}", frame.x_low),
                    to = fmt::format("{:.6g}", frame.x_high);
  lines.push_back(fmt::format("{:{}}{}{:>{}}", "", label + 2, from, to, columns - from.size()));
  return lines;
}

}  // namespace heddle::report
