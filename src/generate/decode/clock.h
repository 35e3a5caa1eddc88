// Time that passes, in seconds.
#pragma once

#include <chrono>

namespace heddle::generate {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace heddle::generate
