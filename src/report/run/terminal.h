// Text on a terminal: lines of short pieces, and small charts of dots.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "report/charts/chart.h"

namespace heddle::report {

// The pieces with two blanks between them, in lines of at most so many columns. A piece that is
// wider has a line of its own and is cut.
std::vector<std::string> packed(const std::vector<std::string>& pieces, std::size_t columns);

// "█████░░░░░", so many columns wide.
std::string progress_bar(double share, std::size_t columns);

struct TextChart {
  std::vector<Point> line;        // x ascending; points that are not finite are left out
  std::vector<Point> marks = {};  // shown as ●, above the line
  std::size_t columns = 80, rows = 10;
};

// The line in dots of braille, two by four in a character, with the highest and the lowest value
// and both ends of x beside it: rows + 1 lines of at most `columns`. None where there are fewer
// than two points or too little room.
std::vector<std::string> text_chart(const TextChart& chart);

}  // namespace heddle::report
