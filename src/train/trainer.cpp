#include "train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/memory_error.h"
#include "base/stopwatch.h"
#include "heddle/cost.h"
#include "heddle/memory.h"
#include "heddle/runtime.h"
#include "language/language.h"
#include "nn/finite.h"
#include "nn/require.h"
#include "optim/schedule.h"
#include "optim/split.h"
#include "optim/step.h"
#include "run/weights.h"
#include "train/checkpoint.h"
#include "train/fingerprint.h"

namespace heddle::train {

namespace {

using StepNumbers = optim::GroupStep::Numbers;

// The update comes before the numbers are read, all at once: with a loss or a norm that is not
// finite it changes nothing. Whatever else is to be done is done while the device computes.
template <class Meanwhile>
StepNumbers update(optim::Optimizer& optimizer, const optim::StepSums& sums, std::int64_t step,
                   double rate, Meanwhile meanwhile) {
  const Tensor norm = optimizer.gradient_norm();
  optimizer.step(step, rate, norm, sums.losses);
  meanwhile();
  std::vector<Tensor> numbers = sums.losses;
  numbers.push_back(norm);
  const std::vector<Tensor> here = read(numbers);
  return {sums.loss(here), here.back().item()};
}

}  // namespace

Diverged::Diverged(std::int64_t step, const Sentence& what, const Sentence& cause)
    : Error(ErrorCode::failed, "train", "step " + std::to_string(step) + ": " + what.in_english(),
            "finite numbers: a lower train.learning_rate, a longer train.warmup or train.clip may "
            "help",
            cause.empty() ? "a sum that is too large, of finite values" : cause.in_english()),
      step_(step),
      reason_({what}) {
  if (!cause.empty()) reason_.push_back(cause);
}

Evaluation evaluate_at(std::int64_t step, const model::Model& model, const data::Dataset& data,
                       const EvaluateOptions& options) {
  try {
    return evaluate(model, data, options);
  } catch (const distributed::RankLost&) {
    throw;
  } catch (const distributed::PeerFailed&) {
    throw;
  } catch (const Error& e) {
    if (e.code() != ErrorCode::failed) throw;
    // The update of this very step may have been the bad one.
    throw Diverged(step, {mark("validation loss {}"), {e.got()}},
                   nn::explain_bad_value(model.parameters(), [] {}));
  }
}

std::int64_t evaluation_rhythm(const recipe::TrainConfig& config, const data::Dataset& data) {
  if (data.has_validation()) return config.eval_every.value_or(recipe::kEvalEvery);
  const auto refuse_if = [](bool asked_for, const char* key) {
    if (asked_for)
      nn::refuse("train", {key, "data.validation_share"},
                 "validation data (data.validation or data.validation_share)", "none");
  };
  refuse_if(config.patience.has_value(), "train.patience");
  refuse_if(config.eval_every.value_or(0) > 0, "train.eval_every");
  refuse_if(config.eval_batches.has_value(), "train.eval_batches");
  return 0;
}

Trainer::Trainer(model::Model& model, const data::Dataset& data, const recipe::TrainConfig& config,
                 run::RunDirectory* directory, Hooks hooks, distributed::Communicator* group)
    : model_(model),
      data_(data),
      config_(config),
      directory_(directory),
      hooks_(std::move(hooks)),
      group_(group != nullptr ? *group : alone_),
      eval_every_(evaluation_rhythm(config, data)) {
  validate(config);
  recipe::check_shard(config);
  if (!config.parts) {
    if (!group_.alone())
      fail(ErrorCode::invalid_argument, "train", "train.parts",
           "a number: that of the parts of a batch that the ranks compute", "none");
    optimizer_ = std::make_unique<optim::Optimizer>(config, model.parameters());
    return;
  }
  group_.set_timeout(std::chrono::seconds(config.timeout.value_or(recipe::kTimeout)));
  in_parts_ = std::make_unique<optim::GroupStep>(config, model.parameters(), group_);
}

// What would part the ranks later, or give other bits, is named before the first step.
void Trainer::check_alike() {
  if (group_.alone()) return;
  const std::vector<std::pair<std::string, std::string>> facts = {
      {"instruction set (HEDDLE_ISA sets a lower one)", instruction_set()},
      {"data of [data]", std::to_string(fingerprint(data_, config_))},
      {"validation data of [data]", std::to_string(validation_fingerprint(data_, config_))},
      {"number of parameters", std::to_string(model_.parameters().count())},
      {"train.steps", std::to_string(config_.steps)},
      {"train.parts", std::to_string(config_.parts.value_or(0))},
      {"train.shard", std::string(to_string(config_.shard))},
      {"train.seed", std::to_string(config_.seed)}};
  std::vector<std::vector<std::string>> told;  // of each fact, by all ranks
  told.reserve(facts.size());
  for (const auto& [name, value] : facts)
    told.push_back(group_.all_gather_text(value, "comparing the ranks"));
  // All see the same; one says it.
  group_.together("comparing the ranks", [&] {
    for (std::size_t f = 0; f < facts.size() && group_.is_first(); ++f)
      for (std::size_t i = 1; i < told[f].size(); ++i)
        if (told[f][i] != told[f].front())
          fail(ErrorCode::invalid_argument,
               group_.peer(static_cast<int>(i)).told(static_cast<int>(i)),
               "has another " + facts[f].first, told[f].front() + ", as rank 0", told[f][i]);
  });
}

// Rank 0 reads it; the others learn it.
bool Trainer::resume() {
  OptimizerState loaded;
  if (!in_parts_) return directory_ != nullptr && load_newest(loaded);
  check_alike();
  bool resumed = false;
  group_.together("reading the checkpoint",
                  [&] { resumed = directory_ != nullptr && load_newest(loaded); });
  return share_state(resumed, loaded);
}

bool Trainer::share_state(bool resumed, const OptimizerState& loaded) {
  in_parts_->share_weights();
  const std::string state =
      group_.broadcast_text(resumed ? to_json(state_) : "", 0, "the state of the run");
  if (state.empty()) return false;
  in_parts_->set_state(loaded);
  state_ = run::state_from_json(state, "the state of the run");
  saved_step_ = state_.step;
  return true;
}

bool Trainer::load_newest(OptimizerState& loaded) {
  std::vector<std::int64_t> steps = directory_->checkpoint_steps();
  std::vector<std::string> reasons;  // of the damaged ones, newest first
  std::ranges::reverse(steps);
  for (const std::int64_t step : steps) {
    try {
      load(step, loaded);
    } catch (const Error& e) {
      if (e.code() != ErrorCode::io) throw;
      reasons.emplace_back(e.what());
      continue;
    }
    if (state_.data != fingerprint(data_, config_))
      fail(ErrorCode::io, directory_->paths().checkpoint(step), "belongs to a run on other data",
           "the files of [data] as they were when the run began");
    pass_over(steps, reasons);
    saved_step_ = state_.step;
    return true;
  }
  if (steps.empty()) return false;
  std::string all;
  for (const std::string& reason : reasons) all += (all.empty() ? "" : "; ") + reason;
  fail(ErrorCode::io, directory_->paths().directory, "has no intact checkpoint to go on from",
       "one; without it the run has to begin anew, in another directory or after this one is "
       "removed (train.from begins with the weights in it)",
       all);
}

void Trainer::load(std::int64_t step, OptimizerState& loaded) {
  const std::string path = directory_->paths().checkpoint(step);
  loaded = in_parts_ ? in_parts_->empty_state() : optimizer_->state();
  state_ = load_checkpoint(path, model_.parameters(), loaded);
  if (state_.step != step)
    fail(ErrorCode::io, path, "is not the checkpoint that its name says", std::to_string(step),
         std::to_string(state_.step));
}

// Of `steps` the first are damaged, one for each reason; the next one was loaded.
void Trainer::pass_over(const std::vector<std::int64_t>& steps,
                        const std::vector<std::string>& reasons) {
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    const std::string aside = directory_->set_aside(steps[i]);
    if (hooks_.on_damage)
      hooks_.on_damage(tr("damaged checkpoint: {}. It is now {}; going on from step {}", reasons[i],
                          aside, state_.step));
  }
}

Outcome Trainer::run() {
  if (directory_ != nullptr && !log_)  // what came after the checkpoint will be written again
    log_ = std::make_unique<run::LogFiles>(directory_->paths(), config_.log, state_.log_bytes);
  if (directory_ != nullptr) state_.data = fingerprint(data_, config_);
  if (hooks_.on_begin) hooks_.on_begin(state_);
  Outcome outcome;
  const bool has_work = state_.step < config_.steps && !out_of_patience();
  if (has_work && stop_wanted()) outcome.ending = Ending::stopped;
  while (state_.step < config_.steps && !out_of_patience() && outcome.ending != Ending::stopped) {
    const StepReport report =
        with_stage("step " + std::to_string(state_.step + 1), [&] { return take_step(); });
    if (state_.step % config_.log_every == 0 || state_.step == config_.steps) write_log(report);
    if (hooks_.on_step) hooks_.on_step(report);
    if (evaluation_due()) run_evaluation(outcome);
    if (stop_wanted()) outcome.ending = Ending::stopped;
    if (state_.step % config_.save_every == 0 || outcome.ending == Ending::stopped) save();
  }
  if (state_.step != saved_step_ && state_.step > 0) save();
  if (outcome.ending != Ending::stopped && state_.step < config_.steps)
    outcome.ending = Ending::patience;
  outcome.state = state_;
  outcome.peak_bytes = peak_bytes_;
  return outcome;
}

// One that is asked stops all of them, after the same step.
bool Trainer::stop_wanted() {
  double wanted = hooks_.should_stop && hooks_.should_stop() ? 1 : 0;
  group_.all_reduce(std::span(&wanted, 1), "asking whether to stop");
  return wanted > 0;
}

void Trainer::clear_gradients() {
  for (nn::Parameter& p : model_.parameters().all()) p.tensor.clear_grad();
}

StepReport Trainer::take_step() {
  const Stopwatch watch;
  const CostMeter meter;
  reset_peak_memory(model_.device());
  const std::int64_t step = state_.step + 1;
  (void)group_.take_traffic();  // of what was between steps
  const model::Batch batch = batch_of(step);
  const double rate = optim::learning_rate_at(config_, step);
  const auto [loss, norm] = compute_step(batch, step, rate);
  if (!std::isfinite(loss)) refuse_step(batch, {mark("loss {}"), {nn::bad_text(loss)}});
  if (!std::isfinite(norm))
    refuse_step(batch, {mark("gradient of length {}"), {nn::bad_text(norm)}});

  StepReport report;
  report.step = step;
  report.loss = loss;
  report.rate = rate;
  report.grad_norm = norm;
  report.tokens = optim::tokens_of(batch, model_.config());
  report.flops = meter.cost().flops;
  count_memory(report);
  count_traffic(report);
  report.seconds = watch.seconds();
  count_for_rate(report);
  state_.step = step;
  state_.tokens += report.tokens;
  state_.seconds += report.seconds;
  state_.loss_sum += loss * static_cast<double>(batch.counted);
  state_.loss_weight += static_cast<double>(batch.counted);
  report.total_tokens = state_.tokens;
  report.total_seconds = state_.seconds;
  return report;
}

StepNumbers Trainer::compute_step(const model::Batch& batch, std::int64_t step, double rate) {
  if (in_parts_) return in_parts_->take(model_, batch, step, rate);
  return update(*optimizer_, repeated_.gradients(model_, batch, config_, step), step, rate,
                [&] { prepare_batch(step + 1); });
}

// The peak is that of the rank that needed most.
void Trainer::count_memory(StepReport& report) {
  const MemoryUse memory = memory_use(model_.device());
  report.live_bytes = memory.live;
  std::vector<std::int64_t> mine = {memory.peak};
  mine.insert(mine.end(), memory.at_peak.begin(), memory.at_peak.end());
  const auto all = group_.all_gather_values(std::span<const std::int64_t>(mine), "memory");
  std::size_t most = 0;
  for (std::size_t i = 0; i < all.size(); i += mine.size())
    if (all[i] > all[most]) most = i;
  report.peak_bytes = all[most];
  peak_bytes_ = std::max(peak_bytes_, report.peak_bytes);
  if (report.peak_bytes <= state_.peak_bytes) return;
  state_.peak_bytes = report.peak_bytes;
  for (std::size_t i = 0; i < state_.peak_by_purpose.size(); ++i)
    state_.peak_by_purpose[i] = all[most + 1 + i];
}

void Trainer::count_traffic(StepReport& report) {
  const distributed::Traffic traffic = group_.take_traffic();
  report.sent_bytes = traffic.sent;
  report.waited_seconds = traffic.waited;
  report.exchange_seconds = traffic.under_way;
}

model::Batch Trainer::batch_of(std::int64_t step) {
  if (ahead_ && ahead_->first == step) return std::exchange(ahead_, std::nullopt)->second;
  return data_.training_batch(step - 1, config_.batch, config_.seed);
}

// On the CPU it would take as long before the next step as within it.
void Trainer::prepare_batch(std::int64_t step) {
  ahead_ = std::nullopt;
  if (model_.device().is_cpu() || step > config_.steps) return;
  try {
    ahead_.emplace(step, data_.training_batch(step - 1, config_.batch, config_.seed));
  } catch (const Error&) {  // told by its own step
  }
}

// Rates of later sittings are to be like those of one long sitting.
void Trainer::count_for_rate(const StepReport& report) {
  if (interval_.cold) interval_ = {};
  interval_.cold = std::exchange(is_first_, false);
  interval_.tokens += report.tokens;
  interval_.seconds += report.seconds;
  interval_.steps += 1;
  interval_.traffic += {report.sent_bytes, report.waited_seconds, report.exchange_seconds};
}

// The step is computed once more, with every op under observation. Nothing was updated, so it gives
// the same values.
void Trainer::refuse_step(const model::Batch& batch, const Sentence& what) {
  clear_gradients();
  recipe::TrainConfig observed = config_;
  observed.recompute = false;  // ops inside of recomputed layers would stay hidden
  const Sentence cause = nn::explain_bad_value(model_.parameters(), [&] {
    if (in_parts_)
      optim::compute_parts(model_, batch, observed, state_.step + 1, {0, *config_.parts},
                           [](std::int64_t, double) {});
    else
      optim::add_gradients(model_, batch, observed, state_.step + 1);
  });
  clear_gradients();
  throw Diverged(state_.step + 1, what, cause);
}

void Trainer::write_log(const StepReport& report) {
  run::LogLine line;
  line["step"] = report.step;
  if (state_.loss_weight > 0) line["loss"] = state_.loss_sum / state_.loss_weight;
  line["lr"] = report.rate;
  line["tokens"] = state_.tokens;
  line["seconds"] = state_.seconds;
  line["tokens_per_s"] = static_cast<double>(interval_.tokens) / interval_.seconds;
  line["grad_norm"] = report.grad_norm;
  line["live_bytes"] = report.live_bytes;
  if (!group_.alone()) {
    const auto steps = static_cast<double>(interval_.steps);
    line["sent_bytes"] = std::round(static_cast<double>(interval_.traffic.sent) / steps);
    line["communication_seconds"] = interval_.traffic.waited / steps;
    line["communication_hidden"] = interval_.traffic.hidden();
  }
  append(line);
  state_.loss_sum = state_.loss_weight = 0;
  interval_ = {};
}

bool Trainer::evaluation_due() const {
  return eval_every_ > 0 && (state_.step % eval_every_ == 0 || state_.step == config_.steps);
}

void Trainer::run_evaluation(Outcome& outcome) {
  const Stopwatch watch;
  reset_peak_memory(model_.device());
  EvaluateOptions options;
  options.batch = std::max<std::int64_t>(1, config_.batch / config_.accumulate);
  options.max_batches = config_.eval_batches;
  options.precision = config_.precision;
  options.group = &group_;
  EvalReport report;
  report.step = state_.step;
  report.result = with_stage("evaluation at step " + std::to_string(state_.step),
                             [&] { return evaluate_at(state_.step, model_, data_, options); });
  report.best = report.result.loss < state_.best_loss;
  peak_bytes_ = std::max(peak_bytes_, memory_use(model_.device()).peak);
  state_.stale = report.best ? 0 : state_.stale + 1;
  if (report.best) {
    state_.best_loss = report.result.loss;
    state_.best_step = state_.step;
    group_.together("writing the weights", [this] {
      if (directory_ != nullptr)
        run::save_weights(directory_->paths().weights(), model_.parameters());
    });
  }
  report.seconds = watch.seconds();
  state_.seconds += report.seconds;

  run::LogLine line;
  line["step"] = report.step;
  line["eval_loss"] = report.result.loss;
  line["eval_tokens"] = report.result.tokens;
  if (report.result.accuracy) line["accuracy"] = *report.result.accuracy;
  line["seconds"] = state_.seconds;
  append(line);
  outcome.last_evaluation = report.result;
  if (hooks_.on_eval) hooks_.on_eval(report);
}

bool Trainer::out_of_patience() const {
  return config_.patience && state_.stale >= *config_.patience;
}

void Trainer::save() {
  saved_step_ = state_.step;
  if (!in_parts_) {
    if (directory_ != nullptr) write_checkpoint(optimizer_->state());
    return;
  }
  const OptimizerState whole = in_parts_->state();
  group_.together("writing the checkpoint", [&] {
    if (directory_ != nullptr) write_checkpoint(whole);
  });
}

// Weights first: the checkpoint says that everything up to its step is there.
void Trainer::write_checkpoint(const OptimizerState& optimizer) {
  if (state_.best_step == 0) run::save_weights(directory_->paths().weights(), model_.parameters());
  log_->flush();
  state_.log_bytes = log_->size();
  state_.recipe = recipe_;
  const std::string path = directory_->paths().checkpoint(state_.step);
  save_checkpoint(path, model_.parameters(), optimizer, state_);
  directory_->keep_newest(config_.keep);
  if (hooks_.on_save) hooks_.on_save(path);
}

void Trainer::append(const run::LogLine& line) {
  if (log_) log_->append(line);
}

}  // namespace heddle::train
