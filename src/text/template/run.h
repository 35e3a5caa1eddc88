// One rendering under way: where it is, for errors, and how much it has cost so far.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/error.h"
#include "text/template/limits.h"
#include "text/template/values/value.h"

namespace heddle::text::chat {

// The time that strftime_now() tells.
using Clock = std::function<std::tm()>;

class Run {
 public:
  Run(std::string where, const Limits& limits, Clock clock)
      : where_(std::move(where)), limits_(limits), clock_(std::move(clock)) {}
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  const Limits& limits() const noexcept { return limits_; }
  std::tm now() const { return clock_(); }

  std::size_t line = 1;  // of the construct that is evaluated

  [[noreturn]] void refuse(std::string_view problem, std::string_view expected = {},
                           std::string_view found = {},
                           ErrorCode code = ErrorCode::invalid_argument) const;
  [[noreturn]] void unsupported(std::string_view construct) const;

  // Each before the work is done.
  void step(std::uint64_t count = 1);
  void look_at(const Value& value) { step(value.weight()); }
  void search(std::size_t bytes);
  void make_string(std::size_t bytes);
  void make_list(std::size_t items);
  void output(std::size_t bytes);
  void enter();
  void leave() noexcept { --depth_; }

  // A namespace can hold itself, so counting references would never free it; the run does.
  Value make_namespace(std::shared_ptr<Attributes> attributes);

 private:
  std::string where_;
  const Limits& limits_;
  Clock clock_;
  std::uint64_t steps_ = 0, work_bytes_ = 0;
  std::size_t output_bytes_ = 0, depth_ = 0;
  std::vector<std::shared_ptr<Attributes>> namespaces_;
};

// A level of the evaluation, for as long as it lives.
class Level {
 public:
  explicit Level(Run& run) : run_(run) { run_.enter(); }
  ~Level() { run_.leave(); }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

 private:
  Run& run_;
};

// "chat template of x, line 3"
std::string template_place(std::string_view where, std::size_t line);

}  // namespace heddle::text::chat
