#include <filesystem>

#include "io/test_support.h"
#include "io/toml.h"
#include "train/recipe.h"
#include "train/test_support.h"

namespace heddle::train {
namespace {

using io::TempDir;

TrainConfig parsed(const std::string& keys) {
  const auto document = io::TomlDocument::parse("[train]\n" + keys, "recipe.toml");
  const TrainConfig config = parse_train(document.root().table("train"));
  document.finish();
  return config;
}

TEST(ParseTrain, FillsDefaultsThatDependOnOthers) {
  const TrainConfig c = parsed("steps = 5000\nbatch = 64");
  EXPECT_EQ(c.warmup, 100);
  EXPECT_EQ(c.weight_decay, 0.1);
  EXPECT_EQ(c.learning_rate, 1e-3);
  EXPECT_EQ(c.precision, DType::f32);
  EXPECT_FALSE(c.eval_every);
  EXPECT_EQ(parsed("steps = 50\nbatch = 1").warmup, 5);
  const TrainConfig sgd = parsed("steps = 5\nbatch = 6\noptimizer = \"sgd\"");
  EXPECT_EQ(sgd.learning_rate, 0.1);
  EXPECT_EQ(sgd.weight_decay, 0);
}

// Every key, read, written and read again.
TEST(ParseTrain, ReadsWhatItWrites) {
  const std::string common =
      "steps = 70\nbatch = 8\naccumulate = 2\nprecision = \"bf16\"\nrecompute = true\n"
      "learning_rate = 0.3\nwarmup = 7\nweight_decay = 0.2\nclip = 0\nlabel_smoothing = 0.1\n"
      "eval_every = 9\neval_batches = 3\npatience = 4\nsave_every = 11\nkeep = 5\nlog_every = 6\n"
      "log = [\"tensorboard\", \"jsonl\", \"csv\"]\n"
      "seed = 12\nfrom = \"runs/a \\\"b\\\"\"\n";
  for (const std::string& rest :
       {std::string(
            "optimizer = \"sgd\"\nmomentum = 0.8\nnesterov = true\nschedule = \"constant\""),
        std::string("beta1 = 0.7\nbeta2 = 0.8\nepsilon = 1e-5\nschedule = \"linear\"\n"
                    "final_share = 0.5"),
        std::string("schedule = \"inverse-sqrt\"")}) {
    const TrainConfig c = parsed(common + rest);
    EXPECT_EQ(c.precision, DType::bf16);
    EXPECT_EQ(c.patience, 4);
    EXPECT_EQ(c.log, (std::vector{LogFormat::tensorboard, LogFormat::jsonl, LogFormat::csv}));
    EXPECT_EQ(c.from, "runs/a \"b\"");
    std::string again;
    for (const auto& [key, value] : toml_keys(c))
      again.append(key).append(" = ").append(value) += '\n';
    EXPECT_EQ(parsed(again), c) << again;
  }
}

TEST(ParseTrain, RefusesWithTheReason) {
  const auto refused = [](const std::string& keys, std::initializer_list<std::string_view> parts) {
    expect_says([&] { parsed("steps = 10\nbatch = 4\n" + keys); }, parts);
  };
  refused("momentum = 0.9", {"recipe.toml:4", "train.momentum", "sgd"});
  refused("nesterov = true", {"train.nesterov", "sgd"});
  refused("optimizer = \"sgd\"\nbeta1 = 0.9", {"recipe.toml:5", "train.beta1", "adamw"});
  refused("optimizer = \"sgd\"\nepsilon = 1e-8", {"train.epsilon", "adamw"});
  refused("optimizer = \"sgd\"\nnesterov = true", {"train.nesterov", "momentum"});
  refused("optimizer = \"adam\"", {"train.optimizer", "adamw", "sgd"});
  refused("schedule = \"constant\"\nfinal_share = 0.1", {"train.final_share", "cosine"});
  refused("warmup = 11", {"train.warmup", "at most train.steps", "11", "--set train.warmup=1)"});
  refused("accumulate = 5", {"train.accumulate", "at most train.batch"});
  refused("precision = \"fp16\"", {"train.precision", "bf16", "fp32"});
  refused("beta2 = 1.0", {"train.beta2", "below 1"});
  refused("learning_rate = 0", {"train.learning_rate", "above 0"});
  refused("learning_rate = 1.0\nweight_decay = 1.0", {"train.weight_decay", "learning_rate"});
  refused("label_smoothing = 1.0", {"train.label_smoothing"});
  refused("clip = -1", {"train.clip"});
  refused("eval_every = 0\npatience = 2", {"train.patience", "eval_every = 0"});
  refused("eval_every = 0\neval_batches = 2", {"train.eval_batches"});
  refused("keep = 0", {"train.keep"});
  refused("log_every = 0", {"train.log_every"});
  refused("log = [\"csv\"]", {"train.log", "jsonl", "--resume"});
  refused("log = []", {"train.log", "jsonl"});
  refused("log = [\"jsonl\", \"jsonl\"]", {"train.log", "once"});
  refused("log = [\"jsonl\", \"wandb\"]", {"recipe.toml:4", "train.log", "csv", "tensorboard"});
  refused("log = \"jsonl\"", {"train.log"});
  refused("seed = -1", {"train.seed"});
  refused("stepz = 3", {"stepz", "steps"});
  expect_says([] { parsed("batch = 3"); }, {"train.steps"});
  expect_says([] { parsed("steps = 3"); }, {"train.batch"});
}

constexpr const char* kRecipe = R"(# a comment
[model]
kind = "decoder"
layers = 1
width = 8
[data]
text = ["a.txt", "b.txt"]
validation = "c.txt"
tokenizer = "byte"
context = 4
[train]
steps = 30
batch = 2
schedule = "constant"
)";

TEST(Recipe, IsReadOverriddenAndWrittenBack) {
  const TempDir dir;
  dir.file("a.txt", "x");
  dir.file("c.txt", "x");
  const std::string path = dir.file("r.toml", kRecipe);
  const Recipe r =
      load_recipe(path, {"model.attention.heads=2", "train.precision=bf16", "model.norm=rms"});
  EXPECT_EQ(r.model.attention.heads, 2);
  EXPECT_EQ(r.model.norm, nn::NormKind::rms);
  EXPECT_EQ(r.train.precision, DType::bf16);
  EXPECT_EQ(r.data.directory, dir.path());
  const auto keys = keys_of(r);
  EXPECT_EQ(keys.at("model.attention.heads"), "2");
  EXPECT_EQ(keys.at("train.warmup"), "3");  // a default, now said
  // Files that exist by their whole path, others as they were.
  EXPECT_EQ(keys.at("data.text"), "[\"" + dir.file("a.txt") + "\", \"b.txt\"]");
  EXPECT_EQ(keys.at("data.validation"), "\"" + dir.file("c.txt") + "\"");
  EXPECT_EQ(keys.at("data.tokenizer"), "\"byte\"");
  std::filesystem::create_directory(dir.file("run"));
  EXPECT_EQ(load_recipe(dir.file("run/recipe.toml", r.toml)).toml, r.toml);

  expect_says([&] { load_recipe(path, {"model.hedas=2"}); }, {"hedas"});
  expect_says([&] { load_recipe(path, {"train.steps"}); }, {"train.steps"});
  expect_says([&] { load_recipe(path, {"trian.steps=3"}); }, {"trian"});
  expect_says([&] { load_recipe(path, {"data.pairs=x"}); }, {"pairs"});
  expect_says([&] { load_recipe(dir.file("none.toml")); }, {"none.toml"});
  // What could not be read back must not get into the recipe of a run.
  expect_says([&] { load_recipe(path, {"data.text=\xff.txt"}); }, {"--set", "UTF-8", "\\xff"});
  std::filesystem::create_directory(dir.file("\xff"));
  dir.file("\xff/a.txt", "x");
  const std::string elsewhere = dir.file("\xff/r.toml", kRecipe);
  expect_says([&] { load_recipe(elsewhere); }, {"path of a file", "UTF-8", "\\xff"});
}

TEST(Recipe, SaysWhatMayChangeOnResume) {
  const TempDir dir;
  const std::string path = dir.file("r.toml", kRecipe);
  const auto with = [&](const std::vector<std::string>& set) { return load_recipe(path, set); };
  const Recipe before = with({});
  EXPECT_TRUE(differences(before, before).empty());
  check_resumable(before, with({"train.keep=9", "train.save_every=1"}));
  check_resumable(before, with({"train.steps=90", "train.warmup=3"}));
  const auto refused = [&](const Recipe& was, const std::vector<std::string>& set,
                           std::initializer_list<std::string_view> parts) {
    expect_says([&] { check_resumable(was, with(set)); }, parts);
  };
  refused(before, {"train.steps=90"}, {"train.warmup", "3", "9"});
  refused(before, {"train.steps=29", "train.warmup=3"}, {"train.steps", "30 or more", "29"});
  refused(before, {"model.width=16"}, {"model.width", "8", "16"});
  refused(before, {"model.norm=rms"}, {"model.norm", "absent", "rms"});
  refused(with({"model.norm=rms"}), {}, {"model.norm", "rms", "absent"});
  refused(with({"train.schedule=cosine"}), {"train.schedule=cosine", "train.steps=31"},
          {"train.steps", "schedule goes by"});
}

}  // namespace
}  // namespace heddle::train
