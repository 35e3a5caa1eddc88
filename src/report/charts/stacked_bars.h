// Horizontal bars as SVG: one for each thing compared, made up of parts.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "report/page/html.h"

namespace heddle::report {

// A name as there is room for beside a row.
std::string shortened_name(const std::string& name);

struct StackedBar {
  std::string name;
  std::vector<double> parts;  // none negative
};

struct StackedBars {
  std::vector<std::string> parts;  // their names, for the legend; empty or one: no legend
  std::vector<StackedBar> bars;
  std::function<std::string(double)> text;  // of a value
};

// As wide as the page; each bar has its sum beside it and tells its parts under the pointer.
Html stacked_bars(const StackedBars& chart);

}  // namespace heddle::report
