// Whole runs of every kind of model, from recipe to loaded weights, and fine-tuning between them.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>

#include "base/test_support.h"
#include "data/test_support.h"
#include "heddle/memory.h"
#include "io/safetensors/safetensors.h"
#include "plan/plan_run.h"
#include "recipe/test_toys.h"
#include "run/load_run.h"
#include "run/recipe_file.h"
#include "train/evaluate/evaluate.h"
#include "train/job.h"

namespace heddle::train {

using namespace toys;
namespace {

using io::slurp;
using io::TempDir;

constexpr const char* kModel = "layers = 1\nwidth = 8\n";
constexpr const char* kTrain =
    "[train]\nsteps = 4\nbatch = 5\nlog_every = 1\neval_every = 2\nsave_every = 3\n"
    "learning_rate = 0.01\n";

class JobTest : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& model, const std::string& data,
                    const std::string& train = kTrain) {
    return dir_.file(name + ".toml", "[model]\n" + model + kModel + "[data]\n" + data + train);
  }
  std::string language(const std::string& name, const std::string& data) {
    return write(name, "kind = \"decoder\"\nattention.position = \"learned\"\n", data);
  }
  std::string out(const std::string& name) const { return dir_.file("runs/" + name); }
  Job train(const std::string& recipe, const std::string& name,
            const std::vector<std::string>& set = {}) {
    Job job = Job::begin(run::load_recipe(recipe, set), out(name));
    outcome_ = job.run({});
    return job;
  }
  std::string sample(const std::string& name) const { return "\"" + data_.file(name) + "\""; }

  // Every kind, task and score: a name, the other keys of [model], and [data].
  std::vector<std::array<std::string, 3>> kinds() const {
    const std::string share = "validation_share = 0.2\n", word = "tokenizer = \"word\"\n";
    const std::string text =
        "text = " + sample("text.txt") + "\ncontext = 12\ntokenizer = \"char\"\n";
    const std::string pairs = "pairs = " + sample("pairs.tsv") + "\n" + share + word;
    const std::string tags = "tags = " + sample("tags.tsv") + "\n" + share + word;
    const std::string labelled = "labelled = " + sample("labelled.tsv") + "\n" + share + word;
    const std::string images =
        "images = " + sample("images.idx") + "\nlabels = " + sample("labels.idx") + "\n" + share;
    return {
        {"decoder", "kind = \"decoder\"\ndropout = 0.1\n", text},
        {"moe", "kind = \"decoder\"\nffn = \"moe\"\nmoe.experts = 3\n", text},
        {"masked", "kind = \"encoder\"\ntask = \"masked\"\n", text},
        {"tagger", "kind = \"encoder\"\ntask = \"tag\"\n", tags},
        {"classifier", "kind = \"encoder\"\ntask = \"classify\"\n", labelled},
        {"translator", "kind = \"encoder-decoder\"\n", pairs},
        {"vit", "kind = \"vit\"\npatch = 2\n", images},
        {"rnn", "kind = \"rnn\"\n", text},
        {"birnn", "kind = \"birnn\"\ntask = \"tag\"\n", tags},
        {"birnn-language", "kind = \"birnn\"\ntask = \"language\"\n", text},
        {"moe-translator",
         "kind = \"encoder-decoder\"\nffn = \"moe\"\nmoe.capacity = 0.5\nmoe.shared = 1\n", pairs},
        {"rnn-seq2seq", "kind = \"rnn-seq2seq\"\n", pairs},
        {"multiplicative", "kind = \"rnn-seq2seq\"\nattention.score = \"multiplicative\"\n", pairs},
        {"concat", "kind = \"rnn-seq2seq\"\nattention.score = \"concat\"\n", pairs},
        {"additive", "kind = \"rnn-seq2seq\"\nattention.score = \"additive\"\n", pairs},
    };
  }

  data::SampleData data_;
  TempDir dir_;
  Outcome outcome_;
};

// The loaded weights are the trained ones: evaluating the loaded run gives the log's best loss.
TEST_F(JobTest, EveryKindIsTrainedAndLoaded) {
  for (const auto& [name, model, data] : kinds()) {
    SCOPED_TRACE(name);
    const std::string recipe = write(name, model, data);
    train(recipe, name, {"train.precision=bf16"});
    ASSERT_TRUE(outcome_.last_evaluation);
    const run::LoadedRun run = run::load_run(out(name));
    const auto dataset = data::open_dataset(run.recipe.data, run.recipe.model.kind,
                                            run.recipe.model.task, {.codec = run.codec});
    EvaluateOptions options;
    options.batch = 5;
    options.precision = DType::bf16;
    const Evaluation evaluation = evaluate(*run.model, *dataset, options);
    EXPECT_EQ(evaluation.loss, outcome_.state.best_loss);
    const bool labels =
        run.recipe.model.task == model::Task::tag || run.recipe.model.task == model::Task::classify;
    EXPECT_EQ(evaluation.accuracy.has_value(), labels);
    EXPECT_GT(outcome_.state.tokens, 0);
    options.batch = 3;  // does not matter
    EXPECT_NEAR(evaluate(*run.model, *dataset, options).loss, evaluation.loss, 2e-2);
  }
}

// The tensors of a checkpoint; its state has seconds in it.
std::map<std::string, std::vector<float>> tensors_of(const std::string& path) {
  const io::SafetensorsFile file(path);
  std::map<std::string, std::vector<float>> all;
  for (const io::TensorEntry& entry : file.entries())
    all[entry.name] = file.load(entry.name).to_vector<float>();
  return all;
}

// With everything that a step can have: dropout, parts, bf16, recomputed layers.
TEST_F(JobTest, EveryKindResumesToTheBit) {
  const std::vector<std::string> set = {"model.dropout=0.1", "train.accumulate=2",
                                        "train.precision=bf16", "train.recompute=true"};
  for (const auto& [name, model, data] : kinds()) {
    SCOPED_TRACE(name);
    const std::string recipe = write(name, model, data);
    train(recipe, name + "-whole", set);
    const run::RunPaths whole{out(name + "-whole")}, stopped{out(name + "-stopped")};
    Hooks hooks;
    std::int64_t step = 0;
    hooks.on_step = [&step](const StepReport& r) { step = r.step; };
    hooks.should_stop = [&step] { return step == 2; };
    EXPECT_EQ(Job::begin(run::load_recipe(recipe, set), stopped.directory).run(hooks).ending,
              Ending::stopped);
    const Outcome end = Job::resume(run::load_recipe(recipe, set), stopped.directory).run({});
    EXPECT_EQ(end.ending, Ending::finished);
    EXPECT_EQ(end.state.best_loss, outcome_.state.best_loss);
    EXPECT_TRUE(slurp(stopped.weights()) == slurp(whole.weights()));
    EXPECT_EQ(tensors_of(stopped.checkpoint(4)), tensors_of(whole.checkpoint(4)));
  }
}

void damage_last_byte(const std::string& path) {
  std::string bytes = slurp(path);
  bytes.back() = static_cast<char>(bytes.back() ^ 4);
  std::ofstream(path, std::ios::binary) << bytes;
}

TEST_F(JobTest, RefusesAndLeavesNothingBehind) {
  const std::string text = "text = " + sample("text.txt") + "\ntokenizer = \"char\"\n";
  const std::string recipe = language("r", text + "context = 12\n");
  expect_says([&] { train(recipe, "a", {"data.text=nowhere.txt"}); }, {"nowhere.txt"});
  expect_says([&] { train(recipe, "a", {"model.attention.heads=3"}); }, {"heads"});
  expect_says([&] { train(recipe, "a", {"data.validation_share=0", "train.patience=1"}); },
              {"train.patience", "validation"});
  // More than this machine has: refused beforehand, without making a batch.
  for (const char* too_much : {"train.batch=1048576", "model.width=1048576"})
    expect_says([&] { train(recipe, "a", {too_much, "model.ffn_width=65536"}); },
                {"memory of a step", "train.batch", "GB"});
  expect_says([&] { train(recipe, "a", {"train.from=nowhere"}); }, {"nowhere", "recipe.toml"});
  EXPECT_FALSE(std::filesystem::exists(out("a")));
  expect_says([&] { Job::resume(run::load_recipe(recipe), out("a")); }, {out("a"), "is not there"});
  expect_says([&] { run::load_run(out("a")); }, {out("a"), "is not there"});
  expect_says([&] { run::load_run(recipe); }, {recipe, "is a file"});
  train(recipe, "a");
  expect_says([&] { train(recipe, "a"); }, {out("a"), "--resume"});
  const std::string in_force = slurp(out("a") + "/recipe.toml");
  std::ofstream(out("a") + "/recipe.toml") << run::load_recipe(recipe, {"model.width=16"}).toml;
  expect_says([&] { run::load_run(out("a")); },
              {out("a") + "/model.safetensors", "tensor embed.weight", "16]", "8]"});
  std::ofstream(out("a") + "/recipe.toml") << in_force;
  damage_last_byte(out("a") + "/model.safetensors");
  expect_says([&] { run::load_run(out("a")); }, {"model.safetensors", "checksum"});
  expect_says([&] { train(recipe, "b", {"train.from=" + out("a")}); },
              {"model.safetensors", "checksum"});
  EXPECT_FALSE(std::filesystem::exists(out("b")));
  std::filesystem::remove(out("a") + "/model.safetensors");
  expect_says([&] { run::load_run(out("a")); }, {"model.safetensors", "not saved any weights"});
  std::filesystem::remove(out("a") + "/codec.json");
  expect_says([&] { run::load_run(out("a")); }, {"codec.json"});
  std::filesystem::remove(out("a") + "/recipe.toml");
  expect_says([&] { run::load_run(out("a")); }, {out("a"), "recipe.toml"});
}

// Replaces a line of a run's recipe.toml, as an editor would; the number of that line.
std::string edit_line(const std::string& path, const std::string& old, const std::string& now) {
  std::string text = slurp(path);
  const std::size_t at = text.find(old);
  EXPECT_NE(at, std::string::npos) << old << " is not in " << text;
  const auto line =
      1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  text.replace(at, old.size(), now);
  std::ofstream(path, std::ios::binary) << text;
  return std::to_string(line);
}

void drop_first_line(const std::string& path) {
  const std::string text = slurp(path);
  std::ofstream(path, std::ios::binary) << text.substr(text.find('\n') + 1);
}

// Both ways to resume refuse what would be another run, and name the key.
TEST_F(JobTest, AnEditedRecipeIsNotResumed) {
  const std::string recipe =
      language("r", "text = " + sample("text.txt") + "\ntokenizer = \"char\"\ncontext = 12\n");
  train(recipe, "a");
  const std::string path = out("a") + "/recipe.toml", good = slurp(path);
  struct Edit {
    const char *key, *old, *now, *before, *after;
  };
  const std::vector<Edit> edits = {
      {"train.learning_rate", "learning_rate = 0.01", "learning_rate = 0.02", "0.01", "0.02"},
      {"model.attention.position", "position = \"learned\"", "position = \"alibi\"", "\"learned\"",
       "\"alibi\""},
      {"model.width", "width = 8", "width = 16", "the run's 8", "got 16"},
      {"train.seed", "seed = 1", "seed = 3", "the run's 1", "got 3"},
  };
  for (const Edit& e : edits) {
    SCOPED_TRACE(e.key);
    std::ofstream(path) << good;
    const std::string line = edit_line(path, e.old, e.now);
    for (const auto& use : std::vector<std::function<void()>>{
             [&] { run::load_run(out("a")); },
             [&] { Job::resume(run::load_recipe(path), out("a")); },
         })
      expect_says(use, {"recipe.toml:" + line, e.key, e.before, e.after, "edited after the run",
                        "delete the first line"});
    // Without the seal it is used as it is, but the run does not go on as another one.
    drop_first_line(path);
    expect_says([&] { Job::resume(run::load_recipe(path), out("a")); },
                {"recipe.toml:" + std::to_string(std::stoi(line) - 1), e.key, e.before, e.after,
                 "train.from"});
    // The recipe it began with goes on, and mends the file.
    Job::resume(run::load_recipe(recipe), out("a")).run({});
    EXPECT_EQ(slurp(path), good);
  }
  EXPECT_EQ(run::load_run(out("a")).recipe.train.learning_rate, 0.01);
}

TEST_F(JobTest, ADamagedRecipeSaysSo) {
  const std::string recipe =
      language("r", "text = " + sample("text.txt") + "\ntokenizer = \"char\"\ncontext = 12\n");
  train(recipe, "a");
  const std::string path = out("a") + "/recipe.toml", good = slurp(path);
  std::ofstream(path) << good.substr(0, good.find("width"));
  expect_says([&] { run::load_run(out("a")); }, {"recipe.toml", "edited"});
  edit_line(path, "layers = 1", "layers = \x01");
  expect_says([&] { run::load_run(out("a")); }, {"recipe.toml", "is damaged"});
  // One bit of each byte: refused, or nothing that counts has changed.
  int refused = 0;
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (1 << at % 8));
    std::ofstream(path, std::ios::binary) << bad;
    try {
      EXPECT_TRUE(differences(run::load_recipe(path), run::load_recipe(recipe)).empty())
          << "byte " << at;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::io) << e.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, static_cast<int>(good.size() * 9 / 10));
}

// A run of before there were seals and recipes in checkpoints, and one whose data has moved.
TEST_F(JobTest, RunsWithoutSealsLoadAndDataMayMove) {
  const std::string first = dir_.file("first.txt", slurp(data_.file("text.txt")));
  const std::string recipe =
      language("r", "text = \"" + first + "\"\ntokenizer = \"char\"\ncontext = 12\n");
  train(recipe, "a");
  drop_first_line(out("a") + "/recipe.toml");
  run::load_run(out("a"));
  const std::string second = dir_.file("second.txt", slurp(first));
  const auto resume = [&] {
    Job::resume(run::load_recipe(recipe, {"data.text=" + second}), out("a")).run({});
  };
  expect_says(resume, {"--set data.text", first, second});  // the old one is still there
  std::filesystem::remove(first);
  resume();
  EXPECT_NE(slurp(out("a") + "/recipe.toml").find(second), std::string::npos);
  const std::string text = slurp(second);
  dir_.file("second.txt", std::string(text.rbegin(), text.rend()));
  expect_says(resume, {"step-4.safetensors", "other data"});
}

TEST_F(JobTest, ADamagedPlanStopsNothing) {
  const std::string directory = dir_.file("planned");
  std::filesystem::create_directories(directory);
  std::string said;
  const auto on_damage = [&said](const std::string& sentence) { said += sentence; };
  EXPECT_FALSE(plan::has_plan(directory, on_damage));
  EXPECT_EQ(said, "");
  plan::Plan plan;
  plan.parameters = 17;
  plan::write_plan(directory, plan);
  EXPECT_TRUE(plan::has_plan(directory, on_damage));
  EXPECT_EQ(said, "");
  edit_line(directory + "/plan.json", "17", "18");
  EXPECT_FALSE(plan::has_plan(directory, on_damage));
  EXPECT_NE(said.find("plan.json: was edited"), std::string::npos) << said;
  said.clear();
  std::ofstream(directory + "/plan.json") << "{\"para";
  EXPECT_FALSE(plan::has_plan(directory, on_damage));
  EXPECT_NE(said.find("is damaged"), std::string::npos) << said;
  EXPECT_NE(said.find("planned anew"), std::string::npos) << said;
}

// The plan that decides whether a run fits is the one that its report tells, and the machine is
// asked once in the life of a run.
TEST_F(JobTest, ARunIsPlannedAndProbedOnce) {
  const std::string recipe =
      language("r", "text = " + sample("text.txt") + "\ntokenizer = \"char\"\ncontext = 12\n");
  int probes = 0;
  const auto probe = [&probes](DType precision, std::int64_t bytes) {
    ++probes;
    EXPECT_EQ(precision, DType::f32);
    EXPECT_GT(bytes, 0);
    return plan::MachineSpeed{.flops_per_s = 3e9, .bytes_per_s = 1e9};
  };
  const auto say = [](const std::string& sentence) { ADD_FAILURE() << sentence; };
  const std::int64_t of_others = memory_use(Device::cpu).live;
  auto begun = std::make_unique<Job>(Job::begin(run::load_recipe(recipe), out("a")));
  Job& job = *begun;
  const auto machine = job.write_plan(probe, say);
  ASSERT_TRUE(machine);
  EXPECT_DOUBLE_EQ(plan::peak_flops(job.recipe().train, machine).value_or(0), 4e9);
  EXPECT_EQ(probes, 1);
  const auto kept = plan::read_plan(out("a"));
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->memory.peak, job.plan().largest.memory.peak);
  EXPECT_EQ(kept->flops_per_step, job.plan().largest.flops_per_step);
  EXPECT_EQ(kept->step_seconds, plan::seconds_on(*machine, job.plan().usual));
  EXPECT_GT(kept->step_seconds, 0);
  const Outcome outcome = job.run({});
  EXPECT_EQ(outcome.state.peak_bytes - of_others, kept->memory.peak);
  begun.reset();
  Job again = Job::resume(run::load_recipe(recipe), out("a"));
  EXPECT_FALSE(again.write_plan(probe, say));
  EXPECT_EQ(probes, 1);
}

TEST_F(JobTest, OtherDataIsNotResumed) {
  const std::string text = dir_.file("text.txt", slurp(data_.file("text.txt")));
  const std::string recipe =
      language("r", "text = \"" + text + "\"\ntokenizer = \"byte\"\ncontext = 12\n");
  train(recipe, "a");
  Job::resume(run::load_recipe(recipe), out("a")).run({});
  std::string changed = slurp(text);
  for (char& c : changed)
    if (c == 'w') c = 'W';
  dir_.file("text.txt", changed);
  expect_says([&] { Job::resume(run::load_recipe(recipe), out("a")).run({}); },
              {"step-4.safetensors", "data"});
}

TEST_F(JobTest, FineTuningKeepsWhatBothHave) {
  // Vocabularies "abc…" that overlap in part, a longer context.
  const auto text_of = [&](const std::string& letters) {
    std::string text;
    for (int i = 0; i < 300; ++i) text += letters[static_cast<std::size_t>(i * (i % 3 + 1)) % 5];
    return "\"" + dir_.file(letters + ".txt", text) + "\"";
  };
  const auto recipe = [&](const std::string& letters, int context) {
    return language(letters, "text = " + text_of(letters) + "\ntokenizer = \"char\"\ncontext = " +
                                 std::to_string(context) + "\n");
  };
  const Job old_job = train(recipe("abcde", 8), "old");
  const run::LoadedRun old_run = run::load_run(out("old"));

  // Same data: the same weights, and nothing to say.
  const std::string from = "train.from=" + out("old");
  Job same = Job::begin(run::load_recipe(recipe("abcde", 8), {from}), out("same"));
  EXPECT_TRUE(same.adopted().empty()) << same.adopted()[0];
  EXPECT_EQ(weights_of(same.model()), weights_of(*old_run.model));

  Job other = Job::begin(run::load_recipe(recipe("cdefg", 12), {from}), out("other"));
  const auto& said = other.adopted();
  ASSERT_EQ(said.size(), 3u);
  EXPECT_EQ(said[0], "embed.weight: 3 of 5 tokens kept, 2 new");
  EXPECT_EQ(said[1], "position.weight: 8 of 8 positions kept, 4 new");
  EXPECT_EQ(said[2], "head.weight: 3 of 5 tokens kept, 2 new");
  const auto row = [](const model::Model& m, const std::string& name, std::int64_t i) {
    for (const nn::Parameter& p : m.parameters().all())
      if (p.name == name) return views::slice(p.tensor, 0, i, i + 1).to_vector<float>();
    return std::vector<float>();
  };
  const auto& old = *old_run.model;
  // c is token 2 of abcde and token 0 of cdefg.
  EXPECT_EQ(row(other.model(), "embed.weight", 0), row(old, "embed.weight", 2));
  EXPECT_EQ(row(other.model(), "head.weight", 2), row(old, "head.weight", 4));
  EXPECT_EQ(row(other.model(), "position.weight", 7), row(old, "position.weight", 7));
  EXPECT_NE(row(other.model(), "embed.weight", 3), row(old, "embed.weight", 3));
  other.run({});

  expect_says([&] { train(recipe("abcde", 8), "x", {from, "model.width=16"}); },
              {"embed.weight", "[5, 16]", "[5, 8]"});
  expect_says([&] { train(recipe("abcde", 8), "x", {from, "model.layers=2"}); }, {"layers.1."});
  expect_says([&] { train(recipe("abcde", 8), "x", {from, "model.bias=false"}); }, {"bias"});
}

// All weights of the old run except tables go to the new model; each token that both vocabularies
// have keeps its vector, whatever its id. New tokens do not have the old model's vectors.
void expect_adopted(const Job& job, const run::LoadedRun& old_run) {
  std::map<std::string, Tensor> before;
  for (const nn::Parameter& p : old_run.model->parameters().all()) before[p.name] = p.tensor;
  std::size_t layers = 0;
  for (const nn::Parameter& p : job.model().parameters().all()) {
    SCOPED_TRACE(p.name);
    if (p.name.starts_with("head.") || p.name == "class_token") continue;
    ASSERT_TRUE(before.contains(p.name));
    if (p.name == "embed.weight") continue;
    EXPECT_EQ(p.tensor.to_vector<float>(), before.at(p.name).to_vector<float>());
    ++layers;
  }
  EXPECT_GT(layers, 10u);
  const Tensor& now = job.model().parameters().all()[0].tensor;
  ASSERT_EQ(job.model().parameters().all()[0].name, "embed.weight");
  const text::Tokenizer &mine = job.data().codec().source(), &theirs = old_run.codec->source();
  int kept = 0;
  for (int i = 0; i < 23; ++i) {
    const std::string word = "w" + std::to_string(i);
    const auto own = mine.encode(word), other = theirs.encode(word);
    ASSERT_EQ(own.size(), 1u);
    if (other.size() != 1 || theirs.decode(other) != word) continue;
    EXPECT_EQ(views::slice(now, 0, own[0], own[0] + 1).to_vector<float>(),
              views::slice(before.at("embed.weight"), 0, other[0], other[0] + 1).to_vector<float>())
        << word;
    ++kept;
  }
  EXPECT_EQ(kept, 23);
}

TEST_F(JobTest, FineTuningToAnotherTaskHasANewHead) {
  const std::string vocabulary = "tokenizer = \"word\"\nmin_count = 1\n";
  const std::string text = "text = " + sample("text.txt") + "\ncontext = 12\n" + vocabulary;
  train(write("masked", "kind = \"encoder\"\ntask = \"masked\"\n", text), "masked");
  const std::string labelled = "labelled = " + sample("labelled.tsv") + "\nmax_length = 12\n" +
                               vocabulary + "validation_share = 0.2\n";
  const std::string classify =
      write("classify", "kind = \"encoder\"\ntask = \"classify\"\n", labelled);
  const Job job =
      Job::begin(run::load_recipe(classify, {"train.from=" + out("masked")}), out("new"));
  expect_adopted(job, run::load_run(out("masked")));
  std::string all;
  for (const std::string& sentence : job.adopted()) all += sentence + "\n";
  for (const char* part : {"head.weight: new, for the task classify", "head.bias: new",
                           "class_token: new", "model.task was \"masked\" and is \"classify\""})
    EXPECT_NE(all.find(part), std::string::npos) << all;
}

}  // namespace
}  // namespace heddle::train
