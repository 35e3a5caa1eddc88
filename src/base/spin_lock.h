// A lock for sections of a few instructions, such as the books of the memory: taken and given back
// in a tenth of the instructions of a std::mutex.
#pragma once

#include <atomic>
#include <thread>

namespace heddle {

class SpinLock {
 public:
  void lock() noexcept {
    while (locked_.exchange(true, std::memory_order_acquire)) std::this_thread::yield();
  }
  void unlock() noexcept { locked_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> locked_{false};
};

}  // namespace heddle
