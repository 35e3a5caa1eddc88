// Numbers as people read them.
#pragma once

#include <string>

#include "heddle/memory.h"

namespace heddle::report {

std::string bytes_text(double bytes);       // "1.50 GB": 1 GB is 10^9 bytes, as everywhere
std::string count_text(double count);       // "12.3 M"
std::string duration_text(double seconds);  // "4.2 s", "2 min 05 s", "1 h 03 min", "3 days 4 h"
// "+0.0120" with four digits; what rounds to nothing has no sign.
std::string signed_text(double value, int digits);

// The purpose of memory, in words: "gradients".
std::string purpose_text(Purpose purpose);

}  // namespace heddle::report
