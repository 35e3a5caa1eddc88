// Time and medians, for benchmarks.
#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

namespace heddle::bench {

inline double now() {
  using std::chrono::steady_clock;
  return std::chrono::duration<double>(steady_clock::now().time_since_epoch()).count();
}

inline double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

// Seconds of one call, averaged over `repeats` of them.
template <class F>
double seconds_of(int repeats, F f) {
  const double start = now();
  for (int i = 0; i < repeats; ++i) f();
  return (now() - start) / repeats;
}

// How many calls of `once` seconds fill `wanted` seconds.
inline int repeats_for(double wanted, double once) {
  return std::clamp(static_cast<int>(wanted / std::max(once, 1e-9)), 1, 10000);
}

}  // namespace heddle::bench
