// Bars side by side, with their numbers, as SVG.
#pragma once

#include <string>
#include <vector>

#include "report/page/html.h"

namespace heddle::report {

struct Bars {
  struct Series {
    std::string name;
    std::vector<double> values;  // one per group; not a number: no bar
  };
  std::string y_label;
  std::vector<std::string> groups;
  std::vector<Series> series;
  bool log_y = false;  // what is not positive has no bar then
};

// Groups of bars, one bar of each series in a group; each bar carries its number. Without any bar
// it says so.
Html bars(const Bars& bars);

}  // namespace heddle::report
