#include "compare/comparison.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <thread>

#include "base/divide.h"
#include "base/stopwatch.h"
#include "compare/run_end.h"
#include "compare/statistics.h"
#include "compare/timing.h"
#include "heddle/error.h"
#include "heddle/runtime.h"
#include "io/files/checksums/seal.h"
#include "io/files/file.h"
#include "language/language.h"
#include "optim/split.h"
#include "plan/plan_run.h"
#include "run/recipe_file.h"
#include "run/state.h"
#include "train/fingerprint.h"
#include "train/job.h"

namespace heddle::compare {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kEvalSequences = 16;  // at a time: many small batches tell the noise
constexpr int kPilotRounds = 3, kPilotSteps = 4;

std::string manifest_path(const std::string& out) { return out + "/compare.json"; }

// Whether something is in the directory that a comparison did not put there.
bool holds_other_things(const std::string& out) {
  std::error_code error;
  if (!fs::exists(fs::status(out, error))) return false;
  if (!fs::is_directory(out, error)) return true;
  for (const fs::directory_entry& entry : fs::directory_iterator(out, error)) {
    const std::string name = entry.path().filename().string();
    if (name != "lock" && name != "ranks" && !name.ends_with(".tmp")) return true;
  }
  return false;
}

[[noreturn]] void refuse_other(const std::string& out, const std::string& what,
                               const std::string& expected, const std::string& got) {
  fail(ErrorCode::invalid_argument, out, "holds another comparison: " + what,
       expected + ", or another --out", got);
}

std::optional<run::TrainState> state_of(const std::string& directory) {
  return run::is_run(directory) ? run::newest_state(run::RunPaths{directory}) : std::nullopt;
}

// A finished run is not opened any more, so nothing else would notice.
void check_data(const std::string& directory, const data::Dataset& data,
                const recipe::TrainConfig& config, const std::string& name) {
  const auto state = state_of(directory);
  if (state && state->data != train::fingerprint(data, config))
    fail(ErrorCode::invalid_argument, run::RunPaths{directory}.checkpoint(state->step),
         name + " was trained on other data",
         "the files of [data] as they were when the comparison began, or another --out");
}

double mean_tokens(const data::Dataset& data, const recipe::Recipe& recipe) {
  constexpr std::int64_t kLookedAt = 64;
  const std::int64_t count = std::min(kLookedAt, data.epoch_steps(recipe.train.batch));
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i)
    sum += static_cast<double>(optim::tokens_of(
        data.training_batch(i, recipe.train.batch, recipe.train.seed), recipe.model));
  return sum / static_cast<double>(count);
}

}  // namespace

// How far the whole is, and how long it will take.
struct Comparison::Progress {
  const ComparisonHooks& hooks;
  std::vector<std::int64_t> done;       // steps of each run
  std::vector<double> variant_seconds;  // of a step, smoothed; 0: not known
  std::int64_t round = 0;
  Stopwatch sitting = {};
  double stepping = 0;  // seconds of this sitting that were steps
  bool stopped = false;
  std::int64_t runs_done = 0;  // by all ranks, when it was looked last
  double looked_for_stop = -1, looked_for_done = -1;
  std::map<std::pair<DType, std::uint64_t>, plan::MachineSpeed> machines = {};
  std::set<std::size_t> diverged = {};  // runs without further turns

  // Nothing is left to do of it.
  void give_up(const Comparison& c, std::size_t run) {
    diverged.insert(run);
    done[run] = c.steps_[c.runs_[run].variant];
  }

  // Whether it is so long ago that what other ranks left was looked at; if so, it is now.
  bool is_due(double& last, double seconds) const {
    const double now = sitting.seconds();
    if (last >= 0 && now - last < seconds) return false;
    last = now;
    return true;
  }

  void note(const std::string& sentence) const {
    if (hooks.on_note) hooks.on_note(sentence);
  }

  plan::MachineProbe machine() {
    if (!hooks.machine) return {};
    return [this](DType precision, std::int64_t bytes) {
      const std::uint64_t about = std::bit_ceil(static_cast<std::uint64_t>(bytes));
      const auto [entry, is_new] = machines.try_emplace({precision, about});
      if (is_new) entry->second = hooks.machine(precision, bytes);
      return entry->second;
    };
  }

  void count(std::size_t variant, double seconds) {
    double& mean = variant_seconds[variant];
    mean += (mean == 0 ? 1 : 0.1) * (seconds - mean);
    stepping += seconds;
  }

  double left(const Comparison& c) const {
    std::vector<double> known;
    for (const double s : variant_seconds)
      if (s > 0) known.push_back(s);
    if (known.empty()) return 0;
    const double usual = mean_of(known);
    double sum = 0;
    for (std::size_t i = 0; i < c.runs_.size(); ++i) {
      const std::size_t v = c.runs_[i].variant;
      const double step = variant_seconds[v] > 0 ? variant_seconds[v] : usual;
      sum += static_cast<double>(c.steps_[v] - done[i]) * step;
    }
    // Checkpoints and evaluations take time too.
    return sum * std::clamp(sitting.seconds() / stepping, 1.0, 3.0);
  }

  double share(const Comparison& c) const {
    double all = 0, sum = 0;
    for (std::size_t i = 0; i < done.size(); ++i) {
      all += static_cast<double>(c.steps_[c.runs_[i].variant]);
      sum += static_cast<double>(done[i]);
    }
    return sum / all;
  }
};

Comparison::Comparison(ComparisonSpec spec, const Seat& seat)
    : spec_(std::move(spec)), variants_(make_variants(spec_)) {
  if (spec_.out.empty())
    fail(ErrorCode::invalid_argument, "--out", "is empty", "a directory for the comparison");
  while (spec_.out.size() > 1 && spec_.out.ends_with("/")) spec_.out.pop_back();
  const recipe::Recipe& first = variants_[0].recipe;
  seeds_ = spec_.seeds.value_or(first.compare.seeds.value_or(1));
  if (seeds_ < 1 || seeds_ > kMostSeeds)
    fail(ErrorCode::invalid_argument, "--seeds", "number of seeds", "1 to 1000",
         std::to_string(seeds_));
  first_seed_ = static_cast<std::int64_t>(first.train.seed);
  if (first_seed_ > std::numeric_limits<std::int64_t>::max() - seeds_)
    fail(ErrorCode::invalid_argument, "compare", "key train.seed",
         "a first seed with room for " + std::to_string(seeds_) + " of them",
         std::to_string(first_seed_));
  const std::string budget = spec_.budget.empty() ? first.compare.budget : spec_.budget;
  if (!budget.empty() && sets(spec_.set, "train.steps"))
    fail(ErrorCode::invalid_argument, "--set", "key train.steps",
         "one of the two: the budget (of --budget, or of the recipe's [compare]) says how many "
         "steps there are",
         "both, and the budget " + budget);
  budget_ = parse_budget(budget.empty() ? "steps=" + std::to_string(first.train.steps) : budget);
  if (holds_other_things(spec_.out) && !io::file_exists(manifest_path(spec_.out)))
    fail(ErrorCode::invalid_argument, spec_.out, "is there already and holds no comparison",
         "a new directory");
  open_data();
  take_directory(seat);
}

void Comparison::open_data() {
  for (std::size_t i = 0; i < variants_.size(); ++i) {
    recipe::Recipe& r = variants_[i].recipe;
    for (std::size_t j = 0; j < i && data_.size() <= i; ++j)
      if (variants_[j].recipe.model.kind == r.model.kind) data_.push_back(data_[j]);
    if (data_.size() <= i) data_.push_back(recipe::open_data(r));
    of_variant(variants_[i].place, [&] {
      recipe::take_sizes(r, *data_[i]);
      plans_.push_back(plan::plan_run(r, plan::batch_shapes(*data_[i], r.train)));
      plan::check_fits(r, *data_[i], plans_[i]);
    });
    recipe::TrainConfig config = r.train;
    config.seed = 1;
    recipe::TrainConfig first = variants_[0].recipe.train;
    first.seed = 1;
    same_batches_ = same_batches_ &&
                    train::fingerprint(*data_[i], config) == train::fingerprint(*data_[0], first);
  }
}

void Comparison::take_directory(const Seat& seat) {
  // A refused comparison leaves nothing on disk: a budget too small for a step or for train.warmup
  // is known before there is a directory. Of ranks one measures, when it has come in.
  const bool measures = budget_.kind == Budget::Kind::seconds;
  if (!io::file_exists(manifest_path(spec_.out)) && (seat.alone() || !measures)) {
    settle_steps();
    for (std::size_t v = 0; v < variants_.size(); ++v)
      of_variant(variants_[v].place,
                 [&] { return recipe_of(variants_[v], steps_[v], first_seed_); });
  }
  io::make_directories(spec_.out);
  if (seat.alone()) {
    lock_ = run::lock_directory(spec_.out, "another process is at this comparison");
    settle_runs(true);
    return;
  }
  lock_ = share_directory(spec_.out);
  team_.emplace(spec_.out, seat, facts(seat), [this](bool is_first) { settle_runs(is_first); });
  ranks_there_ = team_->meet();
  team_->check_alike();
}

void Comparison::settle_runs(bool is_first) {
  if (!read_manifest() && steps_.empty()) settle_steps();
  for (std::int64_t seed = first_seed_; seed < first_seed_ + seeds_; ++seed)
    for (std::size_t v = 0; v < variants_.size(); ++v)
      runs_.push_back(
          {v, seed, spec_.out + "/runs/" + variants_[v].folder + "/seed-" + std::to_string(seed)});
  // Runs that cannot be built, or do not continue what is there, are refused before anything runs.
  for (const ComparedRun& run : runs_)
    if (is_first) check_continues(run);
  write_manifest();
}

void Comparison::check_continues(const ComparedRun& run) const {
  const recipe::Recipe recipe = recipe_of(variants_[run.variant], steps_[run.variant], run.seed);
  if (!run::is_run(run.directory)) return;
  recipe::check_resumable(run::recipe_begun_with(run::RunPaths{run.directory}), recipe);
  check_data(run.directory, *data_[run.variant], recipe.train, name_of(run));
}

// What would give other numbers.
Team::Facts Comparison::facts(const Seat& seat) const {
  std::string asked = budget_.text + "\n" + std::to_string(seeds_) + "\n";
  for (const Variant& v : variants_) asked += v.name + "\n" + v.recipe.toml + "\n";
  return {{"program", seat.program},
          {"instruction set (HEDDLE_ISA sets a lower one)", instruction_set()},
          {"comparison: recipes, variants, seeds or budget", "sum " + io::crc32_of(asked)},
          {"data of [data]",
           "sum " + std::to_string(train::fingerprint(*data_[0], variants_[0].recipe.train))}};
}

std::string Comparison::name_of(const ComparedRun& run) const {
  return "variant " + variants_[run.variant].name + ", seed " + std::to_string(run.seed);
}

// More seeds than before are welcome: runs that are there stay as they are.
bool Comparison::read_manifest() {
  const std::string path = manifest_path(spec_.out);
  if (!io::file_exists(path)) return false;
  const io::Json j = io::read_sealed_json(path, {"budget", "first_seed", "seeds", "variants"});
  const std::string budget = j.at("budget").string();
  if (budget != budget_.text) refuse_other(spec_.out, "the budget", budget, budget_.text);
  const std::int64_t first_seed = j.integer_or("first_seed", 1);
  if (first_seed != first_seed_)
    refuse_other(spec_.out, "the first seed (train.seed)", std::to_string(first_seed),
                 std::to_string(first_seed_));
  const io::Json all = j.at("variants");
  steps_.clear();
  for (std::size_t i = 0; i < std::max(all.size(), variants_.size()); ++i) {
    const std::string old = i < all.size() ? all.at(i).at("name").string() : "none";
    const std::string now = i < variants_.size() ? variants_[i].name : "none";
    if (old != now)
      refuse_other(spec_.out, "variant " + std::to_string(i + 1), "\"" + old + "\"",
                   "\"" + now + "\"");
    steps_.push_back(all.at(i).at("steps").integer(1));
  }
  return true;
}

void Comparison::write_manifest() const {
  nlohmann::json all = nlohmann::json::array();
  for (std::size_t i = 0; i < variants_.size(); ++i)
    all.push_back({{"name", variants_[i].name}, {"steps", steps_[i]}});
  io::write_sealed_json(manifest_path(spec_.out), {{"budget", budget_.text},
                                                   {"first_seed", first_seed_},
                                                   {"seeds", seeds_},
                                                   {"variants", all}});
}

void Comparison::settle_steps() {
  std::vector<StepCost> costs(variants_.size());
  for (std::size_t i = 0; i < variants_.size(); ++i) {
    costs[i].flops = plans_[i].usual.flops_per_step;
    costs[i].tokens = mean_tokens(*data_[i], variants_[i].recipe);
  }
  if (budget_.kind == Budget::Kind::seconds) {
    std::vector<std::vector<double>> seconds(variants_.size());
    for (int round = 0; round < kPilotRounds; ++round)
      for (std::size_t i = 0; i < variants_.size(); ++i) seconds[i].push_back(pilot_seconds(i));
    for (std::size_t i = 0; i < variants_.size(); ++i) costs[i].seconds = median_of(seconds[i]);
  }
  for (std::size_t i = 0; i < variants_.size(); ++i)
    steps_.push_back(steps_of(budget_, costs[i], variants_[i].name));
}

// The usual step among a few; the first one, which fetches memory, does not count.
double Comparison::pilot_seconds(std::size_t variant) const {
  const recipe::Recipe& r = variants_[variant].recipe;
  recipe::TrainConfig config = r.train;
  config.steps = kPilotSteps;
  config.warmup = 0;
  config.learning_rate = 1e-12;  // time is all that counts: a variant may diverge later, not here
  config.eval_every = 0;
  config.eval_batches = {};
  std::vector<double> seconds;
  train::Hooks hooks;
  hooks.on_step = [&seconds](const train::StepReport& report) {
    if (report.step > 1) seconds.push_back(report.seconds);
  };
  model::BuildOptions options;
  options.seed = config.seed;
  options.device = config.device;
  const auto model = model::build_model(r.model, options);
  train::Trainer(*model, *data_[variant], config, nullptr, hooks).run();
  return median_of(seconds);
}

// The same sequences for all, however large their batches are: as many as an evaluation of the
// first variant has.
train::EvaluateOptions Comparison::evaluation() const {
  const recipe::TrainConfig& first = variants_[0].recipe.train;
  train::EvaluateOptions options;
  options.batch = kEvalSequences;
  if (first.eval_batches) {
    const std::int64_t batch = std::max<std::int64_t>(1, first.batch / first.accumulate);
    options.max_batches = ceil_div(*first.eval_batches * batch, kEvalSequences);
  }
  return options;
}

bool Comparison::run(const ComparisonHooks& hooks) {
  Progress progress{hooks, std::vector<std::int64_t>(runs_.size()),
                    std::vector<double>(variants_.size()), 0};
  return team_ ? run_dealt(progress) : run_in_turns(progress);
}

// How far a run is, by its files.
void Comparison::look_up(std::size_t run, Progress& progress) const {
  const auto state = state_of(runs_[run].directory);
  progress.done[run] = state ? state->step : 0;
  if (read_divergence(runs_[run].directory)) progress.give_up(*this, run);
}

bool Comparison::run_in_turns(Progress& progress) {
  for (std::size_t i = 0; i < runs_.size(); ++i) look_up(i, progress);
  std::vector<std::size_t> order(runs_.size());
  std::iota(order.begin(), order.end(), 0);
  for (std::int64_t round = 1; round <= kRounds; ++round) {
    progress.round = round;
    for (const std::size_t i : order)
      if (has_turn(i, round, progress) &&
          !advance(runs_[i], steps_[runs_[i].variant] * round / kRounds, progress))
        return false;
    // There and back, so that no variant is always the first.
    std::ranges::reverse(order);
  }
  return true;
}

// Whichever run no rank has is the next one. At the end those of the others are waited for: one
// that dies leaves its run.
bool Comparison::run_dealt(Progress& progress) {
  std::vector<bool> done(runs_.size());
  while (true) {
    bool all = true, worked = false;
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      if (done[i] || team_->is_done(i)) {
        done[i] = true;
        continue;
      }
      const std::optional<io::Descriptor> claim = team_->claim(i);
      if (!claim) {
        all = false;
        continue;
      }
      if (!finish(i, progress)) return false;
      team_->set_done(i);
      done[i] = worked = true;
    }
    if (all) return true;
    if (must_stop(progress)) return false;
    if (worked) continue;
    if (progress.hooks.on_wait)
      progress.hooks.on_wait(std::ranges::count(done, true),
                             static_cast<std::int64_t>(runs_.size()));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

// Another rank may have begun it, here or in an earlier sitting. A tenth at a time, as in turns: so
// the files are the same, and as little is lost with a rank.
bool Comparison::finish(std::size_t run, Progress& progress) {
  check_continues(runs_[run]);
  look_up(run, progress);
  if (!has_turn(run, kRounds, progress)) return true;
  note_rank(runs_[run].directory, team_->ranks(), team_->host());
  for (std::int64_t round = 1; round <= kRounds; ++round) {
    progress.round = round;
    if (has_turn(run, round, progress) &&
        !advance(runs_[run], steps_[runs_[run].variant] * round / kRounds, progress))
      return false;
  }
  return true;
}

bool Comparison::must_stop(Progress& progress) const {
  constexpr double kSeconds = 0.1;  // between looks at a file that another machine may have
  if (progress.hooks.should_stop && progress.hooks.should_stop()) progress.stopped = true;
  if (team_ && !progress.stopped && progress.is_due(progress.looked_for_stop, kSeconds))
    progress.stopped = team_->stop_signal() != 0;
  return progress.stopped;
}

// The last turn has the evaluation in it, which may be all that is left.
bool Comparison::has_turn(std::size_t run, std::int64_t round, const Progress& progress) const {
  const std::int64_t target = steps_[runs_[run].variant] * round / kRounds;
  if (target == 0 || progress.diverged.contains(run)) return false;
  if (progress.done[run] < target) return true;
  return round == kRounds && validates() && !has_final(runs_[run].directory);
}

// False when it was stopped.
bool Comparison::advance(const ComparedRun& run, std::int64_t target, Progress& progress) {
  try {
    return train(run, target, progress);
  } catch (const train::Diverged& e) {
    const Divergence divergence{e.step(), e.reason()};
    write_divergence(run.directory, divergence);
    progress.give_up(*this, static_cast<std::size_t>(&run - runs_.data()));
    progress.note(tr("{} diverged at step {} ({}); the others go on", name_of(run), e.step(),
                     divergence.translated()));
    return true;
  } catch (const Error& e) {
    fail(e.code(), name_of(run) + ": " + e.where(), e.problem(), e.expected(), e.got());
  }
}

void Comparison::tell_progress(TurnReport& report, Progress& progress) const {
  if (!team_) {
    report.share_done = progress.share(*this);
    report.seconds_left = progress.left(*this);
    return;
  }
  report.runs = static_cast<std::int64_t>(runs_.size());
  if (progress.is_due(progress.looked_for_done, 1)) {
    progress.runs_done = 0;
    for (std::size_t i = 0; i < runs_.size(); ++i) progress.runs_done += team_->is_done(i) ? 1 : 0;
  }
  report.runs_done = progress.runs_done;
}

bool Comparison::train(const ComparedRun& run, std::int64_t target, Progress& progress) {
  const std::size_t v = run.variant;
  const auto index = static_cast<std::size_t>(&run - runs_.data());
  train::Job job =
      train::Job::open(recipe_of(variants_[v], steps_[v], run.seed), run.directory, data_[v]);
  if (!plan::has_plan(run.directory, [&](const std::string& sentence) { progress.note(sentence); }))
    plan::write_plan(run.directory, job.plan().on(plan::speed_for(job.recipe().train, job.plan(),
                                                                  progress.machine())
                                                      .value_or(plan::MachineSpeed{})));
  train::Hooks hooks;
  TurnReport report{&variants_[v], run.seed, seeds_, progress.round, kRounds, {}, steps_[v]};
  hooks.on_begin = [&](const run::TrainState& state) { progress.done[index] = state.step; };
  hooks.on_damage = [&](const std::string& sentence) { progress.note(sentence); };
  hooks.on_step = [&](const train::StepReport& step) {
    progress.done[index] = step.step;
    progress.count(v, step.seconds);
    report.step = step;
    tell_progress(report, progress);
    if (progress.hooks.on_step) progress.hooks.on_step(report);
  };
  hooks.should_stop = [&] { return must_stop(progress) || progress.done[index] >= target; };
  job.run(hooks);
  if (progress.stopped) return false;
  if (target == steps_[v] && validates()) evaluate_last(run, job.model());
  return true;
}

void Comparison::evaluate_last(const ComparedRun& run, const model::Model& model) const {
  FinalEvaluation final_losses;
  train::EvaluateOptions options = evaluation();
  options.precision = variants_[run.variant].recipe.train.precision;
  options.each = [&final_losses](double loss, std::int64_t counted) {
    final_losses.losses.push_back(loss);
    final_losses.weights.push_back(static_cast<double>(counted));
  };
  train::evaluate_at(steps_[run.variant], model, *data_[run.variant], options);
  write_final(run.directory, final_losses);
}

}  // namespace heddle::compare
