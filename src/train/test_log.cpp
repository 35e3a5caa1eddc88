// Every field of log.jsonl, computed a second time by what it means.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <numbers>
#include <set>
#include <sstream>

#include "heddle/tape.h"
#include "io/test_support.h"
#include "ops/copy/copy.h"
#include "optim/split.h"
#include "optim/step.h"
#include "plan/plan.h"
#include "recipe/test_toys.h"
#include "run/log/log.h"
#include "train/trainer.h"

namespace heddle::train {

using namespace toys;
namespace {

using io::TempDir;
using nlohmann::json;

// A batch's loss by the formula: for each target that counts
//   log Σ_v exp(z[v]) - (1 - s) · z[target] - s · mean_v z[v]
// in float64, from logits.
double loss_by_hand(const model::Model& model, const model::Batch& batch, double smoothing,
                    const nn::Pass& pass = {}) {
  const auto logits = ops::cast(model.logits(batch, pass), DType::f64).to_vector<double>();
  const auto targets = batch.targets.to_vector<std::int32_t>();
  const std::size_t labels = logits.size() / targets.size();
  double sum = 0, count = 0;
  for (std::size_t t = 0; t < targets.size(); ++t) {
    if (targets[t] == model::kIgnore) continue;
    const double* z = logits.data() + t * labels;
    double exps = 0, all = 0;
    for (std::size_t v = 0; v < labels; ++v) {
      exps += std::exp(z[v]);
      all += z[v];
    }
    sum += std::log(exps) - (1 - smoothing) * z[targets[t]] -
           smoothing * all / static_cast<double>(labels);
    ++count;
  }
  return sum / count;
}

std::int64_t targets_in(const model::Batch& batch) {
  std::int64_t count = 0;
  for (const std::int32_t target : batch.targets.to_vector<std::int32_t>())
    count += target == model::kIgnore ? 0 : 1;
  return count;
}

// Length of the gradient of all parameters, in float64.
double gradient_by_hand(model::Model& model, const model::Batch& batch, double smoothing) {
  {
    Tape tape;
    tape.backward(model.loss(batch, {}, smoothing).total);
  }
  double squares = 0;
  for (nn::Parameter& p : model.parameters().all()) {
    for (const float g : p.tensor.grad().to_vector<float>()) squares += double{g} * g;
    p.tensor.clear_grad();
  }
  return std::sqrt(squares);
}

// Inputs of a step, known before the trainer takes it.
struct Foreseen {
  double loss = 0, targets = 0, grad_norm = 0;
};

struct Logged {
  recipe::TrainConfig config;
  std::vector<Foreseen> steps;  // 1, 2, … at 0, 1, …
  std::vector<double> eval_losses;
  std::vector<std::int64_t> eval_tokens;
  std::vector<json> lines;
  std::int64_t live_before = 0;  // bytes that are not the run's
  double first_seconds = 0;      // of step 1
  Outcome outcome;
};

recipe::TrainConfig logged_training() {
  recipe::TrainConfig c = toy_training();
  c.steps = 11;
  c.batch = 4;
  c.log_every = 3;
  c.eval_every = 5;
  c.warmup = 2;
  c.learning_rate = 0.02;
  c.final_share = 0.25;
  c.label_smoothing = 0.1;
  c.clip = 0.3;
  c.seed = 9;
  return c;
}

Logged run_logged(const recipe::TrainConfig& config) {
  const TempDir dir;
  Logged run;
  run.config = config;
  const ToyData data(true, true);  // every batch has another number of targets
  run::RunDirectory directory(dir.file("run"));
  run.live_before = memory_use(Device::cpu).live;
  const auto model = toy();
  const auto foresee = [&](std::int64_t step) {
    if (step >= config.steps) return;
    const model::Batch batch = data.training_batch(step, config.batch, config.seed);
    run.steps.push_back({loss_by_hand(*model, batch, config.label_smoothing),
                         static_cast<double>(targets_in(batch)),
                         gradient_by_hand(*model, batch, config.label_smoothing)});
  };
  Hooks hooks;
  hooks.on_step = [&](const StepReport& report) {
    if (report.step == 1) run.first_seconds = report.seconds;
    foresee(report.step);
  };
  hooks.on_eval = [&](const EvalReport&) {
    double sum = 0;
    std::int64_t count = 0;
    const std::int64_t rows = config.batch / config.accumulate;  // of an evaluation's batches
    for (std::int64_t i = 0; i < data.validation_batches(rows); ++i) {
      const model::Batch batch = data.validation_batch(i, rows);
      sum += loss_by_hand(*model, batch, 0) * static_cast<double>(targets_in(batch));
      count += targets_in(batch);
    }
    run.eval_losses.push_back(sum / static_cast<double>(count));
    run.eval_tokens.push_back(count);
  };
  foresee(0);
  Trainer trainer(*model, data, config, &directory, hooks);
  run.outcome = trainer.run();
  std::istringstream text(io::slurp(directory.paths().log()));
  for (std::string line; std::getline(text, line);) run.lines.push_back(json::parse(line));
  return run;
}

// One line with the steps it speaks of: (before, step].
struct Line {
  const Logged& run;
  const json& fields;
  std::int64_t before, step;
  std::size_t number;  // of its kind, from 0
  double seconds = 0;  // of the line before it, of any kind

  double of_steps(const std::function<double(const Foreseen&)>& value) const {
    double sum = 0;
    for (std::int64_t i = before; i < step; ++i) sum += value(run.steps[std::size_t(i)]);
    return sum;
  }
};

using Check = std::function<void(const Line&)>;

// By hand: two steps up to the rate, then a half wave down to a quarter of it at step 11.
double rate_by_hand(std::int64_t step) {
  if (step == 1) return 0.01;
  const double way = (static_cast<double>(step) - 2) / 9;
  return 0.02 * (0.25 + 0.75 * 0.5 * (1 + std::cos(std::numbers::pi * way)));
}

const std::vector<std::pair<std::string, Check>>& step_fields() {
  static const std::vector<std::pair<std::string, Check>> all = {
      {"step", [](const Line& l) { EXPECT_EQ(l.fields["step"], l.step); }},
      // The mean over all targets since the line before.
      {"loss",
       [](const Line& l) {
         const double sum = l.of_steps([](const Foreseen& s) { return s.loss * s.targets; });
         const double weight = l.of_steps([](const Foreseen& s) { return s.targets; });
         EXPECT_NEAR(l.fields["loss"], sum / weight, 2e-6);
       }},
      {"lr", [](const Line& l) { EXPECT_NEAR(l.fields["lr"], rate_by_hand(l.step), 1e-15); }},
      // All that was read since the run began: 4 sequences of 6 tokens a step.
      {"tokens", [](const Line& l) { EXPECT_EQ(l.fields["tokens"], l.step * 4 * 6); }},
      {"seconds", [](const Line& l) { EXPECT_GT(l.fields["seconds"], l.seconds); }},
      // Of the steps since the line before; neither the first step of a sitting nor an evaluation
      // between them counts.
      {"tokens_per_s",
       [](const Line& l) {
         const std::int64_t from = std::max<std::int64_t>(l.before, 1);
         const double tokens = static_cast<double>(l.step - from) * 4 * 6;
         const double rate = l.fields["tokens_per_s"];
         const bool evaluated = (l.before < 5 && l.step > 5) || (l.before < 10 && l.step > 10);
         const double first = l.before == 0 ? l.run.first_seconds : 0;
         const double seconds = l.fields["seconds"].get<double>() - l.seconds - first;
         // Behind an evaluation, seconds are those since its line.
         EXPECT_LT(rate * seconds, tokens * (1 + 1e-6));
         EXPECT_GT(rate * seconds, evaluated ? 0 : tokens * (1 - 1e-6));
       }},
      {"grad_norm",
       [](const Line& l) {
         const double wanted = l.run.steps[std::size_t(l.step - 1)].grad_norm;
         EXPECT_NEAR(l.fields["grad_norm"], wanted, 1e-5 * wanted);
         EXPECT_GT(wanted, l.run.config.clip);  // before clipping, which it tells apart
       }},
      {"live_bytes",
       [](const Line& l) {
         const plan::Plan plan =
             plan::plan_training(toy_model(), l.run.config, {4, kToyContext, 0, false});
         EXPECT_EQ(l.fields["live_bytes"], plan.memory.live + l.run.live_before);
       }},
  };
  return all;
}

const std::vector<std::pair<std::string, Check>>& eval_fields() {
  static const std::vector<std::pair<std::string, Check>> all = {
      {"step", [](const Line& l) { EXPECT_EQ(l.fields["step"], l.number == 2 ? 11 : l.step); }},
      {"eval_loss",
       [](const Line& l) {
         EXPECT_NEAR(l.fields["eval_loss"], l.run.eval_losses[l.number], 2e-6);
       }},
      {"eval_tokens",
       [](const Line& l) { EXPECT_EQ(l.fields["eval_tokens"], l.run.eval_tokens[l.number]); }},
      {"seconds", [](const Line& l) { EXPECT_GT(l.fields["seconds"], l.seconds); }},
  };
  return all;
}

void expect_fields(const std::vector<std::pair<std::string, Check>>& table, const Line& line) {
  SCOPED_TRACE(line.fields.dump());
  std::set<std::string> known, found;
  for (const auto& [field, check] : table) known.insert(field);
  for (const auto& [field, value] : line.fields.items()) found.insert(field);
  EXPECT_EQ(found, known) << "a field without a row, or a row without its field";
  for (const auto& [field, check] : table) check(line);
}

void expect_log(const Logged& run) {
  const std::vector<std::int64_t> steps = {3, 6, 9, 11}, evals = {5, 10, 11};
  std::size_t step = 0, eval = 0;
  double seconds = 0;
  for (const json& fields : run.lines) {
    if (fields.contains("eval_loss")) {
      ASSERT_LT(eval, evals.size());
      expect_fields(eval_fields(), {run, fields, 0, evals[eval], eval, seconds});
      ++eval;
    } else {
      ASSERT_LT(step, steps.size());
      const std::int64_t before = step == 0 ? 0 : steps[step - 1];
      expect_fields(step_fields(), {run, fields, before, steps[step], step, seconds});
      ++step;
    }
    seconds = fields["seconds"];
  }
  EXPECT_EQ(step, steps.size());
  EXPECT_EQ(eval, evals.size());
}

TEST(Log, EveryFieldIsWhatItSays) {
  const Logged run = run_logged(logged_training());
  // Lines can be told apart: neither losses nor numbers of targets are the same.
  ASSERT_EQ(run.steps.size(), 11u);
  EXPECT_GT(run.steps.front().loss, run.steps.back().loss + 0.3);
  std::set<double> targets;
  for (const Foreseen& s : run.steps) targets.insert(s.targets);
  EXPECT_GT(targets.size(), 3u);
  expect_log(run);
  EXPECT_EQ(run.outcome.state.tokens, 11 * 4 * 6);
  EXPECT_NEAR(run.outcome.last_evaluation->loss, run.eval_losses.back(), 2e-6);
}

// In parts the numbers are those of the whole batch.
TEST(Log, PartsChangeNoField) {
  recipe::TrainConfig config = logged_training();
  config.accumulate = 4;
  Logged run = run_logged(config);
  for (json& line : run.lines) {
    if (line.contains("eval_loss")) continue;
    EXPECT_GT(line["live_bytes"], run.live_before);  // of smaller pieces
    const plan::Plan plan = plan::plan_training(toy_model(), config, {4, kToyContext, 0, false});
    EXPECT_EQ(line["live_bytes"], plan.memory.live + run.live_before);
  }
  expect_log(run);
}

TEST(Log, LabelsAddTheAccuracy) {
  const TempDir dir;
  model::ModelConfig config = toy_model();
  config.kind = model::Kind::encoder;
  config.task = model::Task::tag;
  config.sizes.classes = kToyVocabulary;
  const auto model = model::build_model(config, {.seed = 5});
  const ToyData data(true, true);
  run::RunDirectory directory(dir.file("run"));
  recipe::TrainConfig c = toy_training();
  c.steps = c.eval_every.emplace(2);
  c.warmup = 0;
  Trainer(*model, data, c, &directory).run();
  double hits = 0, targets = 0;
  for (std::int64_t i = 0; i < data.validation_batches(c.batch); ++i) {
    const model::Batch batch = data.validation_batch(i, c.batch);
    const auto logits = model->logits(batch, {}).to_vector<float>();
    const auto wanted = batch.targets.to_vector<std::int32_t>();
    for (std::size_t t = 0; t < wanted.size(); ++t) {
      if (wanted[t] == model::kIgnore) continue;
      const float* z = logits.data() + t * std::size_t{kToyVocabulary};
      hits += std::max_element(z, z + kToyVocabulary) - z == wanted[t] ? 1 : 0;
      ++targets;
    }
  }
  std::istringstream text(io::slurp(directory.paths().log()));
  json last;
  for (std::string line; std::getline(text, line);) last = json::parse(line);
  EXPECT_EQ(last["accuracy"], hits / targets);
  EXPECT_EQ(last["eval_tokens"], targets);
  EXPECT_EQ(last.size(), 5u);
}

// ---- The steps themselves, by the book: what parts, resumed runs and whole ones have in common.

// AdamW in float64 on gradients of the tape, with the clipping and the rate of the formulas.
std::vector<std::vector<double>> trained_by_hand(const recipe::TrainConfig& c) {
  const ToyData data(true, true);
  const auto model = toy();
  auto& all = model->parameters().all();
  std::vector<std::vector<double>> w, m, v;
  for (const nn::Parameter& p : all) {
    const auto start = p.tensor.to_vector<float>();
    w.emplace_back(start.begin(), start.end());
    m.emplace_back(start.size(), 0.0);
    v.emplace_back(start.size(), 0.0);
  }
  for (std::int64_t step = 1; step <= c.steps; ++step) {
    const model::Batch batch = data.training_batch(step - 1, c.batch, c.seed);
    {
      Tape tape;
      tape.backward(model->loss(batch, {}, c.label_smoothing).total);
    }
    double squares = 0;
    for (const nn::Parameter& p : all)
      for (const float g : p.tensor.grad().to_vector<float>()) squares += double{g} * g;
    const double scale = std::min(1.0, c.clip / (std::sqrt(squares) + 1e-6));
    const double rate = rate_by_hand(step), n = static_cast<double>(step);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto grad = all[i].tensor.grad().to_vector<float>();
      const double decay = all[i].tensor.rank() >= 2 ? c.weight_decay : 0;
      for (std::size_t j = 0; j < grad.size(); ++j) {
        const double g = scale * grad[j];
        m[i][j] = 0.7 * m[i][j] + 0.3 * g;
        v[i][j] = 0.9 * v[i][j] + 0.1 * g * g;
        w[i][j] *= 1 - rate * decay;
        w[i][j] -= rate * (m[i][j] / (1 - std::pow(0.7, n))) /
                   (std::sqrt(v[i][j] / (1 - std::pow(0.9, n))) + 1e-5);
        all[i].tensor.mutable_data<float>()[j] = static_cast<float>(w[i][j]);
      }
      all[i].tensor.clear_grad();
    }
  }
  return w;
}

void expect_weights(const model::Model& model, const std::vector<std::vector<double>>& wanted) {
  const auto got = weights_of(model);
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].size(), wanted[i].size());
    for (std::size_t j = 0; j < got[i].size(); ++j)
      ASSERT_NEAR(got[i][j], wanted[i][j], 2e-5) << model.parameters().all()[i].name << " " << j;
  }
}

TEST(Trainer, WholePartsAndResumedTakeTheStepsOfTheFormula) {
  recipe::TrainConfig c = logged_training();
  c.beta1 = 0.7;
  c.beta2 = 0.9;
  c.epsilon = 1e-5;
  c.weight_decay = 0.3;
  const auto wanted = trained_by_hand(c);
  const ToyData data(true, true);
  for (const std::int64_t parts : {1, 2, 4}) {
    SCOPED_TRACE(std::to_string(parts) + " parts");
    c.accumulate = parts;
    const auto model = toy();
    Trainer(*model, data, c).run();
    expect_weights(*model, wanted);
  }
  const TempDir dir;
  for (const std::int64_t stop : {1, 4}) {
    SCOPED_TRACE("stopped at " + std::to_string(stop));
    const std::string path = dir.file("run-" + std::to_string(stop));
    {
      const auto first = toy();
      run::RunDirectory directory(path);
      Hooks hooks;
      std::int64_t at = 0;
      hooks.on_step = [&at](const StepReport& r) { at = r.step; };
      hooks.should_stop = [&at, stop] { return at == stop; };
      EXPECT_EQ(Trainer(*first, data, c, &directory, hooks).run().ending, Ending::stopped);
    }
    const auto second = toy();
    run::RunDirectory directory(path);
    Trainer trainer(*second, data, c, &directory);
    ASSERT_TRUE(trainer.resume());
    trainer.run();
    expect_weights(*second, wanted);
  }
}

// The gradient of a batch in parts, against differences of the loss by hand.
TEST(Step, PartsGiveTheDerivativeOfTheFormula) {
  const auto model = toy(0, DType::f64);
  const ToyData data(true, true);
  recipe::TrainConfig c = toy_training();
  c.precision = DType::f64;
  c.label_smoothing = 0.2;
  const model::Batch batch = data.training_batch(0, 5, 1);
  nn::Pass pass;
  pass.precision = DType::f64;
  const auto loss = [&] { return loss_by_hand(*model, batch, c.label_smoothing, pass); };
  for (const std::int64_t parts : {1, 2, 5}) {
    c.accumulate = parts;
    EXPECT_NEAR(optim::add_gradients(*model, batch, c, 1).loss(), loss(), 1e-12);
    for (nn::Parameter& p : model->parameters().all()) {
      const auto grad = p.tensor.grad().to_vector<double>();
      const std::size_t at = grad.size() / 3;
      const double before = p.tensor.to_vector<double>()[at], h = 1e-5;
      const auto loss_at = [&](double weight) {
        p.tensor.mutable_data<double>()[at] = weight;
        return loss();
      };
      const double above = loss_at(before + h), below = loss_at(before - h);
      loss_at(before);
      EXPECT_NEAR(grad[at], (above - below) / (2 * h), 1e-8) << p.name;
      p.tensor.clear_grad();
    }
  }
}

}  // namespace
}  // namespace heddle::train
