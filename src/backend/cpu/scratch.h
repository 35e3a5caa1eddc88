// Memory of a thread's own, for the blocks of matrix products. It is there before the thread runs a
// chunk: kernels cannot throw, so an allocation that fails must fail before they begin.
#pragma once

#include <cstddef>

namespace heddle::cpu {

inline constexpr std::size_t kThreadScratchBytes = std::size_t{6} << 20;

// kThreadScratchBytes, aligned to 2 MiB. Null before the thread's first parallel section.
std::byte* thread_scratch() noexcept;

// Throws Error(out_of_memory). On huge pages where the system has them.
std::byte* allocate_thread_scratch();
void free_thread_scratch(std::byte* block) noexcept;

// Makes `block` the calling thread's scratch (a worker's, allocated by its starter) ...
void adopt_thread_scratch(std::byte* block) noexcept;
// ... or sees to it that the calling thread has one, until it ends. Throws Error(out_of_memory).
void ensure_thread_scratch();

}  // namespace heddle::cpu
