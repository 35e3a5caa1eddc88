// What is checked, and how it is run.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/cpu/isa.h"
#include "check/report.h"
#include "check/tolerance.h"
#include "check/values.h"

namespace heddle::check {

// How something is computed.
struct Setting {
  DType dtype = DType::f64;
  cpu::Isa isa = cpu::Isa::generic;
  int threads = 1;

  void use() const;  // whoever calls it has a cpu::SettingsScope
};

struct Subject {
  model::ModelConfig config;
  double label_smoothing = 0;
  bool documents = false;  // several in a sequence
  std::vector<int> threads;
  std::function<void(const std::string&)> progress;
  Weights weights = {};
  model::Batch batch = {};

  // With its own weights and batch.
  Subject(const model::ModelConfig& model, const Subject& like);
  Subject(const model::ModelConfig& model, double smoothing, bool with_documents);

  std::unique_ptr<model::Model> model(DType dtype) const {
    return make_model(config, weights, dtype);
  }
};

// Every instruction set of this machine, all types, all numbers of threads.
std::vector<Setting> all_settings(const Subject& subject);
// f64 on the plainest instruction set: what others are held to.
Setting reference_setting();
// The best instruction set, one thread.
Setting best_setting(DType dtype);

struct Evaluation {
  Tensor loss;    // with dropout, as in training
  Tensor logits;  // without
  std::vector<Named> gradients;
};

struct EvaluationOptions {
  bool recompute = false;
  double label_smoothing = 0;
};

nn::Pass evaluation_pass(DType dtype);
nn::Pass training_pass(DType dtype, bool recompute = false);

Evaluation evaluate(const model::Model& model, const model::Batch& batch, DType dtype,
                    const EvaluationOptions& options);

void add_case(Report& report, const std::string& path, const Setting& setting,
              const WorstError& worst, double tolerance);

// One case for both measures: the one that is nearer to its tolerance.
struct Errors {
  WorstError largest = {}, mean = {};

  void add(const Errors& other);
};
Errors errors_of(const std::vector<Named>& got, const std::vector<Named>& want);
void add_case(Report& report, const std::string& path, const Setting& setting, const Errors& errors,
              const Way& way);

}  // namespace heddle::check
