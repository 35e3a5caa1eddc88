#include <gtest/gtest.h>

#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "base/test_support.h"
#include "heddle/cost.h"
#include "heddle/runtime.h"
#include "io/test_support.h"
#include "recipe/test_toys.h"
#include "run/state.h"
#include "run/weights.h"
#include "train/checkpoint.h"
#include "train/trainer.h"

namespace heddle::train {

using namespace toys;
namespace {

using io::slurp;
using io::TempDir;
using nlohmann::json;

// The lines of a log without what depends on the clock.
std::vector<json> timeless(const std::string& path) {
  std::vector<json> lines;
  std::istringstream text(slurp(path));
  for (std::string line; std::getline(text, line);) {
    json j = json::parse(line);
    j.erase("seconds");
    j.erase("tokens_per_s");
    lines.push_back(j);
  }
  return lines;
}

struct Session {
  std::unique_ptr<model::Model> model;
  ToyData data;
  run::RunDirectory directory;
  Trainer trainer;

  Session(const std::string& path, const recipe::TrainConfig& config, Hooks hooks = {})
      : model(toy(0.1)),
        directory(path),
        trainer(*model, data, config, &directory, std::move(hooks)) {}
};

Hooks stop_at(std::int64_t step) {
  Hooks hooks;
  auto at = std::make_shared<std::int64_t>(0);
  hooks.on_step = [at](const StepReport& r) { *at = r.step; };
  hooks.should_stop = [at, step] { return std::exchange(*at, 0) == step; };  // once
  return hooks;
}

TEST(Trainer, LearnsAndWritesARun) {
  const TempDir dir;
  recipe::TrainConfig c = toy_training();
  c.steps = 150;
  Session s(dir.file("run"), c);
  const Outcome outcome = s.trainer.run();
  EXPECT_EQ(outcome.ending, Ending::finished);
  EXPECT_EQ(outcome.state.step, 150);
  EXPECT_EQ(outcome.state.tokens, 150 * 4 * kToyContext);
  ASSERT_TRUE(outcome.last_evaluation);
  EXPECT_LT(outcome.last_evaluation->loss, 0.7);
  EXPECT_NEAR(outcome.last_evaluation->perplexity, std::exp(outcome.last_evaluation->loss), 1e-9);
  EXPECT_EQ(s.directory.checkpoint_steps(), (std::vector<std::int64_t>{144, 150}));

  const auto log = timeless(s.directory.paths().log());
  EXPECT_EQ(log[0]["step"], 4);
  EXPECT_EQ(log[0]["tokens"], 4 * 4 * kToyContext);
  EXPECT_GT(log[0]["grad_norm"], 0);
  EXPECT_GT(log[0]["live_bytes"], 0);
  EXPECT_EQ(log[0]["lr"], 1e-2 * (0.1 + 0.9 * (1 + std::cos(std::acos(-1) / 147)) / 2));
  EXPECT_EQ(log[1]["step"], 5);
  EXPECT_GT(log[1]["eval_loss"], 1);
  EXPECT_EQ(log.back()["step"], 150);
  EXPECT_EQ(log.back()["eval_loss"], outcome.last_evaluation->loss);
}

// Files and results that a run leaves.
struct Remains {
  std::vector<std::vector<float>> weights;
  std::string file;
  std::vector<json> log;

  explicit Remains(const Session& s)
      : weights(weights_of(*s.model)),
        file(slurp(s.directory.paths().weights())),
        log(timeless(s.directory.paths().log())) {}
};

// The results of a run without interruption.
Remains uninterrupted(const TempDir& dir) {
  Session s(dir.file("whole"), toy_training());
  s.trainer.run();
  return Remains(s);
}

// The heart of the matter: stopped anywhere, resumed, equal to the bit. One session is alive at a
// time, so that the bytes in the log can be compared too.
TEST(Trainer, AResumedRunEqualsAnUninterruptedOne) {
  const TempDir dir;
  const Remains whole = uninterrupted(dir);
  for (const std::int64_t stop : {1, 5, 6, 19, 20}) {
    const std::string path = dir.file("stopped-" + std::to_string(stop));
    {
      Session first(path, toy_training(), stop_at(stop));
      EXPECT_FALSE(first.trainer.resume());
      EXPECT_EQ(first.trainer.run().ending, Ending::stopped);
    }
    std::ofstream(path + "/log.jsonl", std::ios::app) << "{\"step\": 999";  // torn
    Session second(path, toy_training());
    EXPECT_TRUE(second.trainer.resume());
    EXPECT_EQ(second.trainer.state().step, stop);
    EXPECT_EQ(second.trainer.run().ending, Ending::finished);
    const Remains resumed(second);
    EXPECT_EQ(resumed.weights, whole.weights) << "stopped at " << stop;
    EXPECT_TRUE(resumed.file == whole.file);
    EXPECT_EQ(resumed.log, whole.log);
  }
}

// Every sitting begins with the step that it is for: nothing is computed before it, and what it
// makes for all others, packed weights above all, counts in its peak as it does in theirs.
TEST(Trainer, TheFirstStepOfASittingIsLikeAnyOther) {
  const TempDir dir;
  recipe::TrainConfig c = toy_training();
  c.eval_every = 0;
  std::vector<std::int64_t> peaks;
  double flops = 0, all = 0;
  for (const std::int64_t stop : {1, 4}) {
    Hooks hooks = stop_at(stop);
    hooks.on_step = [&, stopping = hooks.on_step](const StepReport& r) {
      peaks.push_back(r.peak_bytes);
      flops += r.flops;
      stopping(r);
    };
    Session s(dir.file("run"), c, hooks);
    s.trainer.resume();
    const CostMeter meter;
    s.trainer.run();
    all += meter.cost().flops;
  }
  EXPECT_EQ(all, flops);
  EXPECT_EQ(peaks, std::vector<std::int64_t>(4, peaks[0]));
  const auto state = run::newest_state(run::RunPaths{dir.file("run")});
  EXPECT_EQ(state->peak_bytes, peaks[0]);
}

TEST(Trainer, ThreadsDoNotMatter) {
  const ToyData data;
  std::vector<std::vector<std::vector<float>>> results;
  const int before = threads();
  for (const int count : {1, 3}) {
    set_threads(count);
    const auto model = toy(0.1);
    Trainer(*model, data, toy_training()).run();
    results.push_back(weights_of(*model));
  }
  set_threads(before);
  EXPECT_EQ(results[0], results[1]);
}

TEST(Trainer, StopsWhenPatienceEndsAndKeepsTheBestWeights) {
  const TempDir dir;
  recipe::TrainConfig c = toy_training();
  c.steps = 1000;
  c.learning_rate = 0.3;  // too much: it gets worse soon
  c.patience = 2;
  Session s(dir.file("run"), c);
  const Outcome outcome = s.trainer.run();
  EXPECT_EQ(outcome.ending, Ending::patience);
  EXPECT_EQ(outcome.state.step, outcome.state.best_step + 2 * 5);
  EXPECT_EQ(s.directory.newest_checkpoint(), outcome.state.step);

  // model.safetensors evaluates to the best loss, and the run stays at its end.
  run::WeightSource weights(s.directory.paths().weights());
  model::BuildOptions options;
  options.source = weights.source();
  const auto best = model::build_model(toy_model(), options);
  weights.finish();
  EvaluateOptions evaluation;
  evaluation.batch = 4;
  EXPECT_EQ(evaluate(*best, s.data, evaluation).loss, outcome.state.best_loss);
  EXPECT_TRUE(s.trainer.resume());
  EXPECT_EQ(s.trainer.run().ending, Ending::patience);
}

// A rate that moves no weight: the first evaluation, at step 5, stays the best. With a patience of
// n the run ends at the n-th one after it, and its last line of the log is that evaluation's.
TEST(Trainer, PatienceEndsAtItsStep) {
  const TempDir dir;
  for (const std::int64_t patience : {1, 2, 3}) {
    recipe::TrainConfig c = toy_training();
    c.steps = 100;
    c.learning_rate = 1e-30;
    c.weight_decay = 0;
    c.patience = patience;
    Session s(dir.file("run-" + std::to_string(patience)), c);
    const Outcome outcome = s.trainer.run();
    EXPECT_EQ(outcome.ending, Ending::patience);
    EXPECT_EQ(outcome.state.best_step, 5);
    EXPECT_EQ(outcome.state.stale, patience);
    EXPECT_EQ(outcome.state.step, 5 * (1 + patience));
    const auto log = timeless(s.directory.paths().log());
    EXPECT_EQ(log.back()["step"], 5 * (1 + patience));
    EXPECT_TRUE(log.back().contains("eval_loss"));
  }
}

// An evaluation that is better takes the count back to 0: by the losses of the log themselves.
TEST(Trainer, PatienceCountsEvaluationsSinceTheBest) {
  const TempDir dir;
  recipe::TrainConfig c = toy_training();
  c.steps = 1000;
  c.learning_rate = 0.3;
  c.patience = 2;
  Session s(dir.file("run"), c);
  const Outcome outcome = s.trainer.run();
  double best = std::numeric_limits<double>::infinity();
  std::int64_t since = 0, end = 0, evaluations = 0;
  for (const json& line : timeless(s.directory.paths().log())) {
    if (!line.contains("eval_loss")) continue;
    EXPECT_LT(since, 2) << "it went on";
    since = line["eval_loss"] < best ? 0 : since + 1;
    best = std::min(best, line["eval_loss"].get<double>());
    end = line["step"];
    ++evaluations;
  }
  EXPECT_EQ(since, 2);
  EXPECT_GT(evaluations, 3);  // there was a better one to begin anew at
  EXPECT_EQ(outcome.state.step, end);
  EXPECT_EQ(outcome.state.best_loss, best);
}

TEST(Trainer, WithoutValidationTheLatestWeightsAreForUse) {
  const TempDir dir;
  const ToyData data(false);
  const auto model = toy();
  run::RunDirectory directory(dir.file("run"));
  recipe::TrainConfig c = toy_training();
  expect_says([&] { Trainer(*model, data, c, &directory); }, {"train.eval_every", "validation"});
  c.eval_every = {};
  c.patience = 3;
  expect_says([&] { Trainer(*model, data, c, &directory); }, {"train.patience", "validation"});
  c.patience = {};
  c.eval_batches = 3;
  expect_says([&] { Trainer(*model, data, c, &directory); }, {"train.eval_batches", "validation"});
  c.eval_batches = {};
  Trainer(*model, data, c, &directory).run();
  const io::SafetensorsFile file(directory.paths().weights());
  for (const nn::Parameter& p : model->parameters().all())
    EXPECT_EQ(file.load(p.name).to_vector<float>(), p.tensor.to_vector<float>()) << p.name;
}

TEST(Trainer, ABadValueNamesStepAndOpAndLeavesTheCheckpoint) {
  const TempDir dir;
  recipe::TrainConfig c = toy_training();
  c.precision = DType::bf16;
  c.recompute = true;  // must not hide the op
  Hooks hooks;
  Session* session = nullptr;
  hooks.on_step = [&](const StepReport& r) {
    if (r.step != 8) return;
    for (nn::Parameter& p : session->model->parameters().all())
      if (p.name.ends_with("ffn.in.weight"))
        for (std::int64_t i = 0; i < p.tensor.elements(); ++i)
          p.tensor.mutable_data<float>()[i] = 3e38f;
  };
  Session s(dir.file("run"), c, hooks);
  session = &s;
  expect_says([&] { s.trainer.run(); },
              {"step 9", "loss nan", "op linear_pair (", "ffn.in.weight", " at ["});
  EXPECT_EQ(s.directory.newest_checkpoint(), 6);
  EXPECT_FALSE(s.model->parameters().all()[0].tensor.grad().defined());

  Session again(dir.file("run2"), c);
  again.model->parameters().all()[0].tensor.mutable_data<float>()[0] =
      std::numeric_limits<float>::quiet_NaN();
  const std::string name = again.model->parameters().all()[0].name;
  expect_says([&] { again.trainer.run(); }, {"step 1", "parameter " + name + " is nan at [0, 0]"});
}

// Damage that disks and copies do to a file; each kind must be noticed, and none may cost more than
// the steps since the checkpoint before.
TEST(Trainer, ADamagedCheckpointIsPassedOver) {
  const TempDir dir;
  const Remains whole = uninterrupted(dir);
  const std::string path = dir.file("run");
  {
    Session first(path, toy_training(), stop_at(13));
    first.trainer.run();
  }
  const run::RunPaths paths{path};
  const std::string good = slurp(paths.checkpoint(13)), log = slurp(paths.log());
  const auto flipped = [&good](std::size_t at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 4);
    return bad;
  };
  const std::size_t in_state = good.find("loss_sum\\\":") + 12;
  ASSERT_LT(in_state, good.size());
  const std::vector<std::pair<std::string, const char*>> cases = {
      {"", "too short"},
      {good.substr(0, good.size() - 5), "step-13"},
      {flipped(good.size() - 5), "checksum"},  // the last tensor
      {flipped(good.size() / 2), "checksum"},
      {flipped(in_state), "step-13"},  // a digit of the run's state
      {slurp(paths.checkpoint(12)), "not the checkpoint that its name says"},
  };
  for (const auto& [bytes, reason] : cases) {
    SCOPED_TRACE(reason);
    std::ofstream(paths.checkpoint(13), std::ios::binary) << bytes;
    std::ofstream(paths.log(), std::ios::binary) << log;
    std::vector<std::string> said;
    Hooks hooks = stop_at(13);
    hooks.on_damage = [&said](const std::string& sentence) { said.push_back(sentence); };
    Session again(path, toy_training(), hooks);
    ASSERT_TRUE(again.trainer.resume());
    EXPECT_EQ(again.trainer.state().step, 12);
    ASSERT_EQ(said.size(), 1u);
    for (const char* part : {"damaged", "step-13.safetensors", reason, "going on from step 12"})
      EXPECT_NE(said[0].find(part), std::string::npos) << part << " is not in: " << said[0];
    EXPECT_TRUE(slurp(paths.checkpoint(13) + ".damaged") == bytes);
    again.trainer.run();
    EXPECT_EQ(again.directory.checkpoint_steps(), (std::vector<std::int64_t>{12, 13}));
  }
  Session last(path, toy_training());
  EXPECT_TRUE(last.trainer.resume());
  last.trainer.run();
  const Remains remains(last);
  EXPECT_EQ(remains.weights, whole.weights);
  EXPECT_EQ(remains.log, whole.log);
}

TEST(Trainer, WithoutAnIntactCheckpointItSaysWhy) {
  const TempDir dir;
  const std::string path = dir.file("run");
  {
    Session first(path, toy_training(), stop_at(7));
    first.trainer.run();
  }
  std::ofstream(path + "/checkpoints/step-6.safetensors") << "x";
  std::ofstream(path + "/checkpoints/step-7.safetensors") << "";
  Session again(path, toy_training());
  expect_says([&] { again.trainer.resume(); },
              {path, "no intact checkpoint", "step-7.safetensors", "step-6.safetensors"});
  EXPECT_EQ(again.directory.checkpoint_steps(), (std::vector<std::int64_t>{6, 7}));
}

TEST(Trainer, AFullDiskLeavesTheLastCheckpoint) {
  const TempDir dir;
  Session s(dir.file("run"), toy_training(), stop_at(6));
  s.trainer.run();
  const std::string before = slurp(s.directory.paths().checkpoint(6));
  {
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    rlimit previous{};
    getrlimit(RLIMIT_FSIZE, &previous);
    const rlimit tiny{before.size() / 2, previous.rlim_max};
    setrlimit(RLIMIT_FSIZE, &tiny);
    expect_says([&] { s.trainer.run(); }, {"step-12.safetensors", "File too large"});
    setrlimit(RLIMIT_FSIZE, &previous);
    std::signal(SIGXFSZ, handler);
  }
  EXPECT_EQ(s.directory.checkpoint_steps(), (std::vector<std::int64_t>{6}));
  EXPECT_TRUE(slurp(s.directory.paths().checkpoint(6)) == before);
}

TEST(RunDirectory, IsLockedAndSweptClean) {
  const TempDir dir;
  const std::string path = dir.file("run");
  EXPECT_FALSE(run::is_taken(path));
  {
    const run::RunDirectory first(path);
    expect_says([&] { run::RunDirectory{path}; }, {path, "another process"});
  }
  // Leftovers of a process that was killed before there was a run are not in the way.
  EXPECT_FALSE(run::is_run(path));
  std::ofstream(path + "/codec.json") << "x";
  EXPECT_FALSE(run::is_taken(path));
  std::filesystem::remove(path + "/lock");
  EXPECT_TRUE(run::is_taken(path));
  for (const char* name : {"/.heddle-1-2.tmp", "/checkpoints/.heddle-3-4.tmp",
                           "/checkpoints/step-7.safetensors", "/checkpoints/step-70.safetensors",
                           "/checkpoints/step-8.safetensors", "/checkpoints/step-x.safetensors"})
    std::ofstream(path + name) << "x";
  const run::RunDirectory again(path);
  EXPECT_FALSE(std::filesystem::exists(path + "/.heddle-1-2.tmp"));
  EXPECT_FALSE(std::filesystem::exists(path + "/checkpoints/.heddle-3-4.tmp"));
  EXPECT_EQ(again.checkpoint_steps(), (std::vector<std::int64_t>{7, 8, 70}));
  again.keep_newest(2);
  EXPECT_EQ(again.checkpoint_steps(), (std::vector<std::int64_t>{8, 70}));
  EXPECT_TRUE(std::filesystem::exists(path + "/checkpoints/step-x.safetensors"));
  EXPECT_TRUE(run::is_taken(path));
  std::ofstream(path + "/mine.txt") << "x";
  again.discard();
  EXPECT_TRUE(std::filesystem::exists(path + "/mine.txt"));
}

// A process that ended before its first checkpoint, whatever ended it.
TEST(RunDirectory, WhatARunWithoutStepsLeavesStandsInNobodysWay) {
  const TempDir dir;
  const std::string path = dir.file("run");
  {
    const run::RunDirectory dead(path);
  }
  for (const char* name :
       {"/recipe.toml", "/plan.json", "/report.html", "/codec.json", "/target_tokenizer.json",
        "/.heddle-1-2.tmp", "/checkpoints/.heddle-3-4.tmp"})
    std::ofstream(path + name) << "x";
  std::ofstream(path + "/log.jsonl") << "";
  EXPECT_TRUE(run::is_run(path));
  EXPECT_FALSE(run::is_taken(path));
  {
    const run::RunDirectory again(path);
    again.begin_anew();
    EXPECT_FALSE(run::is_run(path));
    EXPECT_FALSE(std::filesystem::exists(path + "/target_tokenizer.json"));
    expect_says([&] { run::RunDirectory{path}; }, {path, "another process"});
  }
  // Files that a user could miss.
  for (const char* name : {"/log.jsonl", "/model.safetensors", "/notes.txt",
                           "/checkpoints/step-3.safetensors", "/checkpoints/notes.txt"}) {
    std::ofstream(path + name) << "x";
    EXPECT_TRUE(run::is_taken(path)) << name;
    std::filesystem::remove(path + name);
    EXPECT_FALSE(run::is_taken(path)) << name;
  }
}

TEST(Trainer, StoppedBeforeTheFirstStepThereIsNothing) {
  const TempDir dir;
  Hooks hooks;
  hooks.should_stop = [] { return true; };
  Session s(dir.file("run"), toy_training(), hooks);
  const Outcome outcome = s.trainer.run();
  EXPECT_EQ(outcome.ending, Ending::stopped);
  EXPECT_EQ(outcome.state.step, 0);
  EXPECT_FALSE(s.directory.newest_checkpoint());
  s.directory.discard();
  EXPECT_FALSE(std::filesystem::exists(dir.file("run")));
}

// The update of a step may be what breaks the weights: the evaluation after it sees it first.
TEST(Trainer, AnEvaluationThatIsNotFiniteEndsTheRun) {
  const TempDir dir;
  Session* session = nullptr;
  Hooks hooks;
  hooks.on_step = [&](const StepReport& r) {
    if (r.step == 5)
      session->model->parameters().all()[0].tensor.mutable_data<float>()[0] =
          std::numeric_limits<float>::quiet_NaN();
  };
  Session s(dir.file("run"), toy_training(), hooks);
  session = &s;
  expect_says([&] { s.trainer.run(); }, {"step 5", "validation loss nan", "is nan at [0, 0]"});
  for (const json& line : timeless(s.directory.paths().log()))
    EXPECT_FALSE(line.contains("eval_loss"));
}

// As earlier versions wrote it: the header lacks these keys of its metadata.
void write_without(const std::string& path, std::initializer_list<const char*> keys) {
  const std::string bytes = slurp(path);
  const std::size_t length = static_cast<unsigned char>(bytes[0]) +
                             256 * std::size_t{static_cast<unsigned char>(bytes[1])};
  json header = json::parse(bytes.substr(8, length));
  for (const char* key : keys) ASSERT_EQ(header["__metadata__"].erase(key), 1u) << key;
  const std::string text = header.dump();
  std::string out = {static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};
  out.resize(8, '\0');
  std::ofstream(path, std::ios::binary) << out << text << bytes.substr(8 + length);
}

// The header of a checkpoint has a checksum too: every fifth of its bytes is tried.
TEST(Checkpoint, NoDamageOfItsHeaderPasses) {
  const TempDir dir;
  const std::string path = dir.file("c.safetensors");
  const auto model = toy();
  const optim::Optimizer adamw(toy_training(), model->parameters());
  run::TrainState state;
  state.step = 7;
  state.recipe = "[train]\nsteps = 12\n";
  save_checkpoint(path, model->parameters(), adamw.state(), state);
  EXPECT_EQ(run::read_state(path).recipe, state.recipe);
  const std::string good = slurp(path);
  const std::size_t end = good.find("}}") + 2;
  ASSERT_LT(end, good.size());
  io::MemoryFile memory;
  for (std::size_t at = 8; at < end; at += 5) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (1 << at % 7));
    const std::string copy = memory.hold(bad);
    EXPECT_THROW(run::read_state(copy), Error) << "byte " << at;
  }
}

TEST(Checkpoint, RefusesWhatDoesNotFit) {
  const TempDir dir;
  const std::string path = dir.file("c.safetensors");
  const auto model = toy();
  recipe::TrainConfig c = toy_training();
  optim::Optimizer adamw(c, model->parameters());
  run::TrainState state;
  state.step = 7;
  state.best_loss = 1.0 / 3;
  state.best_step = 5;
  state.seconds = 0.1;
  save_checkpoint(path, model->parameters(), adamw.state(), state);
  const run::TrainState back = load_checkpoint(path, model->parameters(), adamw.state());
  EXPECT_EQ(to_json(back), to_json(state));
  EXPECT_EQ(back.best_loss, 1.0 / 3);

  // Of before there were checksums.
  write_without(path, {"heddle.crc32", "heddle.header_crc32"});
  EXPECT_EQ(to_json(load_checkpoint(path, model->parameters(), adamw.state())), to_json(state));

  c.optimizer = recipe::OptimizerKind::sgd;
  optim::Optimizer sgd(c, model->parameters());
  expect_says([&] { load_checkpoint(path, model->parameters(), sgd.state()); },
              {path, "optimizer.adamw.m."});
  model::ModelConfig wide = toy_model();
  wide.width = 16;
  const auto other = model::build_model(wide);
  optim::Optimizer theirs(toy_training(), other->parameters());
  expect_says([&] { load_checkpoint(path, other->parameters(), theirs.state()); },
              {path, "embed.weight"});
  run::save_weights(path, model->parameters());
  expect_says([&] { load_checkpoint(path, model->parameters(), adamw.state()); },
              {path, "heddle.state"});
}

}  // namespace
}  // namespace heddle::train
