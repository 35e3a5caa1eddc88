// The [data] table: what is read, and what is refused before any file is looked at.
#include "data/config.h"

#include <gtest/gtest.h>

#include <functional>

#include "data/keys.h"
#include "data/test_support.h"
#include "io/toml/toml.h"

namespace heddle::data {
namespace {

using model::Kind;
using model::Task;

DataConfig parsed(const std::string& text) {
  const io::TomlDocument document = io::TomlDocument::parse(text, "recipe.toml");
  const DataConfig config = parse_data(document.root().table("data"), "recipes");
  document.finish();
  return config;
}

TEST(DataConfigTest, EveryKeyIsRead) {
  std::string text = "[data]\n";
  for (const char* prefix : {"", "validation_", "test_"})
    for (const FileKey& key : kFileKeys)
      text += prefix + std::string(key.name) + " = \"" + prefix + std::string(key.name) + ".x\"\n";
  text +=
      "text = [\"a.txt\", \"b.txt\"]\nvalidation = \"c.txt\"\ntest = \"d.txt\"\n"
      "validation_share = 0.25\ntokenizer = \"bpe:500\"\ntarget_tokenizer = \"char\"\n"
      "source_end = false\nmin_count = 3\nword_shapes = false\ncontext = 64\nmax_length = "
      "99\nskip_long = true\nmask_share = 0.2\n"
      "field = \"body\"\ntoken_folder = \"tokens\"\nmixture = [3, 0.5]\n"
      "documents = \"blank-line\"\nflip = true\nshift = 4\nlabel_names = [\"x\", \"y\"]\n";
  const DataConfig config = parsed(text);
  EXPECT_EQ(config.training.text, (std::vector<std::string>{"a.txt", "b.txt"}));
  EXPECT_EQ(config.validation.text, std::vector<std::string>{"c.txt"});
  EXPECT_EQ(config.test.text, std::vector<std::string>{"d.txt"});
  for (const FileKey& key : kFileKeys) {
    EXPECT_EQ(config.training.*key.member, std::string(key.name) + ".x");
    EXPECT_EQ(config.validation.*key.member, "validation_" + std::string(key.name) + ".x");
    EXPECT_EQ(config.test.*key.member, "test_" + std::string(key.name) + ".x");
  }
  EXPECT_EQ(config.validation_share, 0.25);
  EXPECT_EQ(config.tokenizer, "bpe:500");
  EXPECT_EQ(config.target_tokenizer, "char");
  EXPECT_EQ(config.min_count, 3);
  EXPECT_EQ(config.source_end, false);
  EXPECT_EQ(config.word_shapes, false);
  EXPECT_EQ(config.context, 64);
  EXPECT_EQ(config.max_length, 99);
  EXPECT_EQ(config.skip_long, true);
  EXPECT_EQ(config.mask_share, 0.2);
  EXPECT_EQ(config.documents, Documents::blank_line);
  EXPECT_EQ(config.field, "body");
  EXPECT_EQ(config.token_folder, "tokens");
  EXPECT_EQ(config.mixture, (std::vector<double>{3, 0.5}));
  EXPECT_TRUE(config.flip);
  EXPECT_EQ(config.shift, 4);
  EXPECT_EQ(config.label_names, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(config.directory, "recipes");
}

TEST(DataConfigTest, WrongValuesNameTheLine) {
  const auto refused = [](const std::string& line, std::initializer_list<std::string_view> parts) {
    io::expect_refusal([&] { parsed("[data]\n" + line + "\n"); }, parts);
  };
  refused("text = 5", {"recipe.toml:2", "text", "a file or an array of files"});
  refused("text = [1]", {"recipe.toml:2", "a file or an array of files"});
  refused("contxt = 5", {"recipe.toml:2", "contxt", "context"});
  refused("context = 0", {"recipe.toml:2", "context"});
  refused("validation_share = 2.0", {"recipe.toml:2", "validation_share"});
  refused("documents = \"page\"", {"recipe.toml:2", "documents", "blank-line"});
  refused("flip = 1", {"recipe.toml:2", "flip"});
  refused("label_names = \"a\"", {"recipe.toml:2", "label_names"});
  refused("max_length = 1.5", {"recipe.toml:2", "max_length"});
}

struct Refused {
  std::function<Sample(const SampleData&)> make;
  std::function<void(DataConfig&)> change;
  std::string key;
};

TEST(DataConfigTest, WhatATaskHasNoUseForIsRefused) {
  using C = DataConfig&;
  const SampleData files;
  const auto language = [](const SampleData& f) { return f.language(); };
  const auto masked = [](const SampleData& f) { return f.masked(); };
  const auto translate = [](const SampleData& f) { return f.translate(); };
  const auto tag = [](const SampleData& f) { return f.tag(); };
  const auto labelled = [](const SampleData& f) { return f.labelled(); };
  const auto images = [](const SampleData& f) { return f.images(); };
  const std::vector<Refused> table = {
      {language, [](C c) { c.training.text = {}; }, "key data.text"},
      {language, [](C c) { c.training.text = {"a", ""}; }, "key data.text"},
      {language, [](C c) { c.training.pairs = "x"; }, "key data.pairs"},
      {language, [](C c) { c.test.tags = "x"; }, "key data.test_tags"},
      {language, [](C c) { c.tokenizer = ""; }, "key data.tokenizer"},
      {language, [](C c) { c.tokenizer = "bpe:x"; }, "tokenizer"},
      {language, [](C c) { c.target_tokenizer = "char"; }, "key data.target_tokenizer"},
      {language, [](C c) { c.source_end = true; }, "key data.source_end"},
      {language, [](C c) { c.context = 0; }, "key data.context"},
      {language, [](C c) { c.context = -4; }, "key data.context"},
      {language, [](C c) { c.max_length = 5; }, "key data.max_length"},
      {language, [](C c) { c.training.chat = "x"; }, "key data.text"},
      {language, [](C c) { c.skip_long = true; }, "key data.skip_long"},
      {masked, [](C c) { c.training.chat = "x"; }, "key data.chat"},
      {language, [](C c) { c.min_count = 2; }, "key data.min_count"},
      {language, [](C c) { c.word_shapes = true; }, "key data.word_shapes"},
      {language, [](C c) { c.mask_share = 0.1; }, "key data.mask_share"},
      {language, [](C c) { c.flip = true; }, "key data.flip"},
      {language, [](C c) { c.shift = 1; }, "key data.shift"},
      {language, [](C c) { c.label_names = {"a"}; }, "key data.label_names"},
      {language, [](C c) { c.validation_share = 1; }, "key data.validation_share"},
      {language, [](C c) { c.validation.text = {"v"}; }, "key data.validation_share"},
      {masked, [](C c) { c.mask_share = 0; }, "key data.mask_share"},
      {masked, [](C c) { c.mask_share = 1; }, "key data.mask_share"},
      {translate, [](C c) { c.training = {}; }, "key data.source"},
      {translate, [](C c) { c.training.source = "s"; }, "key data.target"},
      {translate, [](C c) { c.test.target = "t"; }, "key data.test_source"},
      {translate,
       [](C c) {
         c.training.source = "s";
         c.training.target = "t";
       },
       "key data.pairs"},
      {translate, [](C c) { c.context = 5; }, "key data.context"},
      {translate, [](C c) { c.max_length = 0; }, "key data.max_length"},
      {translate, [](C c) { c.word_shapes = false; }, "key data.word_shapes"},
      {translate, [](C c) { c.min_count = 0; }, "key data.min_count"},
      {tag,
       [](C c) {
         c.tokenizer = "word:3";
         c.min_count = 2;
       },
       "key data.min_count"},
      {tag,
       [](C c) {
         c.tokenizer = "char";
         c.word_shapes = true;
       },
       "key data.word_shapes"},
      {tag, [](C c) { c.training.text = {"x"}; }, "key data.text"},
      {labelled, [](C c) { c.training.images = "x"; }, "key data.images"},
      {images, [](C c) { c.training.labelled = "x"; }, "key data.labelled"},
      {images, [](C c) { c.training.labels = ""; }, "key data.labels"},
      {images, [](C c) { c.training.image_folder = "x"; }, "key data.image_folder"},
      {images, [](C c) { c.tokenizer = "char"; }, "key data.tokenizer"},
      {images, [](C c) { c.max_length = 9; }, "key data.max_length"},
      {images, [](C c) { c.shift = -1; }, "key data.shift"},
      {translate, [](C c) { c.documents = Documents::line; }, "key data.documents"},
      {translate, [](C c) { c.token_folder = "x"; }, "key data.token_folder"},
      {translate, [](C c) { c.field = "x"; }, "key data.field"},
      {translate, [](C c) { c.mixture = {1}; }, "key data.mixture"},
      {language,
       [](C c) {
         c.field = "x";
         c.documents = Documents::file;
       },
       "key data.documents"},
      {language, [](C c) { c.mixture = {1, 2}; }, "key data.mixture"},
      {language, [](C c) { c.mixture = {0}; }, "key data.mixture"},
      {language,
       [](C c) {
         c.training.text = {"a", "b"};
         c.mixture = {1, 1e5};
       },
       "a part in 4096"},
  };
  for (const Refused& row : table) {
    Sample sample = row.make(files);
    EXPECT_NO_THROW(validate(sample.config, sample.kind, sample.task));
    row.change(sample.config);
    try {
      validate(sample.config, sample.kind, sample.task);
      ADD_FAILURE() << sample.name << " took a wrong " << row.key;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(row.key), std::string::npos)
          << row.key << ": " << e.what();
    }
  }
}

TEST(DataConfigTest, ACodecNeedsNoTokenizerAndATestNoTrainingFiles) {
  DataConfig config;
  config.test.text = {"t.txt"};
  EXPECT_NO_THROW(
      validate(config, Kind::decoder, Task::language, {.codec = false, .training = false}));
  EXPECT_THROW(validate(config, Kind::decoder, Task::language), Error);
}

TEST(DataConfigTest, PathsAreLookedForInTwoPlaces) {
  const SampleData files;
  const std::filesystem::path before = std::filesystem::current_path();
  const io::TempDir working;
  DataConfig config;
  config.directory = files.path();
  std::filesystem::current_path(working.path());
  EXPECT_EQ(resolve_path(config, "text.txt"), files.path() + "/text.txt");
  working.file("text.txt", "here first");
  EXPECT_EQ(resolve_path(config, "text.txt"), "text.txt");
  EXPECT_EQ(resolve_path(config, files.file("tags.tsv")), files.file("tags.tsv"));
  io::expect_refusal([&] { resolve_path(config, "no.txt"); }, {"no.txt", "or in " + files.path()});
  // Where the recipe names it, the key is known, by which its line is.
  config.validation.text = {"no.txt"};
  try {
    resolve_path(config, "no.txt");
    ADD_FAILURE() << "nothing was thrown";
  } catch (const KeyError& e) {
    EXPECT_EQ(e.keys().front(), "data.validation");
    EXPECT_EQ(e.got(), "no.txt");
  }
  std::filesystem::current_path(before);
}

TEST(DataConfigTest, SplitsAreLeftOutOnlyBesideACodec) {
  const SampleData files;
  Sample sample = files.translate();
  OpenOptions options;
  options.training = false;
  EXPECT_THROW(sample.open(options), Error);
  options.codec = sample.open()->shared_codec();
  const auto data = sample.open(options);
  EXPECT_FALSE(data->has(Split::training));
  EXPECT_TRUE(data->has_validation());
  EXPECT_THROW(data->training_batch(0, 1, 1), Error);
  options.codec = files.language().open()->shared_codec();
  EXPECT_THROW(sample.open(options), Error);  // of another task
}

}  // namespace
}  // namespace heddle::data
