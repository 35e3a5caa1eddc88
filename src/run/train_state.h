// Progress of a training run, besides its weights and the optimiser's state.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "heddle/memory.h"

namespace heddle::run {

struct TrainState {
  std::int64_t step = 0;    // updates done
  std::int64_t tokens = 0;  // read by the model in all of them
  double seconds = 0;       // spent, by earlier sittings too

  // Evaluations: the best one, and how many there were since.
  double best_loss = std::numeric_limits<double>::infinity();
  std::int64_t best_step = 0;  // 0: none yet
  std::int64_t stale = 0;

  // Steps since the last line of the log, so that the next one is the same after a resume.
  double loss_sum = 0;     // of loss · targets
  double loss_weight = 0;  // of targets

  // The step that took the most memory so far, and what for. 0: not measured.
  std::int64_t peak_bytes = 0;
  BytesByPurpose peak_by_purpose = {};  // these add up to it

  std::uint64_t log_bytes = 0;  // length of the log when this was saved
  std::uint64_t data = 0;       // fingerprint() of the data
  // The recipe in force, as TOML: what the run was begun with is known even where recipe.toml was
  // edited. Empty: a checkpoint of before it was kept.
  std::string recipe = {};
};

}  // namespace heddle::run
