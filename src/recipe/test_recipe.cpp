#include <gtest/gtest.h>

#include <filesystem>

#include "base/test_support.h"
#include "io/files/checksums/seal.h"
#include "io/test_support.h"
#include "io/toml/toml.h"
#include "recipe/recipe.h"
#include "run/recipe_file.h"

namespace heddle::recipe {
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
    auto again = io::TomlDocument::parse("", "again");
    put_train(again, c);
    EXPECT_EQ(parse_train(again.root().table("train")), c) << again.text();
    again.finish();
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
  refused("parts = 5", {"train.parts", "at most train.batch", "5"});
  refused("parts = 2\naccumulate = 3", {"train.parts", "train.accumulate"});
  refused("parts = 2\ndevice = \"cuda\"", {"train.parts", "device = \"cpu\""});
  refused("parts = 0", {"train.parts"});
  refused("shard = \"weights\"", {"train.shard", "one of optimizer, gradients"});
  refused("shard = \"parameters\"", {"train.shard", "not there"});
  refused("timeout = 0", {"train.timeout"});
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

std::string text_of(const Recipe& recipe, const std::string& key) {
  return io::toml_inline(recipe.keys.at(key));
}

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
  EXPECT_EQ(text_of(r, "model.attention.heads"), "2");
  EXPECT_EQ(text_of(r, "train.warmup"), "3");  // a default, now said
  // Files that exist by their whole path, others as they were.
  EXPECT_EQ(text_of(r, "data.text"), "[\"" + dir.file("a.txt") + "\", \"b.txt\"]");
  EXPECT_EQ(text_of(r, "data.validation"), "\"" + dir.file("c.txt") + "\"");
  EXPECT_EQ(text_of(r, "data.tokenizer"), "\"byte\"");
  std::filesystem::create_directory(dir.file("run"));
  EXPECT_EQ(load_recipe(dir.file("run/recipe.toml", r.toml)).toml, r.toml);

  expect_says([&] { load_recipe(path, {"model.hedas=2"}); }, {"hedas"});
  expect_says([&] { load_recipe(path, {"train.steps"}); }, {"train.steps"});
  expect_says([&] { load_recipe(path, {"trian.steps=3"}); }, {"trian"});
  expect_says([&] { load_recipe(path, {"data.pairs=x"}); }, {"pairs"});
  expect_says([&] { load_recipe(dir.file("none.toml")); }, {"none.toml"});
  // A value that could not be read back must not get into the recipe of a run.
  expect_says([&] { load_recipe(path, {"data.text=\xff.txt"}); }, {"--set", "UTF-8", "\\xff"});
  std::filesystem::create_directory(dir.file("\xff"));
  dir.file("\xff/a.txt", "x");
  const std::string elsewhere = dir.file("\xff/r.toml", kRecipe);
  expect_says([&] { load_recipe(elsewhere); }, {"path of a file", "UTF-8", "\\xff"});
}

// Byte for byte: runs are resumed from it, and their seals are of this text. The keys of the recipe
// in their order, followed by those that it did not set.
TEST(Recipe, ARunKeepsThisText) {
  const TempDir dir;
  for (const char* file : {"a.txt", "b.txt", "c.txt"}) dir.file(file, "x");
  const Recipe r = load_recipe(dir.file("r.toml", kRecipe),
                               {"model.attention.heads=2", "train.precision=bf16",
                                "train.learning_rate=1", "model.norm=rms", "train.weight_decay=0"});
  const auto at = [&dir](const char* file) { return "\"" + dir.file(file) + "\""; };
  EXPECT_EQ(r.toml,
            "[model]\nkind = \"decoder\"\nlayers = 1\nwidth = 8\nnorm = \"rms\"\n\n"
            "[model.attention]\nheads = 2\n\n"
            "[data]\ntext = [" +
                at("a.txt") + ", " + at("b.txt") + "]\nvalidation = " + at("c.txt") +
                "\ntokenizer = \"byte\"\ncontext = 4\n\n"
                "[train]\nsteps = 30\nbatch = 2\nschedule = \"constant\"\nprecision = \"bf16\"\n"
                "learning_rate = 1.0\nweight_decay = 0.0\naccumulate = 1\ndevice = \"cpu\"\n"
                "recompute = false\noptimizer = \"adamw\"\nwarmup = 3\nbeta1 = 0.9\nbeta2 = 0.98\n"
                "epsilon = 1e-08\nclip = 1.0\nlabel_smoothing = 0.0\nsave_every = 250\nkeep = 2\n"
                "log_every = 10\nlog = [\"jsonl\"]\nseed = 1\n");
}

// Every key that names a file: a run's recipe is used in other directories.
TEST(Recipe, FilesAreWrittenByTheirWholePaths) {
  struct Row {
    const char *model, *data;
    std::vector<const char*> keys;
  };
  const char* language = "kind = \"decoder\"";
  const char* pairs = "kind = \"encoder-decoder\"";
  const char* classes = "kind = \"encoder\"\ntask = \"classify\"";
  const std::vector<Row> rows = {
      {language, "tokenizer = \"t.json\"\ncontext = 4", {"text", "validation", "test"}},
      {pairs, "tokenizer = \"t.json\"\ntarget_tokenizer = \"u.json\"", {"pairs", "test_pairs"}},
      {pairs, "tokenizer = \"t.json\"", {"source", "target", "validation_pairs"}},
      {"kind = \"encoder\"\ntask = \"tag\"", "tokenizer = \"word\"", {"tags", "test_tags"}},
      {classes, "tokenizer = \"word\"", {"labelled", "validation_labelled"}},
      {"kind = \"vit\"\npatch = 2", "", {"images", "labels", "test_images", "test_labels"}},
      {"kind = \"vit\"\npatch = 2", "", {"image_folder"}}};
  const TempDir dir;
  for (const char* name : {"t.json", "u.json"}) dir.file(name, "{}");
  for (const Row& row : rows) {
    std::string text = "[model]\nlayers = 1\nwidth = 8\n" + std::string(row.model) +
                       "\n[train]\nsteps = 3\nbatch = 2\n[data]\n" + row.data + "\n";
    for (const std::string key : row.keys) {
      if (key == "image_folder")
        std::filesystem::create_directory(dir.file(key));
      else
        dir.file(key, "x");
      text += key + " = \"" + key + "\"\n";
    }
    const Recipe r = load_recipe(dir.file("r.toml", text));
    for (const std::string key : row.keys)
      EXPECT_EQ(text_of(r, "data." + key), "\"" + dir.file(key) + "\"");
    for (const auto& [key, file] :
         {std::pair{"data.tokenizer", "t.json"}, std::pair{"data.target_tokenizer", "u.json"}})
      if (text.find(file) != std::string::npos) {
        EXPECT_EQ(text_of(r, key), "\"" + dir.file(file) + "\"");
      }
  }
}

// A recipe that people write has mistakes; only what a run wrote is damaged.
TEST(Recipe, OnlyWhatHeddleWroteIsDamaged) {
  const TempDir dir;
  const auto complaint = [&](const std::string& text) {
    try {
      read_unedited(dir.file("r.toml", text));
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("nothing was refused");
  };
  const std::string broken = "[train\nsteps = 3\n";
  EXPECT_EQ(complaint(broken).find("damaged"), std::string::npos) << complaint(broken);
  EXPECT_NE(complaint(broken).find("r.toml:1"), std::string::npos) << complaint(broken);
  const std::string sealed = io::sealed_toml(broken);
  EXPECT_NE(complaint(sealed).find("is damaged: "), std::string::npos) << complaint(sealed);
}

TEST(TrainConfig, SaysWhatIsAllowedAndWhatItGot) {
  TrainConfig c;
  c.steps = 5;
  c.batch = 2;
  EXPECT_NO_THROW(validate(c));
  c.accumulate = 0;
  try {
    validate(c);
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(e.expected(), "1 to 4096") << e.what();
    EXPECT_EQ(e.got(), "0") << e.what();
  }
}

// Only keys that name files are paths: a word that is elsewhere the name of a file stays a word.
TEST(Recipe, WhatIsNoPathStaysAWord) {
  const TempDir dir;
  dir.file("line", "x");
  const std::string text =
      "[model]\nkind = \"decoder\"\nlayers = 1\nwidth = 8\n[data]\ntext = \"line\"\n"
      "documents = \"line\"\ntokenizer = \"byte\"\ncontext = 4\n[train]\nsteps = 3\nbatch = 2\n";
  const Recipe r = load_recipe(dir.file("r.toml", text));
  EXPECT_EQ(text_of(r, "data.text"), "\"" + dir.file("line") + "\"");
  EXPECT_EQ(text_of(r, "data.documents"), "\"line\"");
  EXPECT_EQ(recipe_of_text(r.toml, "kept").toml, r.toml);
}

// Values, not how they are written; keys, not where they stand.
TEST(Recipe, DiffersByValuesNotByTheirText) {
  const auto values = [](const std::string& toml) {
    return io::TomlDocument::parse(toml, "r.toml").values();
  };
  const io::TomlValues one = values("[a]\nx = 1\ny = \"p = q\"\nz = [0.5, 2]\n[b.c]\nd = true\n");
  const io::TomlValues same =
      values("b.c = {d = true}\na.z = [\n5e-1, # half\n 2]\na.y = 'p = q'\na.x = 0x1\n");
  EXPECT_TRUE(differences(one, same).empty());
  const io::TomlValues other = values("[a]\nx = 1.0\ny = \"p = r\"\nz = [0.5]\ne = 3\n");
  std::string told;
  for (const Difference& d : differences(one, other))
    told += d.key + ": " + d.was() + " -> " + d.is() + "\n";
  EXPECT_EQ(told,
            "a.x: 1 -> 1.0\na.y: \"p = q\" -> \"p = r\"\na.z: [0.5, 2] -> [0.5]\n"
            "b.c.d: true -> (absent)\na.e: (absent) -> 3\n");
}

TEST(Recipe, SaysWhatMayChangeOnResume) {
  const TempDir dir;
  const std::string path = dir.file("r.toml", kRecipe);
  const auto with = [&](const std::vector<std::string>& set) { return load_recipe(path, set); };
  const Recipe before = with({});
  EXPECT_TRUE(differences(before, before).empty());
  check_resumable(before, with({"train.keep=9", "train.save_every=1"}));
  check_resumable(before, with({"train.steps=90", "train.warmup=3"}));
  check_resumable(with({"train.parts=2"}), with({"train.parts=2", "train.shard=gradients"}));
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
}  // namespace heddle::recipe
