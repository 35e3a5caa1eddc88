// Training: steps, evaluations, checkpoints, the log.
//
// The result of a step is a function of the configuration, the data and the step's number alone, so
// that a run that was killed and resumed equals one that was not, byte for byte.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/dataset.h"
#include "distributed/communicator.h"
#include "heddle/error.h"
#include "language/sentence.h"
#include "model/model.h"
#include "optim/group_step.h"
#include "optim/optimizer.h"
#include "optim/repeated_step.h"
#include "recipe/train_config.h"
#include "run/log/log_files.h"
#include "run/run_directory.h"
#include "run/state.h"
#include "train/evaluate/evaluate.h"
#include "train/hooks.h"

namespace heddle::train {

// Training cannot go on: a loss or a gradient that is not finite, which the same step would give
// again.
class Diverged : public Error {
 public:
  // `what`: "loss nan"; `cause`: the first op with a bad value, or empty.
  Diverged(std::int64_t step, const Sentence& what, const Sentence& cause);

  std::int64_t step() const noexcept { return step_; }
  const std::vector<Sentence>& reason() const noexcept { return reason_; }  // both, or what

 private:
  std::int64_t step_;
  std::vector<Sentence> reason_;
};

// evaluate() after a step of training: a loss that is not finite is Diverged.
Evaluation evaluate_at(std::int64_t step, const model::Model& model, const data::Dataset& data,
                       const EvaluateOptions& options);

// Steps between evaluations; 0: none. Error when the configuration asks for some and the data has
// no validation split.
std::int64_t evaluation_rhythm(const recipe::TrainConfig& config, const data::Dataset& data);

class Trainer {
 public:
  // All of them must outlive it. Without a directory nothing is written and nothing can be resumed.
  //
  // With config.parts it is one of the ranks of `group`; without a group, the only one. All of them
  // must have the same model, data and configuration, and call the same functions; rank 0 alone has
  // a directory.
  Trainer(model::Model& model, const data::Dataset& data, const recipe::TrainConfig& config,
          run::RunDirectory* directory = nullptr, Hooks hooks = {},
          distributed::Communicator* group = nullptr);

  // The recipe in force, as TOML, for checkpoints to tell.
  void keep_recipe(std::string toml) { recipe_ = std::move(toml); }

  // Goes to the newest checkpoint that is intact, if there is one: weights, optimiser, log. Damaged
  // ones before it are renamed and reported to on_damage. Error when all are damaged, when an
  // intact one is of another model, or when it was trained on other data.
  bool resume();

  // Trains to the end. A loss or a gradient that is not finite throws Diverged, which names the
  // step and the first op with a bad value; the checkpoints stay as they were.
  Outcome run();

  const run::TrainState& state() const { return state_; }

 private:
  void check_alike();
  using OptimizerState = std::vector<nn::Parameter>;
  bool load_newest(OptimizerState& loaded);
  void load(std::int64_t step, OptimizerState& loaded);
  bool share_state(bool resumed, const OptimizerState& loaded);
  bool stop_wanted();
  void pass_over(const std::vector<std::int64_t>& steps, const std::vector<std::string>& reasons);
  void clear_gradients();
  StepReport take_step();
  model::Batch batch_of(std::int64_t step);
  void prepare_batch(std::int64_t step);
  void count_for_rate(const StepReport& report);
  void count_memory(StepReport& report);
  void count_traffic(StepReport& report);
  optim::GroupStep::Numbers compute_step(const model::Batch& batch, std::int64_t step, double rate);
  [[noreturn]] void refuse_step(const model::Batch& batch, const Sentence& what);
  void write_log(const StepReport& report);
  bool evaluation_due() const;
  void run_evaluation(Outcome& outcome);
  bool out_of_patience() const;
  void save();
  void write_checkpoint(const OptimizerState& optimizer);
  void append(const run::LogLine& line);

  model::Model& model_;
  const data::Dataset& data_;
  recipe::TrainConfig config_;
  run::RunDirectory* directory_;
  Hooks hooks_;
  distributed::Communicator alone_;
  distributed::Communicator& group_;
  std::unique_ptr<optim::Optimizer> optimizer_;  // one of the two:
  std::unique_ptr<optim::GroupStep> in_parts_;   // with config.parts
  optim::RepeatedStep repeated_;
  std::optional<std::pair<std::int64_t, model::Batch>> ahead_;  // a step and its batch
  run::TrainState state_;
  std::string recipe_;
  std::unique_ptr<run::LogFiles> log_;
  std::int64_t eval_every_ = 0;  // 0: never
  std::int64_t saved_step_ = -1;
  // For the rate of the next line of the log. The first step of a sitting, which fetches memory and
  // prepares weights, does not count where others do.
  struct Interval {
    std::int64_t tokens = 0;
    double seconds = 0;
    std::int64_t steps = 0;
    distributed::Traffic traffic = {};
    bool cold = false;  // all there is of it is that first step
  };
  Interval interval_;
  bool is_first_ = true;  // the next step, of this sitting
  std::int64_t peak_bytes_ = 0;
};

}  // namespace heddle::train
