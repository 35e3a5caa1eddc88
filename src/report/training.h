// report.html of a run: what happened, as curves.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heddle::report {

// A run as its log.jsonl tells it.
struct TrainingLog {
  struct Step {
    double step = 0, loss = 0, lr = 0, tokens = 0, seconds = 0, tokens_per_s = 0, grad_norm = 0,
           live_bytes = 0;
  };
  struct Eval {
    double step = 0, loss = 0;
  };
  std::vector<Step> steps;
  std::vector<Eval> evals;
};

// `where` names the log in errors. A last line without its end was being written: it is left out.
TrainingLog parse_training_log(std::string_view text, const std::string& where);

// The page. `recipe` is its text.
std::string training_page(const std::string& name, const TrainingLog& log,
                          const std::string& recipe);

// Reads log.jsonl and recipe.toml of a run directory and writes its report.html; returns its path.
std::string write_training_report(const std::string& directory);

}  // namespace heddle::report
