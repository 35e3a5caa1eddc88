// Memory of a training process: the tensors of a step, which the plan knows to the byte, and
// everything else.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "data/dataset.h"
#include "plan/plan.h"

namespace heddle::plan {

// Resident bytes. Gaps between blocks of freed tensors are not included: see docs/training.md for
// how far measurements are above it.
struct ProcessMemory {
  std::int64_t program = 0;         // code, libraries, tokenizers, the heap
  std::int64_t data = 0;            // examples in memory; 0: no data was read
  std::int64_t tensors = 0;         // at the peak of a step: Plan::memory
  std::int64_t thread_buffers = 0;  // of all threads
  std::int64_t loading = 0;         // of the whole process at most, while the data was read

  std::int64_t besides_tensors() const { return program + data + thread_buffers; }
  std::int64_t total() const;
};

// By the plan and by what this process has now: to be called when the data was read, before a step
// was taken. Without data the figures are of a process that has none.
ProcessMemory expect_process(const Plan& plan, const data::Dataset* data);

// Bytes that a process could have on this machine now: what it has and what it can still take
// (base/process_memory.h), and no more than its limits allow.
std::int64_t room_of_process();

// {"total","program","data","tensors","thread_buffers","loading"}; without data neither of its two.
nlohmann::json to_json(const ProcessMemory& process);

}  // namespace heddle::plan
