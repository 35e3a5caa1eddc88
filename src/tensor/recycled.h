// Memory for the small objects that every op makes and drops: handles of tensors and storages. Each
// thread keeps what it freed for the next one of the same size, which takes a fifth of the
// instructions of the system's allocator; small models are made of little else.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>

#include "base/sanitizers.h"

namespace heddle {

// Blocks of `Size` bytes that the calling thread has freed.
template <std::size_t Size>
class FreeBlocks {
 public:
  static void* take() {
    if (first_ == nullptr) return ::operator new(Size);
    --count_;
    return std::exchange(first_, first_->next);
  }

  static void give(void* block) noexcept {
    if (count_ >= kMost) return ::operator delete(block);
    if (count_ == 0) free_at_end();
    first_ = new (block) Link{first_};
    ++count_;
  }

 private:
  struct Link {
    Link* next;
  };
  static_assert(Size >= sizeof(Link));
  static constexpr std::size_t kMost = 1024;

  // Frees the kept blocks when the thread ends, after which none are kept: tensors with static
  // storage duration are freed later than that.
  static void free_at_end() noexcept {
    struct End {
      ~End() {
        while (first_ != nullptr) ::operator delete(std::exchange(first_, first_->next));
        count_ = kMost;
      }
    };
    static thread_local const End end;
  }

  static inline constinit thread_local Link* first_ = nullptr;
  static inline constinit thread_local std::size_t count_ = 0;
};

template <class T>
struct RecyclingAllocator {
  using value_type = T;

  RecyclingAllocator() = default;
  template <class U>
  explicit RecyclingAllocator(const RecyclingAllocator<U>&) noexcept {}

  T* allocate(std::size_t) { return static_cast<T*>(FreeBlocks<sizeof(T)>::take()); }
  void deallocate(T* p, std::size_t) noexcept { FreeBlocks<sizeof(T)>::give(p); }

  friend bool operator==(const RecyclingAllocator&, const RecyclingAllocator&) { return true; }
};

// std::make_shared() in recycled memory.
template <class T, class... Args>
std::shared_ptr<T> make_recycled(Args&&... args) {
  if constexpr (kRecycles)
    return std::allocate_shared<T>(RecyclingAllocator<T>(), std::forward<Args>(args)...);
  else
    return std::make_shared<T>(std::forward<Args>(args)...);
}

}  // namespace heddle
