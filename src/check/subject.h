// The subject of a check, and how it is run.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/cpu/isa.h"
#include "check/report.h"
#include "check/spread.h"
#include "check/tolerance.h"
#include "check/values.h"

namespace heddle::check {

// How something is computed.
struct Setting {
  DType dtype = DType::f64;
  cpu::Isa isa = cpu::Isa::generic;
  int threads = 1;

  void use() const;  // the caller must hold a cpu::SettingsScope
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

  // Rounding to f32 may change which experts are the strongest: where scores are large enough.
  bool uncertain_in_f32 = false;

  std::unique_ptr<model::Model> model(DType dtype) const {
    return make_model(config, weights, dtype);
  }
  // In f64, with the weights moved.
  std::unique_ptr<model::Model> model(const Jitter& jitter) const;

  // Whether tokens go to the same experts in this type as in f64.
  bool routes_alike(DType dtype) const {
    return !config.moe || dtype == DType::f64 || (dtype == DType::f32 && !uncertain_in_f32);
  }
  // With every token at all experts, so that there is nothing to choose.
  Subject at_all_experts() const;
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
  bool logits_on_tape = false;  // so that RoundedOps moves what they are made of
};

nn::Pass evaluation_pass(DType dtype);
nn::Pass training_pass(DType dtype, bool recompute = false);

Evaluation evaluate(const model::Model& model, const model::Batch& batch, DType dtype,
                    const EvaluationOptions& options);

// Of an evaluation. On a tape RoundedOps sees the ops they are made by.
Tensor logits_of(const model::Model& model, const model::Batch& batch, DType dtype, bool on_tape);

// Of loss, logits and gradients, in the groups "loss", "logits" and those of layers.
Spreads spreads_of_passes(const Subject& subject, const EvaluationOptions& options);

struct WorstError {
  double error = 0;
  std::string name = {};

  void add(double e, const std::string& where);
};

void add_case(Report& report, const std::string& path, const Setting& setting,
              const WorstError& worst, double tolerance);

// Notes that this many results of a path prove nothing.
void note_uncompared(Report& report, const std::string& path, const Setting& setting,
                     std::size_t count, std::size_t of);

// The difference that comes nearest to its limit (see allowed()). Results that rounding alone makes
// unpredictable are not compared, and a note says so; NaN is found all the same.
void add_case(Report& report, const std::string& path, const Setting& setting,
              const std::vector<Difference>& differences, const Allowance& allowance);

}  // namespace heddle::check
