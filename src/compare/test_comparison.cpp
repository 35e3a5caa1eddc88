// Whole comparisons of tiny models: fair, resumable, honest about noise.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "base/test_support.h"
#include "compare/comparison.h"
#include "compare/results.h"
#include "heddle/runtime.h"
#include "io/test_support.h"
#include "run/load_run.h"

namespace heddle::compare {
namespace {

using io::TempDir;
using nlohmann::json;

class CompareTest : public testing::Test {
 protected:
  CompareTest() {
    std::string text;
    for (int i = 0; i < 400; ++i) text += "the " + std::to_string(i % 7) + " quick foxes ";
    dir_.file("text.txt", text);
    recipe_ = write("tiny", "");
  }
  std::string write(const std::string& name, const std::string& more,
                    const std::string& evaluation = "eval_batches = 10\n") {
    return dir_.file(name + ".toml",
                     "[model]\nkind = \"decoder\"\nlayers = 1\nwidth = 8\ndropout = 0.1\n" + more +
                         "[model.attention]\nheads = 2\n[data]\ntext = \"text.txt\"\ntokenizer = "
                         "\"char\"\ncontext = 8\n[train]\nsteps = 20\nbatch = 3\nlearning_rate = "
                         "0.01\n" +
                         evaluation);
  }
  ComparisonSpec spec(std::vector<std::string> vary, const std::string& out) const {
    return {.recipe = recipe_, .vary = std::move(vary), .out = dir_.file(out)};
  }
  static json finish(const ComparisonSpec& s) {
    Comparison c(s);
    EXPECT_TRUE(c.run({}));
    return to_json(collect(c));
  }
  // Apart from times.
  static json timeless(json j) {
    for (json& v : j["variants"]) {
      v.erase("step_seconds");
      v.erase("step_seconds_quartiles");
      v.erase("tokens_per_s");
    }
    for (json& d : j["differences"]) d.erase("step_seconds");
    j.erase("times");
    return j;
  }

  TempDir dir_;
  std::string recipe_;
};

TEST_F(CompareTest, FiguresAreThoseOfTheRuns) {
  ComparisonSpec s = spec({"model.attention.kv_heads=1,2"}, "a");
  s.seeds = 2;
  const json j = finish(s);
  ASSERT_EQ(j["variants"].size(), 2u);
  const json& v = j["variants"][0];
  EXPECT_EQ(v["name"], "kv_heads=1");
  EXPECT_EQ(v["set"], json({{"model.attention.kv_heads", 1}}));
  EXPECT_EQ(v["final_loss"]["seeds"].size(), 2u);
  EXPECT_TRUE(v["final_loss"].contains("spread"));
  EXPECT_EQ(v["steps"], 20);
  EXPECT_EQ(v["tokens"], 20 * 3 * 8);
  EXPECT_EQ(v["curve"].back()[0], 20);
  // Keys and values of one head of width 4, of two.
  EXPECT_EQ(v["kv_bytes_per_token"], 2 * 4 * 4);
  EXPECT_EQ(j["variants"][1]["kv_bytes_per_token"], 2 * 2 * 4 * 4);
  EXPECT_GT(j["variants"][1]["parameters"], v["parameters"]);
  EXPECT_GT(v["peak_bytes"]["total"], 0);
  EXPECT_GT(v["peak_bytes"]["optimizer"], 0);
  EXPECT_EQ(j["loss"], "validation");
  // The runs are runs: what was saved last is what was evaluated.
  const run::LoadedRun run = run::load_run(dir_.file("a/runs/kv_heads=1/seed-2"));
  EXPECT_EQ(run.recipe.train.seed, 2u);
  EXPECT_EQ(run.recipe.model.attention.kv_heads, 1);
}

TEST_F(CompareTest, IdenticalVariantsDoNotDiffer) {
  for (const std::int64_t seeds : {1, 2}) {
    ComparisonSpec s = spec({"model.attention.kv_heads=2,2"}, "same" + std::to_string(seeds));
    s.seeds = seeds;
    const json j = finish(s);
    EXPECT_EQ(j["variants"][1]["name"], "kv_heads=2 #2");
    EXPECT_EQ(j["differences"][0]["loss"]["verdict"], "same");
    EXPECT_EQ(j["differences"][0]["loss"]["difference"], 0);
    EXPECT_EQ(j["variants"][0]["curve"], j["variants"][1]["curve"]);
    EXPECT_EQ(j["variants"][0]["peak_bytes"], j["variants"][1]["peak_bytes"]);
  }
}

// Stopped after every few steps, at places that are not the ends of turns.
TEST_F(CompareTest, StoppedAndResumedGivesTheSame) {
  const json whole = timeless(finish(spec({"model.norm=layer,rms"}, "whole")));
  const ComparisonSpec s = spec({"model.norm=layer,rms"}, "pieces");
  bool finished = false;
  int sittings = 0;
  while (!finished && ++sittings < 50) {
    Comparison c(s);
    int steps = 0;
    ComparisonHooks hooks;
    hooks.on_step = [&steps](const TurnReport&) { ++steps; };
    hooks.should_stop = [&steps] { return steps >= 5; };
    finished = c.run(hooks);
  }
  EXPECT_GE(sittings, 8);
  EXPECT_EQ(timeless(finish(s)), whole);
}

// With ten steps every turn is one step, with thirty it is three: that is no matter of memory.
TEST_F(CompareTest, PeakMemoryDoesNotDependOnTurns) {
  const auto peaks = [this](const char* budget) {
    ComparisonSpec s = spec({"model.norm=layer,rms"}, budget);
    s.budget = budget;
    const json j = finish(s);
    return json{j["variants"][0]["peak_bytes"], j["variants"][1]["peak_bytes"]};
  };
  EXPECT_EQ(peaks("steps=10"), peaks("steps=30"));
}

// Each thread has buffers of its own; they are no matter of the variant.
TEST_F(CompareTest, PeakMemoryDoesNotDependOnThreads) {
  const int before = threads();
  std::vector<json> peaks;
  for (const int count : {1, 2, 5}) {
    set_threads(count);
    const json j = finish(spec({"model.norm=layer,rms"}, "threads" + std::to_string(count)));
    peaks.push_back(json{j["variants"][0]["peak_bytes"], j["variants"][1]["peak_bytes"]});
  }
  set_threads(before);
  EXPECT_GT(peaks[0][0]["total"], 0);
  EXPECT_EQ(peaks[0], peaks[1]);
  EXPECT_EQ(peaks[0], peaks[2]);
}

TEST_F(CompareTest, ANewSeedIsAddedToWhatIsThere) {
  ComparisonSpec s = spec({"model.norm=layer,rms"}, "seeds");
  const json one = finish(s);
  EXPECT_EQ(one["noise"], "evaluation");
  EXPECT_FALSE(one["variants"][0]["final_loss"].contains("spread"));
  s.seeds = 2;
  const json two = finish(s);
  EXPECT_EQ(two["noise"], "seeds");
  EXPECT_EQ(two["variants"][0]["final_loss"]["seeds"][0], one["variants"][0]["final_loss"]["mean"]);
}

// Finished runs are not opened any more; their data is looked at all the same.
TEST_F(CompareTest, OtherDataIsRefusedForFinishedRunsToo) {
  ComparisonSpec s = spec({"model.norm=layer,rms"}, "edited");
  s.budget = "steps=2";
  finish(s);
  const std::string before = io::slurp(dir_.file("edited/compare.json"));
  std::string text = io::slurp(dir_.file("text.txt"));
  std::ranges::reverse(text);
  dir_.file("text.txt", text);
  for (const std::int64_t seeds : {1, 2}) {
    s.seeds = seeds;
    expect_says([&] { Comparison c(s); }, {"variant norm=layer, seed 1", "other data", "--out"});
  }
  EXPECT_EQ(io::slurp(dir_.file("edited/compare.json")), before);
}

TEST_F(CompareTest, TheRecipesSeedIsTheFirst) {
  ComparisonSpec s = spec({"model.norm=layer,rms"}, "from-7");
  s.set = {"train.seed=7"};
  s.budget = "steps=2";
  s.seeds = 2;
  const json seven = finish(s);
  EXPECT_EQ(seven["variants"][0]["runs"],
            json({"runs/norm=layer/seed-7", "runs/norm=layer/seed-8"}));
  EXPECT_EQ(run::load_run(dir_.file("from-7/runs/norm=rms/seed-8")).recipe.train.seed, 8u);
  s.set = {};
  expect_says([&] { Comparison c(s); }, {"another comparison", "train.seed", "7", "1"});
  s.set = {"train.seed=9223372036854775807"};
  s.out = dir_.file("no-room");
  expect_says([&] { Comparison c(s); }, {"train.seed", "room for 2"});
}

// Nothing to estimate noise from: neither seeds nor an evaluation.
TEST_F(CompareTest, WithoutValidationOneSeedHasNoNoise) {
  ComparisonSpec s = spec({"model.norm=layer,rms"}, "training");
  s.set = {"data.validation_share=0"};
  s.budget = "steps=2";
  expect_says([&] { finish(s); }, {"train.eval_batches", "validation"});
  s.recipe = write("no-evaluation", "", "");
  const json j = finish(s);
  EXPECT_EQ(j["loss"], "training");
  EXPECT_EQ(j["noise"], "none");
  EXPECT_EQ(j["differences"][0]["loss"]["verdict"], "unknown");
  EXPECT_FALSE(j["differences"][0]["loss"].contains("interval"));
  const auto loss = [&](int v) { return j["variants"][v]["final_loss"]["mean"].get<double>(); };
  EXPECT_NEAR(j["differences"][0]["loss"]["difference"].get<double>(), loss(0) - loss(1), 1e-12);
}

// However large the difference: another seed could turn it around.
TEST_F(CompareTest, OneSeedSpeaksOfModelsOnly) {
  ComparisonSpec s = spec({"train.learning_rate=0.03,0.00001"}, "models");
  s.budget = "steps=5";
  EXPECT_EQ(finish(s)["differences"][0]["loss"]["verdict"], "models-differ");
  s.seeds = 3;
  EXPECT_EQ(finish(s)["differences"][0]["loss"]["verdict"], "exceeds-noise");
}

TEST_F(CompareTest, BudgetsBecomeStepsBeforehand) {
  ComparisonSpec s = spec({"train.batch=2,4"}, "tokens");
  s.budget = "tokens=320";
  const json j = finish(s);
  EXPECT_EQ(j["variants"][0]["steps"], 20);
  EXPECT_EQ(j["variants"][1]["steps"], 10);
  EXPECT_EQ(j["variants"][0]["tokens"], j["variants"][1]["tokens"]);
  EXPECT_EQ(j["same_batches"], false);
  s = spec({"model.norm=layer,rms"}, "time");
  s.budget = "time=1s";  // more than a step, under a sanitizer too
  std::int64_t steps = 0;
  {
    const Comparison first(s);
    steps = first.steps(0);
    EXPECT_GE(steps, 1);
  }
  EXPECT_EQ(Comparison(s).steps(0), steps);  // written down, not measured again
}

TEST_F(CompareTest, OtherRecipesAreVariantsToo) {
  ComparisonSpec s = spec({}, "also");
  s.also = {write("wide", "ffn_width = 64\n")};
  const json j = finish(s);
  EXPECT_EQ(j["variants"][0]["name"], "tiny");
  EXPECT_EQ(j["variants"][1]["name"], "wide");
  EXPECT_EQ(j["variants"][1]["set"], json({{"model.ffn_width", 64}}));
  dir_.file("other.txt", std::string(3000, 'x'));
  const std::string other = write("other", "");
  std::string text = io::slurp(other);
  text.replace(text.find("text.txt"), 8, "other.txt");
  dir_.file("other.toml", text);
  s.also = {other};
  s.out = dir_.file("also2");
  expect_says([&] { Comparison c(s); }, {"--also", "data.text", "the data of the other variants"});
}

TEST_F(CompareTest, TheRecipeMayNameItsVariants) {
  const std::string path = write("named", "");
  dir_.file("named.toml", io::slurp(path) +
                              "[compare]\nvary = [\"model.norm=layer,rms\"]\nseeds = 2\nbudget = "
                              "\"steps=4\"\n");
  const Comparison c({.recipe = path, .out = dir_.file("named")});
  EXPECT_EQ(c.variants().size(), 2u);
  EXPECT_EQ(c.seeds(), 2);
  EXPECT_EQ(c.steps(1), 4);
}

TEST_F(CompareTest, BadInputSaysWhatToWriteInstead) {
  const auto refused = [&](std::vector<std::string> vary,
                           std::initializer_list<std::string_view> parts) {
    expect_says([&] { Comparison c(spec(vary, "bad")); }, parts);
    EXPECT_FALSE(std::filesystem::exists(dir_.file("bad")));
  };
  refused({"model.attention.kv_headz=1,2"}, {"--vary", "kv_headz", "did you mean kv_heads"});
  refused({}, {"nothing to compare", "--vary key=a,b"});
  refused({"model.norm=rms"}, {"nothing to compare", "two values or more"});
  refused({"model.norm=rms,batch"}, {"model.norm", "layer"});
  refused({"model.ffn_width=8,16777216", "train.batch=4,1048576"}, {"memory of a step", "GB"});
  refused({"data.context=8,16"}, {"data.context", "other data cannot be compared"});
  refused({"train.steps=8,16"}, {"train.steps", "--budget steps=N"});
  refused({"train.seed=8,16"}, {"train.seed", "--seeds"});
  refused({"compare.seeds=1,2"}, {"compare.seeds", "--seeds"});
  refused({"compare.budget=a,b"}, {"compare.budget", "--budget"});
  refused({"compare.vary=[],[]"}, {"compare.vary", "[model] and [train]"});
  for (const char* key : {"save_every", "keep", "log_every", "log", "eval_every", "eval_batches"})
    refused({std::string("train.") + key + "=1,2"}, {"--vary", key});
  ComparisonSpec both = spec({"model.norm=layer,rms"}, "bad");
  both.set = {"model.norm=rms"};
  expect_says([&] { Comparison c(both); }, {"--set model.norm=rms", "is varied"});
  std::filesystem::create_directories(dir_.file("full"));
  dir_.file("full/mine.txt", "x");
  expect_says([&] { Comparison c(spec({"model.norm=layer,rms"}, "full")); },
              {"holds no comparison", "a new directory"});
}

TEST_F(CompareTest, AVariantThatDivergesIsMarkedAndTheOthersGoOn) {
  ComparisonSpec s = spec({"train.learning_rate=1000,0.01,0.02"}, "fails/");
  s.set = {"train.clip=0", "train.optimizer=sgd", "train.warmup=0", "train.schedule=constant"};
  s.budget = "steps=100";
  std::string note;
  json first;
  {
    Comparison c(s);
    EXPECT_EQ(c.spec().out, dir_.file("fails"));
    ComparisonHooks hooks;
    hooks.on_note = [&note](const std::string& sentence) { note += sentence; };
    EXPECT_TRUE(c.run(hooks));
    const ComparisonResults results = collect(c);
    EXPECT_EQ(results.base(), 1u);
    EXPECT_NE(results.best, std::optional<std::size_t>(0));
    first = to_json(results);
  }
  for (const char* part : {"variant learning_rate=1000, seed 1", "diverged at step", "go on"})
    EXPECT_NE(note.find(part), std::string::npos) << note;
  const json& bad = first["variants"][0];
  ASSERT_EQ(bad["diverged"].size(), 1u) << bad;
  EXPECT_EQ(bad["diverged"][0]["seed"], 1);
  EXPECT_GE(bad["diverged"][0]["step"], 2);
  EXPECT_FALSE(bad.contains("final_loss"));
  for (const std::size_t i : {1, 2}) {
    EXPECT_FALSE(first["variants"][i].contains("diverged"));
    EXPECT_GT(first["variants"][i]["final_loss"]["mean"], 0);
    EXPECT_EQ(first["variants"][i]["curve"].back()[0], 100);
  }
  ASSERT_EQ(first["differences"].size(), 1u);  // the one that diverged is in no verdict
  EXPECT_EQ(first["differences"][0]["a"], "learning_rate=0.01");
  // The mark stays, and so does everything else.
  EXPECT_EQ(timeless(finish(s)), timeless(first));
}

// A refused comparison leaves nothing on disk, whenever it is refused.
TEST_F(CompareTest, RefusedBeforeThereIsADirectory) {
  ComparisonSpec s = spec({"model.norm=layer,rms"}, "none");
  s.set = {"train.warmup=10"};
  s.budget = "steps=5";
  expect_says([&] { Comparison c(s); }, {"train.warmup"});
  EXPECT_FALSE(std::filesystem::exists(dir_.file("none")));
  s.set = {"train.steps=7"};
  expect_says([&] { Comparison c(s); }, {"train.steps", "budget", "steps=5"});
  EXPECT_FALSE(std::filesystem::exists(dir_.file("none")));
}

TEST_F(CompareTest, AsManyCheckpointsStayAsWereAskedFor) {
  ComparisonSpec s = spec({"model.norm=layer,rms"}, "keep");
  s.set = {"train.keep=3"};
  finish(s);
  const run::RunPaths paths{dir_.file("keep/runs/norm=rms/seed-1")};
  EXPECT_EQ(run::checkpoint_steps(paths), (std::vector<std::int64_t>{16, 18, 20}));
  // A damaged one costs its own turn only.
  std::filesystem::remove(paths.directory + "/final.json");
  std::ofstream(paths.checkpoint(20)) << "";
  std::string note;
  ComparisonHooks hooks;
  hooks.on_note = [&note](const std::string& sentence) { note += sentence; };
  Comparison again(s);
  EXPECT_TRUE(again.run(hooks));
  EXPECT_NE(note.find("going on from step 18"), std::string::npos) << note;
  EXPECT_EQ(run::checkpoint_steps(paths), (std::vector<std::int64_t>{16, 18, 20}));
}

// The losses of the last evaluation are what a verdict rests on.
TEST_F(CompareTest, AnEditedResultIsRefusedAndCanBeMadeAgain) {
  const ComparisonSpec s = spec({"model.norm=layer,rms"}, "edited");
  const json first = finish(s);
  const std::string path = dir_.file("edited/runs/norm=rms/seed-1/final.json");
  json losses = json::parse(io::slurp(path));
  losses["losses"][0] = losses["losses"][0].get<double>() / 2;
  std::ofstream(path) << losses.dump();
  expect_says([&] { finish(s); }, {path, "edited by hand", "without the file"});
  std::filesystem::remove(path);
  EXPECT_EQ(timeless(finish(s)), timeless(first));
  // So is a log that is not the one of that evaluation.
  const std::string log = dir_.file("edited/runs/norm=rms/seed-1/log.jsonl");
  const std::string lines = io::slurp(log);
  std::ofstream(log) << lines.substr(lines.find('\n') + 1);
  expect_says([&] { finish(s); }, {log, "edited or damaged"});
}

TEST_F(CompareTest, AnotherComparisonInTheDirectoryIsRefused) {
  {
    const Comparison c(spec({"model.norm=layer,rms"}, "dir"));
  }
  expect_says([&] { Comparison c(spec({"model.norm=rms,layer"}, "dir")); },
              {"another comparison", "norm=layer", "--out"});
  ComparisonSpec s = spec({"model.norm=layer,rms"}, "dir");
  s.budget = "steps=7";
  expect_says([&] { Comparison c(s); }, {"the budget", "steps=20", "steps=7"});
  finish(spec({"model.norm=layer,rms"}, "dir"));
  s = spec({"model.norm=layer,rms"}, "dir");
  s.set = {"model.width=16"};
  expect_says([&] { Comparison c(s); }, {"model.width", "8", "16"});
}

// Rank 0 of two, beside a rank that has a run and dies with it.
TEST_F(CompareTest, RunsThatAreDealtOutGiveTheSameNumbers) {
  const std::vector<std::string> vary = {"model.attention.kv_heads=1,2"};
  ComparisonSpec turns = spec(vary, "turns"), ranks = spec(vary, "ranks");
  turns.seeds = ranks.seeds = 2;
  const Seat seat{.ranks = 2, .patience = std::chrono::milliseconds(0)};
  json dealt;
  {
    Comparison c(ranks, seat);
    EXPECT_EQ(c.ranks_there(), 1);
    const Team other(dir_.file("ranks"), {.rank = 1, .ranks = 2}, {}, [](bool) {});
    expect_says([&] { Comparison alone(ranks); }, {"another process is at this comparison"});
    std::optional<io::Descriptor> claim = other.claim(2);
    std::int64_t waited = 0, seen = 0;
    ComparisonHooks hooks;
    hooks.on_wait = [&](std::int64_t done, std::int64_t runs) {
      EXPECT_EQ(done, 3);
      EXPECT_EQ(runs, 4);
      EXPECT_FALSE(std::filesystem::exists(c.runs()[2].directory));
      ++waited;
      claim.reset();
    };
    hooks.on_step = [&seen](const TurnReport& t) { seen = std::max(seen, t.runs); };
    EXPECT_TRUE(c.run(hooks));
    EXPECT_EQ(waited, 1);
    EXPECT_EQ(seen, 4);
    const ComparisonResults results = collect(c);
    EXPECT_EQ(results.timing.ranks, 2);
    EXPECT_EQ(results.pairs[0].time.verdict, Verdict::unknown);
    EXPECT_FALSE(results.pairs[0].time.interval);
    dealt = to_json(results);
  }
  EXPECT_EQ(dealt["times"]["taken"], "on-ranks");
  const json in_turns = finish(turns);
  EXPECT_EQ(in_turns["times"], json({{"taken", "in-turns"}}));
  EXPECT_EQ(timeless(dealt), timeless(in_turns));
  // Written and read again, and gone on with by one process: it stays what it was.
  EXPECT_EQ(timeless(finish(ranks)), timeless(dealt));
  EXPECT_EQ(finish(ranks)["times"], dealt["times"]);
}

// Stopped by the signal of another rank; later it goes on in turns, to the same end.
TEST_F(CompareTest, RanksStopTogether) {
  const ComparisonSpec s = spec({"model.norm=layer,rms"}, "stopped");
  {
    Comparison c(s, {.ranks = 2, .patience = std::chrono::milliseconds(0)});
    const Team other(dir_.file("stopped"), {.rank = 1, .ranks = 2}, {}, [](bool) {});
    ComparisonHooks hooks;
    hooks.on_step = [&other](const TurnReport& t) {
      if (t.step.step == 5) {
        other.ask_to_stop(15);
        std::this_thread::sleep_for(std::chrono::milliseconds(150));
      }
    };
    EXPECT_FALSE(c.run(hooks));
    EXPECT_EQ(c.team()->stop_signal(), 15);
  }
  EXPECT_EQ(timeless(finish(s)), timeless(finish(spec({"model.norm=layer,rms"}, "whole"))));
}

}  // namespace
}  // namespace heddle::compare
