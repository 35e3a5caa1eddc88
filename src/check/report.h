// Results of a check: one case for each path, element type, instruction set and thread count.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "heddle/dtype.h"

namespace heddle::check {

struct Case {
  std::string path;  // what was compared: "logits", "gradients", "generation, token by token"
  DType dtype = DType::f64;
  std::string isa;
  int threads = 1;
  double error = 0;
  double tolerance = 0;
  std::string worst = {};  // where the error is: the name of a parameter, or nothing

  bool pass() const { return error <= tolerance; }  // NaN does not
};

struct Report {
  std::vector<Case> cases;
  std::vector<std::string> notes;  // what could not be compared as it is, and what was instead

  bool pass() const {
    return !cases.empty() && std::ranges::all_of(cases, [](const Case& c) { return c.pass(); });
  }
};

}  // namespace heddle::check
