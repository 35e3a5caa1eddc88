// Line charts as SVG.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "report/page/html.h"

namespace heddle::report {

struct Point {
  double x = 0;
  double y = 0;
};

// The area between two lines: a spread over seeds.
struct Range {
  double x = 0;
  double low = 0, high = 0;
};

// Where a line leaves the chart at its upper edge, and what is said there.
struct Leaving {
  double x = 0;
  std::string text;
};

struct Series {
  std::string name;
  std::vector<Point> points;  // x ascending; points that are not finite are left out
  std::vector<Range> band = {};
  bool thin = false;                     // a noisy line behind the others
  std::optional<std::size_t> like = {};  // has the colour of the series of this number
  std::optional<Leaving> leaves = {};
};

struct LineChart {
  std::string x_label, y_label;
  std::vector<Series> series;
  bool named_points = false;          // no lines: points with the names of their series beside them
  bool log_x = false, log_y = false;  // what is not positive is left out then
  double top = std::numeric_limits<double>::infinity();  // what is higher is not drawn
};

// A chart of 1000 × 420 units that fills the page's width; without any point it says so. At most
// some hundred points of a series are drawn: the means of neighbours.
Html chart(const LineChart& chart);

// The words beside an axis. They tell a logarithmic one, because a reader who takes it for a plain
// one sees another curve.
std::string axis_label(const std::string& label, bool logarithmic);

// Round positions between low and high, about `wanted` of them: 1, 2 or 5 times a power of ten.
std::vector<double> ticks(double low, double high, int wanted);

}  // namespace heddle::report
