// The cores of the machine, as far as the system lets a program choose among them.
#pragma once

#include <vector>

namespace heddle {

// Those this process may use; their numbers where the system tells them (Linux), else 0, 1, ...
// Read once, before any thread is pinned.
const std::vector<int>& allowed_cores();

// The core that the calling thread is on; -1 where the system does not tell.
int current_core() noexcept;

// Keeps the calling thread on a core. Only a hint: macOS has no such thing, and failure is
// harmless.
void stay_on_core(int core) noexcept;

// Tells the core that the loop around this is one of waiting.
inline void pause_core() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" : : : "memory");  // takes some cycles, where `yield` is nothing on most
#endif
}

}  // namespace heddle
