// Shared by tests of check.
#pragma once

#include <string>

#include "check/report.h"

namespace heddle::check {

// The cases that do not pass, a line each: what a failed expectation shows.
inline std::string failures(const Report& report) {
  std::string all;
  for (const Case& c : report.cases)
    if (!c.pass())
      all += c.path + " " + std::string(to_string(c.dtype)) + " " + c.isa + " " +
             std::to_string(c.error) + " of " + std::to_string(c.tolerance) + " " + c.worst + "\n";
  return all;
}

}  // namespace heddle::check
