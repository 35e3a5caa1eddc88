// The threads of the process (base/parallel.h), each with the scratch that kernels need.
#pragma once

#include <cstdint>

#include "base/parallel.h"

namespace heddle::cpu {

using heddle::FunctionRef;
using heddle::thread_count;
using heddle::thread_index;

inline void set_threads(int count) { set_thread_count(count); }

// As those of base/parallel.h; every thread that runs the body has its scratch (scratch.h). Throws
// Error(out_of_memory) where the caller cannot get it.
void parallel_chunks(std::int64_t chunks, FunctionRef<void(std::int64_t)> body);
void parallel_ranges(std::int64_t count, std::int64_t grain,
                     FunctionRef<void(std::int64_t, std::int64_t)> body);

}  // namespace heddle::cpu
