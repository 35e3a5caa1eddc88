// How good a model is on data that it was not trained on.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "data/dataset.h"
#include "distributed/communicator.h"
#include "model/model.h"
#include "train/evaluation.h"

namespace heddle::train {

struct EvaluateOptions {
  data::Split split = data::Split::validation;
  // Sequences at a time. It does not change the result, but for a mixture of experts with a
  // capacity: there the tokens of a batch compete.
  std::int64_t batch = 16;
  std::optional<std::int64_t> max_batches = {};  // the first ones; absent: all
  DType precision = DType::f32;
  // Ranks that share the batches out among themselves, and all get the result, to the bit what one
  // of them would find. Null: none.
  distributed::Communicator* group = nullptr;
  // Told the mean loss of each batch and how many targets counted in it.
  std::function<void(double, std::int64_t)> each = {};
  // Called after each batch with the number done and the number of all.
  std::function<void(std::int64_t, std::int64_t)> progress = {};
};

// Error when the data has no such split, or when the loss is not finite (ErrorCode::failed).
Evaluation evaluate(const model::Model& model, const data::Dataset& data,
                    const EvaluateOptions& options);

}  // namespace heddle::train
