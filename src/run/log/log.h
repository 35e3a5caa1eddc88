// log.jsonl of a run, read again.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::run {

inline constexpr std::size_t kMostLog = std::size_t{1} << 30;  // bytes

// A run as its log.jsonl tells it.
struct TrainingLog {
  struct Step {
    double step = 0, loss = 0, lr = 0, tokens = 0, seconds = 0, tokens_per_s = 0, grad_norm = 0,
           live_bytes = 0;
    // Of a step on average, in runs of several ranks: see docs/training.md.
    double sent_bytes = 0, communication_seconds = 0, communication_hidden = 0;
  };
  struct Eval {
    double step = 0, loss = 0;
  };
  std::vector<Step> steps;
  std::vector<Eval> evals;
};

// `where` names the log in errors. A last line without its end was being written: it is left out.
TrainingLog parse_training_log(std::string_view text, const std::string& where);

// Seconds of a step by each line, which tells the rate since the line before it.
std::vector<double> step_seconds(const TrainingLog& log);

}  // namespace heddle::run
