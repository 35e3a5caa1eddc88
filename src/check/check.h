// Every fast path of a model against float64: what `heddle check` runs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "check/report.h"
#include "model/config.h"

namespace heddle::check {

struct Options {
  std::vector<int> threads = {1, 2, 3};
  double label_smoothing = 0;
  bool documents = false;  // sequences hold several that do not see each other (data.documents)
  std::function<void(const std::string&)> progress = [](const std::string&) {};
};

// `model` is a small one: see reduced(). Instruction set and threads are afterwards as before.
Report check_model(const model::ModelConfig& model, const Options& options = {});

}  // namespace heddle::check
