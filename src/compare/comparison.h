// A comparison under way: every variant × seed is a run of its own below DIR/runs, and they go
// forward in turns, so that a machine that is busy for a while is busy for all of them. Several
// ranks have no turns: each run is trained by one of them from its start to its end (team.h).
//
//   Comparison comparison(spec);
//   if (comparison.run(hooks)) write_results(DIR, collect(comparison));
//
// Only one run is in memory at a time; between its turns it is its checkpoint. So what a run takes
// is measured as if it were alone, and a comparison that is killed goes on as any run does: the
// same spec again, and the result is the same apart from times.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compare/budget.h"
#include "compare/team.h"
#include "compare/variant.h"
#include "data/dataset.h"
#include "io/files/descriptor.h"
#include "plan/plan_run.h"
#include "train/trainer.h"

namespace heddle::compare {

inline constexpr std::int64_t kRounds = 10;  // turns that every run gets

struct TurnReport {
  const Variant* variant = nullptr;
  std::int64_t seed = 1, seeds = 1;
  std::int64_t round = 0, rounds = kRounds;  // from 1
  train::StepReport step;
  std::int64_t steps = 0;   // of this run, in all
  double share_done = 0;    // of all steps of the comparison
  double seconds_left = 0;  // about; 0: not known yet
  // Of several ranks instead of the last two: what is done by all of them.
  std::int64_t runs_done = 0, runs = 0;
};

struct ComparisonHooks {
  std::function<void(const TurnReport&)> on_step = {};
  // Measures the machine's speed, for the plans of runs; called once for each precision and about
  // as much memory. Absent: plans have no time.
  plan::MachineProbe machine = {};
  std::function<bool()> should_stop = {};  // true: a checkpoint is written and run() returns
  // There is nothing more for this rank to begin; others are at their last runs.
  std::function<void(std::int64_t runs_done, std::int64_t runs)> on_wait = {};
  // A sentence for the user: a run diverged, or one of its checkpoints was damaged.
  std::function<void(const std::string& sentence)> on_note = {};
};

struct ComparedRun {
  std::size_t variant = 0;  // index
  std::int64_t seed = 1;
  std::string directory;
};

class Comparison {
 public:
  // Reads the data, checks everything and takes the directory. A directory with another comparison,
  // or with anything else, is an Error.
  // Of several ranks all do so, each with its seat; ranks that differ are refused.
  explicit Comparison(ComparisonSpec spec, const Seat& seat = {});

  // False when it was stopped. A run that diverges is marked (read_divergence()) and has no more
  // turns, here and in later sittings; the others go on.
  bool run(const ComparisonHooks& hooks);

  // The ranks; nothing for a process that is alone.
  const Team* team() const { return team_ ? &*team_ : nullptr; }
  int ranks_there() const { return ranks_there_; }

  const ComparisonSpec& spec() const { return spec_; }
  const std::vector<Variant>& variants() const { return variants_; }
  const std::vector<ComparedRun>& runs() const { return runs_; }
  const Budget& budget() const { return budget_; }
  std::int64_t steps(std::size_t variant) const { return steps_[variant]; }
  std::int64_t seeds() const { return seeds_; }
  const data::Dataset& data(std::size_t variant) const { return *data_[variant]; }
  // Of a usual batch.
  const plan::Plan& plan(std::size_t variant) const { return plans_[variant].usual; }
  // Whether the loss that counts is the one on the validation split.
  bool validates() const { return data_[0]->has_validation(); }
  // Whether all variants read the same batches: another batch size means other ones.
  bool same_batches() const { return same_batches_; }

 private:
  struct Progress;

  void open_data();
  void take_directory(const Seat& seat);
  void settle_runs(bool is_first);
  Team::Facts facts(const Seat& seat) const;
  void check_continues(const ComparedRun& run) const;
  bool read_manifest();
  void settle_steps();
  double pilot_seconds(std::size_t variant) const;
  void write_manifest() const;
  bool has_turn(std::size_t run, std::int64_t round, const Progress& progress) const;
  bool run_in_turns(Progress& progress);
  bool run_dealt(Progress& progress);
  bool finish(std::size_t run, Progress& progress);
  void look_up(std::size_t run, Progress& progress) const;
  bool must_stop(Progress& progress) const;
  void tell_progress(TurnReport& report, Progress& progress) const;
  bool advance(const ComparedRun& run, std::int64_t target, Progress& progress);
  bool train(const ComparedRun& run, std::int64_t target, Progress& progress);
  void evaluate_last(const ComparedRun& run, const model::Model& model) const;
  train::EvaluateOptions evaluation() const;
  std::string name_of(const ComparedRun& run) const;  // "variant norm=rms, seed 2"

  ComparisonSpec spec_;
  std::vector<Variant> variants_;
  Budget budget_;
  std::int64_t seeds_ = 1, first_seed_ = 1;
  std::vector<std::shared_ptr<const data::Dataset>> data_;  // of each variant; mostly the same one
  std::vector<plan::RunPlan> plans_;
  std::vector<std::int64_t> steps_;
  std::vector<ComparedRun> runs_;
  bool same_batches_ = true;
  io::Descriptor lock_;
  std::optional<Team> team_;
  int ranks_there_ = 1;
};

}  // namespace heddle::compare
