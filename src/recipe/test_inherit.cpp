// Recipes that are based on others, and files that are no recipes at all.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/test_support.h"
#include "io/test_support.h"
#include "recipe/not_a_recipe.h"
#include "recipe/recipe.h"
#include "run/unit.h"
#include "train/job.h"

namespace heddle::recipe {
namespace {

using io::TempDir;
using namespace std::string_literals;

const char* const kBase = R"([model]
kind = "decoder"
layers = 1
width = 8
[model.attention]
heads = 2
look_back = 3
[data]
text = "words.txt"
tokenizer = "byte"
context = 4
[train]
steps = 4
batch = 2
warmup = 0
)";

class InheritTest : public ::testing::Test {
 protected:
  InheritTest() {
    std::filesystem::create_directory(dir_.file("bases"));
    dir_.file("bases/words.txt", "one two three four five six seven eight nine ten\n");
    base_ = dir_.file("bases/base.toml", kBase);
  }
  std::string child(const std::string& text) const { return dir_.file("child.toml", text); }

  TempDir dir_;
  std::string base_;
};

TEST_F(InheritTest, KeysOfTheChildWinAndTheOthersStay) {
  const Recipe r =
      load_recipe(child("base = \"bases/base.toml\"\n[model]\nwidth = 16\n"
                        "[model.attention]\nposition = \"rope\"\n[train]\nsteps = 9\n"));
  EXPECT_EQ(r.model.width, 16);
  EXPECT_EQ(r.model.layers, 1);
  EXPECT_EQ(r.model.attention.heads, 2);
  EXPECT_EQ(r.model.attention.look_back, 3);
  EXPECT_EQ(r.train.steps, 9);
  EXPECT_EQ(r.train.batch, 2);
  // By hand: the same recipe in one file.
  EXPECT_EQ(io::toml_inline(r.keys.at("model.attention.position")), "\"rope\"");
  EXPECT_FALSE(r.keys.contains("base"));
  // The base's data, from where the base is.
  EXPECT_EQ(io::toml_inline(r.keys.at("data.text")), "\"" + dir_.file("bases/words.txt") + "\"");
  // The recipe that a run keeps needs no base.
  EXPECT_EQ(recipe_of_text(r.toml, "kept").toml, r.toml);
  // A value set by an option comes last.
  EXPECT_EQ(load_recipe(dir_.file("child.toml"), {"model.width=32"}).model.width, 32);
}

TEST_F(InheritTest, PatternsOfABaseAreThoseBesideIt) {
  dir_.file("bases/patterns.toml", "base = \"base.toml\"\n[data]\ntext = \"wor*.txt\"\n");
  const Recipe r = load_recipe(child("base = \"bases/patterns.toml\"\n"));
  EXPECT_EQ(io::toml_inline(r.keys.at("data.text")), "\"" + dir_.file("bases/wor*.txt") + "\"");
}

TEST_F(InheritTest, ErrorsNameTheFileWhereTheKeyStands) {
  expect_says([&] { load_recipe(child("base = \"bases/base.toml\"\n[model]\nwidth = 9\n")); },
              {"bases/base.toml:6: key model.attention.heads", "divisor of the width 9",
               "model.width: " + dir_.file("child.toml:3")});
  expect_says(
      [&] { load_recipe(child("base = \"bases/base.toml\"\n[train]\nbatch = \"many\"\n")); },
      {"child.toml:3: key train.batch", "\"many\""});
  dir_.file("bases/bad.toml", "base = \"base.toml\"\n[model]\nwidht = 3\n");
  expect_says([&] { load_recipe(child("base = \"bases/bad.toml\"\n")); },
              {"bases/bad.toml:3: unknown key model.widht", "did you mean width?"});
}

TEST_F(InheritTest, BasesHaveBasesUpToALimit) {
  std::string previous = "bases/base.toml";
  for (int i = 1; i <= 8; ++i) {
    const std::string name = "c" + std::to_string(i) + ".toml";
    dir_.file(name, "base = \"" + previous + "\"\n[train]\nseed = " + std::to_string(i) + "\n");
    previous = name;
  }
  EXPECT_EQ(load_recipe(dir_.file("c8.toml")).train.seed, 8u);
  EXPECT_EQ(load_recipe(dir_.file("c3.toml")).train.seed, 3u);
  expect_says([&] { load_recipe(child("base = \"c8.toml\"\n")); },
              {"c1.toml:1: key base", "at most 8"});
}

TEST_F(InheritTest, RefusesRoundsAndBasesThatAreNotThere) {
  dir_.file("a.toml", "base = \"b.toml\"\n");
  dir_.file("b.toml", "base = \"a.toml\"\n");
  expect_says([&] { load_recipe(dir_.file("a.toml")); },
              {"b.toml:1: key base comes back", "a.toml -> b.toml -> a.toml"});
  expect_says([&] { load_recipe(child("base = \"child.toml\"\n")); },
              {"child.toml:1: key base comes back"});
  expect_says([&] { load_recipe(child("\n\nbase = \"bases/bsae.toml\"\n")); },
              {"child.toml:3: key base: there is no such recipe", "bases/bsae.toml"});
  expect_says([&] { load_recipe(child("base = 3\n")); }, {"child.toml:1: key base", "a string"});
  expect_says([&] { load_recipe(child("base = \"\"\n")); }, {"child.toml:1: key base"});
  // It is no key of a table, and nothing that an option sets.
  expect_says([&] { load_recipe(child(kBase + "base = \"base.toml\"\n"s)); },
              {"unknown key train.base", "above the first [table]"});
  expect_says([&] { load_recipe(base_, {"base=other.toml"}); }, {"--set base: key base", "above"});
}

TEST_F(InheritTest, LeavesOutWhatItIsTold) {
  const Recipe r =
      load_recipe(child("base = \"bases/base.toml\"\nwithout = [\"model.attention.look_back\"]\n"));
  EXPECT_EQ(r.model.attention.heads, 2);
  EXPECT_FALSE(r.keys.contains("model.attention.look_back"));
  const Recipe none =
      load_recipe(child("base = \"bases/base.toml\"\nwithout = [\"model.attention\"]\n"));
  EXPECT_EQ(none.model.attention.heads, 1);
  expect_says(
      [&] { load_recipe(child("base = \"bases/base.toml\"\nwithout = [\"model.look\"]\n")); },
      {"child.toml:2: key without", "has no model.look"});
  expect_says([&] { load_recipe(child("without = [\"train.seed\"]\n"s + kBase)); },
              {"child.toml:1: key without", "a recipe with a base"});
}

TEST_F(InheritTest, ARunNeedsNoBaseAndAnEditedOneIsNoticed) {
  const std::string path = child("base = \"bases/base.toml\"\n[train]\nseed = 5\n");
  train::Job::begin(load_recipe(path), dir_.file("run")).run({});
  dir_.file("bases/base.toml",
            std::string(kBase).replace(std::string(kBase).find("= 8"), 3, "= 4"));
  expect_says([&] { train::Job::resume(load_recipe(path), dir_.file("run")); },
              {"bases/base.toml:4: key model.width is not that of the run", "the run's 8", "4"});
  std::filesystem::remove(base_);
  EXPECT_EQ(load_recipe(dir_.file("run/recipe.toml")).train.seed, 5u);
  train::Job::resume(load_recipe(dir_.file("run/recipe.toml")), dir_.file("run"));
}

// A run's recipe may be a base; one that was edited is refused there too.
TEST_F(InheritTest, RunsAreBases) {
  train::Job::begin(load_recipe(base_), dir_.file("run")).run({});
  EXPECT_EQ(load_recipe(child("base = \"run\"\n[train]\nseed = 8\n")).train.seed, 8u);
}

TEST(Units, ArePeoplesOwn) {
  const TempDir dir;
  dir.file("tags.tsv", "one\tN\ntwo\tN\n\nthree\tV\n");
  const auto unit = [&](const std::string& tokenizer) {
    Recipe r = load_recipe(
        dir.file("r.toml",
                 "[model]\nkind = \"encoder\"\ntask = \"tag\"\nlayers = 1\nwidth = 8\n[data]\n"
                 "tags = \"tags.tsv\"\ntokenizer = \"" +
                     tokenizer + "\"\n[train]\nsteps = 1\nbatch = 1\n"));
    const auto data = open_data(r);
    take_sizes(r, *data);
    EXPECT_EQ(run::unit_judged(r.model), "words");
    return run::unit_read(r.model, data->codec()).name;
  };
  EXPECT_EQ(unit("word"), "words");
  EXPECT_EQ(unit("byte"), "tokens");  // several a word

  model::ModelConfig vit;
  vit.kind = model::Kind::vit;
  vit.task = model::Task::classify;
  vit.patch = 4;
  vit.sizes.height = 28;
  vit.sizes.width = 12;
  const run::Unit images = run::unit_of_images(vit);
  EXPECT_EQ(images.name, "images");
  EXPECT_EQ(images.count(7 * 3 * 50), 50);
  EXPECT_EQ(images.told("3") + "; " + images.rate_told("4k") + "; " + images.rate_title(),
            "3 images; 4k images/s; images/s");
  const run::Unit words{"words"}, tokens{"tokens"};
  EXPECT_EQ(words.told("3") + "; " + words.rate_told("4k") + "; " + words.rate_title(),
            "3 words; 4k words/s; words/s");
  EXPECT_EQ(tokens.told("3") + "; " + tokens.rate_told("4k") + "; " + tokens.title(),
            "3 tokens; 4k tokens/s; tokens");
  EXPECT_EQ(run::unit_judged(vit), "images");
  vit.kind = model::Kind::encoder;
  EXPECT_EQ(run::unit_judged(vit), "texts");
  vit.task = model::Task::language;
  EXPECT_EQ(run::unit_judged(vit), "tokens");
}

TEST(NotARecipe, IsSaidForWhatItIs) {
  const TempDir dir;
  const auto refused = [&](const std::string& bytes, std::initializer_list<std::string_view> says) {
    expect_says([&] { load_recipe(dir.file("given", bytes)); }, says);
  };
  refused(
      "First Citizen:\nBefore we proceed any further, hear me speak.\n\nAll: speak\n",
      {"given: is a text, not a recipe", "heddle init --data text --path " + dir.file("given")});
  refused("a cat\tein Kater\na dog\tein Hund\n",
          {"text with columns", "heddle init --data pairs --path "});
  refused("model:\n  layers: 4\n  width: 8\n", {"looks like YAML", "layers = 4"});
  refused("{\"n_layer\": 4}", {"is JSON, not a recipe"});
  refused("\x89PNG\r\n\x1a\n", {"is an image (PNG)"});
  refused("\xff\xd8\xff\xe0", {"is an image (JPEG)"});
  refused("\x1f\x8b\x08", {"gzip"});
  refused("PK\x03\x04", {"PyTorch", "heddle generate RUN"});
  refused("\x10\0\0\0\0\0\0\0{\"__metadata__\""s, {"weights (safetensors)", "heddle generate RUN"});
  refused("\xff\xfe[\0m\0"s, {"UTF-16", "UTF-8"});
  refused("\x7f"s + "ELF\0\0\0"s, {"is a binary file"});
  refused("  \n\n", {"is empty, not a recipe", "heddle init"});
  refused(std::string(3u << 20, 'x') + "\n", {"is a text"});
  // Mistakes in a recipe are the parser's, with their line.
  refused("model]\nlayers = 4\n", {"given:1"});
  refused("# my first recipe\n[model\nlayers = 4\n", {"given:2"});
}

}  // namespace
}  // namespace heddle::recipe
