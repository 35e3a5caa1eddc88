#include "plan/process.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "backend/machine.h"
#include "base/process_memory.h"
#include "heddle/memory.h"
#include "heddle/runtime.h"

namespace heddle::plan {

namespace {

// Code of kernels, tables and stacks that the first step touches, and buffers of files.
constexpr std::int64_t kTouchedByAStep = std::int64_t{4} << 20;

// A thread's scratch is there for the largest products; small ones fill little of it, in huge
// pages.
std::int64_t scratch_in_use(const Plan& plan) {
  constexpr std::int64_t kHugePage = std::int64_t{2} << 20;
  return std::clamp(plan.memory.peak / 4, kHugePage,
                    static_cast<std::int64_t>(backend::thread_scratch_bytes()));
}

}  // namespace

std::int64_t ProcessMemory::total() const { return std::max(loading, besides_tensors() + tensors); }

ProcessMemory expect_process(const Plan& plan, const data::Dataset* data) {
  trim_heap();
  ProcessMemory p;
  p.tensors = plan.memory.peak;
  p.thread_buffers = plan.memory.thread_buffers_peak + threads() * scratch_in_use(plan);
  if (data != nullptr) {
    p.data = data->bytes();
    p.loading = resident_peak();
  }
  const std::int64_t others = p.data + memory_use(Device::cpu).live;
  p.program = std::max<std::int64_t>(0, resident_bytes() - others) + kTouchedByAStep;
  return p;
}

std::int64_t room_of_process() {
  const MemoryLimits limits = memory_limits();
  const std::int64_t has = std::max<std::int64_t>(0, resident_bytes());
  return has > limits.total - limits.available ? limits.total : limits.available + has;
}

nlohmann::json to_json(const ProcessMemory& p) {
  nlohmann::json j = {{"total", p.total()},
                      {"program", p.program},
                      {"tensors", p.tensors},
                      {"thread_buffers", p.thread_buffers}};
  if (p.loading > 0) {
    j["data"] = p.data;
    j["loading"] = p.loading;
  }
  return j;
}

}  // namespace heddle::plan
