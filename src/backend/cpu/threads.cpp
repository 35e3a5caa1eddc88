#include "backend/cpu/threads.h"

#include <cstddef>

#include "backend/cpu/isa.h"
#include "backend/cpu/scratch.h"
#include "backend/cpu/tiles/tile_state.h"

namespace heddle::cpu {

namespace {

// Before any thread of the pool is started.
[[maybe_unused]] const bool kNeedsAreKnown = [] {
  set_thread_needs({
      .make = []() -> void* { return allocate_thread_scratch(); },
      .adopt = [](void* made) noexcept { adopt_thread_scratch(static_cast<std::byte*>(made)); },
      .drop = [](void* made) noexcept { free_thread_scratch(static_cast<std::byte*>(made)); },
      .section_ended = kHasTiles ? amx::give_back_tiles : nullptr,
  });
  return true;
}();

}  // namespace

void parallel_chunks(std::int64_t chunks, FunctionRef<void(std::int64_t)> body) {
  ensure_thread_scratch();
  heddle::parallel_chunks(chunks, body);
}

void parallel_ranges(std::int64_t count, std::int64_t grain,
                     FunctionRef<void(std::int64_t, std::int64_t)> body) {
  ensure_thread_scratch();
  heddle::parallel_ranges(count, grain, body);
}

}  // namespace heddle::cpu
