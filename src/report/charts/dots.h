// Single measurements as dots, a row for each thing compared, as SVG.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/page/html.h"

namespace heddle::report {

struct DotRow {
  std::string name;
  std::vector<double> values;           // those that are not finite are left out
  std::optional<double> interval = {};  // around their mean, to both sides
  std::string instead = {};             // text where there are no values
};

struct DotRows {
  std::string label;  // of the axis
  std::vector<DotRow> rows;
};

// A row has its dots, a stroke at their mean, and a bar for the interval. Without any dot it says
// so.
Html dot_rows(const DotRows& rows);

}  // namespace heddle::report
