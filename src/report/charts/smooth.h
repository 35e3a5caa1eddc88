// A noisy curve as a reader wants it: smooth, and not late.
#pragma once

#include <cstddef>
#include <vector>

#include "report/charts/chart.h"

namespace heddle::report {

// At most so many points: the means of equally many neighbours, in x and in y.
std::vector<Point> means_of_neighbours(const std::vector<Point>& points, std::size_t most);

// At every point the line that fits its neighbours best, near ones counting more (tricube weights).
// Both sides count, so that the curve does not lag behind, and a straight line stays what it is,
// also at its ends. Neighbours are those within a fiftieth of all points: a short log stays as it
// is. A long one becomes a few thousand means first. Points that are not finite are left out.
std::vector<Point> smoothed(const std::vector<Point>& points);

// Whether smoothed() changes a curve of so many points so that one can see it: with fewer,
// neighbours are none, or only the two next ones, which hardly count.
bool can_be_smoothed(std::size_t points);

}  // namespace heddle::report
