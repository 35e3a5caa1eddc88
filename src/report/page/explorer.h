// A chart with a slider: what a parameter does, from numbers that were measured.
//
// The page draws lines by a law: "grid" shows the measured numbers themselves, one set for each
// stop of the slider; the others are closed forms over measured numbers (explorer.js). What was
// measured is drawn as dots, so that a law that is wrong is seen, and a test compares all of them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "report/page/html.h"

namespace heddle::report {

struct Explorer {
  struct Slider {
    std::string label;
    double low = 0, high = 1, start = 0;
    int steps = 1;             // from low to high
    bool logarithmic = false;  // steps are equal factors
    int digits = 3;            // that are shown
  };
  struct Axis {
    std::string label;
    double low = 0, high = 1;
    bool logarithmic = false;
  };
  // Measured at a position of the slider, of one of the lines.
  struct Sample {
    double at = 0;
    std::size_t line = 0;
    double x = 0, y = 0;
  };
  // A number that the page computes for a position of the slider.
  struct Reading {
    std::string label;
    std::vector<std::pair<double, double>> measured = {};  // position and number
  };

  std::string name;  // once on a page
  std::string title, caption;
  std::string law;                                          // one of explorer.js
  std::map<std::string, std::vector<double>> numbers = {};  // what the law starts from
  Slider slider;
  Axis x, y;
  std::vector<std::string> lines;
  std::vector<Sample> measured;
  std::vector<Reading> readings = {};
};

// The script of the page draws it: Page::add_script(explorer_script()). Throws Error for sizes that
// no slider or axis has.
Html explorer(const Explorer& explorer);
const char* explorer_script();
const char* explorer_style();

}  // namespace heddle::report
