#include "report/charts/smooth.h"
#include "base/divide.h"

#include <algorithm>
#include <cmath>

namespace heddle::report {

namespace {

constexpr std::size_t kMostSmoothed = 2000;  // points: a page has room for fewer
constexpr std::size_t kPointsPerReach = 50;

// The weighted least squares line through points[first, last), at points[at].x.
double local_line(const std::vector<Point>& points, std::size_t first, std::size_t last,
                  std::size_t at) {
  const double x0 = points[at].x;
  // A little more than the farthest neighbour, so that it counts as well.
  const double reach = 1.001 * std::max(x0 - points[first].x, points[last - 1].x - x0);
  double w = 0, wx = 0, wy = 0, wxx = 0, wxy = 0;
  for (std::size_t i = first; i < last; ++i) {
    const double x = points[i].x - x0, far = reach > 0 ? std::abs(x) / reach : 0;
    const double cube = 1 - far * far * far, weight = cube * cube * cube;
    w += weight;
    wx += weight * x;
    wy += weight * points[i].y;
    wxx += weight * x * x;
    wxy += weight * x * points[i].y;
  }
  const double spread = w * wxx - wx * wx;
  return spread > 1e-12 * w * wxx ? (wy * wxx - wx * wxy) / spread : wy / w;
}

}  // namespace

std::vector<Point> means_of_neighbours(const std::vector<Point>& points, std::size_t most) {
  const std::size_t group = ceil_div(points.size(), most);
  if (group <= 1) return points;
  std::vector<Point> out;
  out.reserve(points.size() / group + 1);
  for (std::size_t i = 0; i < points.size(); i += group) {
    const std::size_t end = std::min(i + group, points.size());
    Point mean;
    for (std::size_t j = i; j < end; ++j) mean = {mean.x + points[j].x, mean.y + points[j].y};
    const auto n = static_cast<double>(end - i);
    out.push_back({mean.x / n, mean.y / n});
  }
  return out;
}

bool can_be_smoothed(std::size_t points) { return points >= 2 * kPointsPerReach; }

std::vector<Point> smoothed(const std::vector<Point>& points) {
  std::vector<Point> finite;
  finite.reserve(points.size());
  for (const Point& p : points)
    if (std::isfinite(p.x) && std::isfinite(p.y)) finite.push_back(p);
  const std::vector<Point> noisy = means_of_neighbours(finite, kMostSmoothed);
  const std::size_t reach = noisy.size() / kPointsPerReach;
  std::vector<Point> out;
  out.reserve(noisy.size());
  for (std::size_t i = 0; i < noisy.size(); ++i) {
    const std::size_t first = i - std::min(i, reach);
    const std::size_t last = std::min(i + reach + 1, noisy.size());
    out.push_back({noisy[i].x, local_line(noisy, first, last, i)});
  }
  return out;
}

}  // namespace heddle::report
