// A matrix as a picture: cells coloured by their value, SVG.
#pragma once

#include <string>
#include <vector>

#include "report/page/html.h"

namespace heddle::report {

struct HeatMap {
  std::string x_label, y_label;            // what columns and rows are
  std::vector<std::string> columns, rows;  // their names; empty: numbered from 0
  // [rows][columns], of one length. Not a number: an empty cell. -infinity: shown as "−∞".
  std::vector<std::vector<double>> values;
  double limit = 0;  // the value with full colour; 0: the largest there is
  int digits = 2;    // behind the point, where there is room for numbers
};

// Positive values in one colour and negative ones in another, stronger the further from 0. Up to
// 16 columns the cells show their numbers; the pointer tells them always. A map without cells says
// so.
Html heat_map(const HeatMap& map);

}  // namespace heddle::report
