#include "base/parallel.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "base/system/cores.h"
#include "heddle/error.h"

namespace heddle {
namespace {

using Body = FunctionRef<void(std::int64_t)>;
using Clock = std::chrono::steady_clock;

constexpr int kMaxThreads = 256;
constexpr std::size_t kCacheLine = 64;

// How long a thread looks for work before it sleeps in the kernel. Long enough to bridge the serial
// code between two ops of a model; with more threads than cores spinning only steals their time.
constexpr auto kSpin = std::chrono::microseconds(100);
constexpr auto kCrowdedSpin = std::chrono::microseconds(2);

constinit ThreadNeeds thread_needs;

thread_local int tls_index = 0;
thread_local bool tls_inside = false;

int checked_count(std::int64_t count, std::string_view where, std::string_view got) {
  if (count < 1 || count > kMaxThreads)
    fail(ErrorCode::invalid_argument, where, "bad number of threads", "1 to 256", got);
  return static_cast<int>(count);
}

int initial_count() {
  const char* text = std::getenv("HEDDLE_THREADS");
  if (text == nullptr || *text == '\0')
    return std::min(static_cast<int>(allowed_cores().size()), kMaxThreads);
  const char* end = text + std::strlen(text);
  std::int64_t value = 0;
  const auto [stop, error] = std::from_chars(text, end, value);
  if (error != std::errc{} || stop != end) value = 0;  // not a number: reported as out of range
  return checked_count(value, "HEDDLE_THREADS", text);
}

constexpr int kUndecided = 0;
std::atomic<int> chosen_count{kUndecided};

// Spins until ready() or the time is up; says which.
template <class Ready>
bool spin_until(Ready ready, Clock::duration patience) {
  // Most waits are far shorter than reading the clock is worth.
  for (int i = 0; i < 64; ++i) {
    if (ready()) return true;
    pause_core();
  }
  const auto deadline = Clock::now() + patience;
  do {
    for (int i = 0; i < 16; ++i) {
      if (ready()) return true;
      pause_core();
    }
  } while (Clock::now() < deadline);
  return false;
}

// One parallel section runs at a time. Its state is one word:
//
//   generation (16 bits) | stop | caller_sleeps | open | joined workers (13 bits)
//
// A worker must join an open section (a compare-and-swap of the whole word) before it touches it;
// the caller closes the section when no chunks are left and then waits for those that joined. So
// workers that the system did not schedule in time cost nothing, and the caller alone is enough.
class Pool {
 public:
  // `threads` counts the caller.
  void run(std::int64_t chunks, int threads, Body body);
  void stop_workers();

 private:
  static constexpr std::uint32_t kJoined = 0x1fff;
  static constexpr std::uint32_t kOpen = 0x2000;
  static constexpr std::uint32_t kCallerSleeps = 0x4000;
  static constexpr std::uint32_t kStop = 0x8000;
  static constexpr std::uint32_t kOneGeneration = 0x10000;
  static std::uint32_t generation(std::uint32_t word) { return word / kOneGeneration; }

  void start_workers(int threads);
  void work(int index, int core);  // core: to stay on, or -1
  bool join(std::uint32_t word);
  void leave();
  void take_chunks(const Body& body);
  void open(std::int64_t chunks, int threads, const Body& body);
  void close_and_wait();
  void stop_locked();
  Clock::duration patience() const { return crowded_ ? kCrowdedSpin : kSpin; }

  alignas(kCacheLine) std::atomic<std::uint32_t> word_{0};
  // Every thread has a share of the chunks, the same one when a section of that many chunks comes
  // again, so that what it wrote last time is still in its cache. Who is done with its own share
  // helps with the others'.
  struct alignas(kCacheLine) Cursor {
    std::atomic<std::int64_t> value{0};
  };
  std::array<Cursor, kMaxThreads> next_;
  alignas(kCacheLine) std::atomic<int> asleep_{0};
  alignas(kCacheLine) std::atomic<std::uint32_t> finished_{0};  // the sleeping caller's doorbell

  // Written before a section opens, read by those that joined it.
  const Body* body_ = nullptr;
  std::int64_t chunks_ = 0;
  int shares_ = 1;

  std::mutex mutex_;  // held by the caller of the running section
  std::vector<std::thread> workers_;
  int started_for_ = 0;  // the thread count the workers were started for
  bool crowded_ = false;
};

// Never destroyed: other static objects may still use it while the process ends, and a child of
// fork(), in which the workers do not exist, must not wait for them.
Pool& pool() {
  static Pool* const instance = new Pool;
  return *instance;
}

void Pool::start_workers(int threads) {
  if (started_for_ == threads) return;
  stop_locked();
  const auto cores = static_cast<int>(allowed_cores().size());
  crowded_ = threads > cores;
  // A worker per core stays on it, beginning with those the caller is not on: its own affinity is
  // not ours to change, and two threads on one core may stay there for a second.
  std::vector<int> homes;
  if (threads == cores) {
    const int here = current_core();
    for (const int core : allowed_cores())
      if (core != here) homes.push_back(core);
    homes.push_back(here);
  }
  workers_.reserve(static_cast<std::size_t>(threads - 1));
  for (int i = 1; i < threads; ++i) {
    void* made = nullptr;
    try {
      if (thread_needs.make != nullptr) made = thread_needs.make();
      const int core = homes.empty() ? -1 : homes[static_cast<std::size_t>(i - 1)];
      workers_.emplace_back([this, i, core, made] {
        if (thread_needs.adopt != nullptr) thread_needs.adopt(made);
        work(i, core);
      });
    } catch (const std::exception&) {
      // The system refuses more threads, or memory for them: those we have, down to the caller
      // alone, do the same work. Kernels begin sections, and nothing may leave them as an
      // exception.
      if (made != nullptr && thread_needs.drop != nullptr) thread_needs.drop(made);
      break;
    }
  }
  started_for_ = threads;
}

void Pool::stop_locked() {
  if (!workers_.empty()) {
    word_.fetch_or(kStop);
    word_.notify_all();
    for (std::thread& worker : workers_) worker.join();
    workers_.clear();
    word_.fetch_and(~kStop);
  }
  started_for_ = 0;
}

void Pool::stop_workers() {
  const std::lock_guard lock(mutex_);
  stop_locked();
}

void Pool::work(int index, int core) {
  if (core >= 0) stay_on_core(core);
  tls_index = index;
  tls_inside = true;  // a parallel call from a body runs serially
  std::uint32_t seen = generation(word_.load()) - 1;
  std::uint32_t word = 0;
  const auto something_new = [&] {
    word = word_.load();
    return (word & kStop) != 0 || ((word & kOpen) != 0 && generation(word) != seen);
  };
  for (;;) {
    if (!spin_until(something_new, patience())) {
      asleep_.fetch_add(1);
      while (!something_new()) word_.wait(word);
      asleep_.fetch_sub(1);
    }
    if ((word & kStop) != 0) return;
    if (!join(word)) continue;
    seen = generation(word);
    take_chunks(*body_);
    leave();
  }
}

bool Pool::join(std::uint32_t word) {
  return word_.compare_exchange_strong(word, word + 1, std::memory_order_acq_rel);
}

void Pool::leave() {
  const std::uint32_t before = word_.fetch_sub(1, std::memory_order_acq_rel);
  if ((before & kJoined) == 1 && (before & kCallerSleeps) != 0) {
    finished_.fetch_add(1);
    finished_.notify_one();
  }
}

void Pool::take_chunks(const Body& body) {
  for (int i = 0; i < shares_; ++i) {
    const int share = (tls_index + i) % shares_;
    const std::int64_t end = chunks_ * (share + 1) / shares_;
    for (;;) {
      const std::int64_t chunk =
          next_[static_cast<std::size_t>(share)].value.fetch_add(1, std::memory_order_relaxed);
      if (chunk >= end) break;
      body(chunk);
    }
  }
}

void Pool::open(std::int64_t chunks, int threads, const Body& body) {
  body_ = &body;
  chunks_ = chunks;
  shares_ = threads;
  for (int i = 0; i < threads; ++i)
    next_[static_cast<std::size_t>(i)].value.store(chunks * i / threads, std::memory_order_relaxed);
  word_.fetch_add(kOneGeneration + kOpen);
  // Sequentially consistent on both sides: a worker either sees the new word or is counted here.
  const std::int64_t asleep = asleep_.load();
  if (asleep == 0) return;
  if (chunks - 1 >= asleep) {
    word_.notify_all();
  } else {
    for (std::int64_t i = 1; i < chunks; ++i) word_.notify_one();
  }
}

void Pool::close_and_wait() {
  word_.fetch_and(~kOpen);
  const auto all_left = [&] { return (word_.load(std::memory_order_acquire) & kJoined) == 0; };
  if (spin_until(all_left, patience())) return;
  const std::uint32_t doorbell = finished_.load();
  const std::uint32_t before = word_.fetch_or(kCallerSleeps);
  // The worker that takes the count to zero while the flag is up always rings.
  if ((before & kJoined) != 0) finished_.wait(doorbell);
  word_.fetch_and(~kCallerSleeps);
}

void Pool::run(std::int64_t chunks, int threads, Body body) {
  const std::lock_guard lock(mutex_);
  start_workers(threads);
  tls_inside = true;
  open(chunks, threads, body);
  take_chunks(body);
  close_and_wait();
  tls_inside = false;
}

void run_serially(std::int64_t chunks, Body body) {
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) body(chunk);
}

}  // namespace

int thread_count() {
  int count = chosen_count.load(std::memory_order_relaxed);
  if (count == kUndecided) {
    const int initial = initial_count();
    // A set_threads() that came in between wins.
    if (chosen_count.compare_exchange_strong(count, initial)) count = initial;
  }
  return count;
}

void set_thread_count(int count) {
  checked_count(count, "set_threads", std::to_string(count));
  if (tls_inside)
    fail(ErrorCode::invalid_argument, "set_threads", "called from inside a parallel section",
         "a call between parallel sections", "one by a thread at work");
  allowed_cores();
  pool().stop_workers();
  chosen_count.store(count);
}

void parallel_chunks(std::int64_t chunks, Body body) {
  const int threads = chunks <= 1 || tls_inside ? 1 : thread_count();
  if (threads == 1) {
    run_serially(chunks, body);
  } else {
    pool().run(chunks, threads, body);
  }
  if (!tls_inside && thread_needs.section_ended != nullptr) thread_needs.section_ended();
}

void parallel_ranges(std::int64_t count, std::int64_t grain,
                     FunctionRef<void(std::int64_t, std::int64_t)> body) {
  const std::int64_t piece = std::max<std::int64_t>(grain, 1);
  const std::int64_t pieces = count <= 0 ? 0 : (count - 1) / piece + 1;
  parallel_chunks(pieces, [&](std::int64_t i) {
    // min(count, (i + 1) * piece), written so that it cannot overflow
    body(i * piece, i * piece + std::min(piece, count - i * piece));
  });
}

int thread_index() { return tls_index; }

void set_thread_needs(const ThreadNeeds& needs) noexcept { thread_needs = needs; }

}  // namespace heddle
