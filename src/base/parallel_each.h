// Loops on all threads in which a round may be refused.
#pragma once

#include <cstdint>
#include <exception>
#include <vector>

#include "base/parallel.h"

namespace heddle {

// Calls body(i) for every i in [0, count), `grain` at a time. Exceptions are rethrown here; of
// several the one with the smallest i, so that the same file always gives the same message.
template <class Body>
void parallel_each(std::int64_t count, std::int64_t grain, const Body& body) {
  const std::int64_t chunks = count / grain + (count % grain == 0 ? 0 : 1);
  std::vector<std::exception_ptr> thrown(static_cast<std::size_t>(chunks));
  parallel_ranges(count, grain, [&](std::int64_t begin, std::int64_t end) {
    try {
      for (std::int64_t i = begin; i < end; ++i) body(i);
    } catch (...) {
      thrown[static_cast<std::size_t>(begin / grain)] = std::current_exception();
    }
  });
  for (const std::exception_ptr& one : thrown)
    if (one) std::rethrow_exception(one);
}

}  // namespace heddle
