// Progress reports of a training run, and how it ended.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "run/train_state.h"
#include "train/evaluation.h"

namespace heddle::train {

// Facts known after a step.
struct StepReport {
  std::int64_t step = 0;  // from 1
  double loss = 0;        // of this step, without auxiliary losses
  double rate = 0;
  double grad_norm = 0;           // before clipping
  std::int64_t tokens = 0;        // of this step
  std::int64_t total_tokens = 0;  // of the run
  double seconds = 0;             // of this step
  double total_seconds = 0;       // of the run
  double flops = 0;               // of this step
  std::int64_t live_bytes = 0;    // after it
  std::int64_t peak_bytes = 0;    // during it
  // Of this rank, where there are several: sent to others; spent with waiting for them and nothing
  // else; between the beginnings and ends of exchanges, part of which was spent with computing.
  std::int64_t sent_bytes = 0;
  double waited_seconds = 0, exchange_seconds = 0;
};

struct EvalReport {
  std::int64_t step = 0;
  Evaluation result;
  bool best = false;
  double seconds = 0;
};

struct Hooks {
  // Before the first step of a sitting; the state is that of the checkpoint it goes on from.
  std::function<void(const run::TrainState&)> on_begin = {};
  std::function<void(const StepReport&)> on_step = {};
  std::function<void(const EvalReport&)> on_eval = {};
  std::function<void(const std::string& path)> on_save = {};  // a checkpoint was written
  // A damaged checkpoint was passed over: a sentence for the user.
  std::function<void(const std::string& sentence)> on_damage = {};
  // Asked before the first step and after each; true ends the run after a checkpoint. Before its
  // very first step a run has nothing to save.
  std::function<bool()> should_stop = {};
};

enum class Ending : std::uint8_t {
  finished,  // all steps are done
  patience,  // evaluations stopped getting better
  stopped,   // should_stop() said so
};

struct Outcome {
  Ending ending = Ending::finished;
  run::TrainState state;
  std::optional<Evaluation> last_evaluation = {};  // of this sitting
  std::int64_t peak_bytes = 0;                     // of all steps and evaluations of this sitting
};

}  // namespace heddle::train
