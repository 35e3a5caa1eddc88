// The threads of the process, for loops of the host and for the kernels of the CPU backend. Work is
// cut into chunks by its shape alone, never by the number of threads, so that results are the same
// bits for any thread count.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace heddle {

// A borrowed callable: no allocation, must outlive the call.
template <class Signature>
class FunctionRef;

template <class R, class... Args>
class FunctionRef<R(Args...)> {
 public:
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef>)
  FunctionRef(F&& f) noexcept  // NOLINT: implicit on purpose, so that lambdas can be passed
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))),
        call_([](void* object, Args... args) -> R {
          return (*static_cast<std::remove_reference_t<F>*>(object))(std::forward<Args>(args)...);
        }) {}

  R operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  void* object_;
  R (*call_)(void*, Args...);
};

// HEDDLE_THREADS, or the number of cores this process may use, or what set_thread_count() chose.
int thread_count();
void set_thread_count(int count);  // 1..256; throws Error otherwise

// Calls body(chunk) for every chunk in [0, chunks), on all threads; returns when all are done.
// The pool chooses the thread for each chunk: results must not depend on it.
// A call from inside a body runs serially. The body must not throw.
void parallel_chunks(std::int64_t chunks, FunctionRef<void(std::int64_t)> body);

// Calls body(begin, end) over [0, count) in pieces of `grain` (the last one may be shorter). The
// pieces depend on count and grain only. Runs serially when there is one piece.
void parallel_ranges(std::int64_t count, std::int64_t grain,
                     FunctionRef<void(std::int64_t, std::int64_t)> body);

// Index of the calling thread within the running parallel section, 0 outside of one: for per-thread
// scratch only, never for anything that reaches a result.
int thread_index();

// Resources that a backend needs threads to have, besides the processor. Set once, before the first
// section (by a static initialiser): the threads of the pool belong to the process, which knows
// nothing of the scratch that kernels need.
struct ThreadNeeds {
  // For a worker, before it starts; it may throw Error, and then there is no such worker.
  void* (*make)() = nullptr;
  void (*adopt)(void* made) noexcept = nullptr;  // by the worker, first of all
  void (*drop)(void* made) noexcept = nullptr;   // of a worker that could not be started
  void (*section_ended)() noexcept = nullptr;    // on the thread that called for a section
};
void set_thread_needs(const ThreadNeeds& needs) noexcept;

}  // namespace heddle
