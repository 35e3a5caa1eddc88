// Results of an evaluation (train/evaluate/evaluate.h makes them).
#pragma once

#include <cstdint>
#include <optional>

namespace heddle::train {

struct Evaluation {
  double loss = 0;        // mean cross-entropy over all counted targets, in nats, without smoothing
  double perplexity = 0;  // e^loss
  std::int64_t tokens = 0;              // targets that counted
  std::optional<double> accuracy = {};  // tag, classify: share of the targets that were hit
};

}  // namespace heddle::train
