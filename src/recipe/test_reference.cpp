#include "recipe/reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>

#include "data/loading.h"
#include "heddle/error.h"
#include "io/files/file.h"
#include "io/toml/toml.h"
#include "language/language.h"
#include "recipe/train_config.h"
#include "unit/source_tree.h"

namespace heddle::recipe {
namespace {

const KeyLine& line_named(const std::string& key) {
  const auto& lines = key_lines();
  const auto found = std::ranges::find(lines, key, &KeyLine::key);
  if (found == lines.end()) throw std::runtime_error("no line of " + key);
  return *found;
}

// A key that no reader asks for has no type; a reader's key without a line is in known_keys()
// alone.
TEST(Reference, EveryKeyHasALineAndEveryLineAKey) {
  std::set<std::string> lines;
  for (const KeyLine& line : key_lines()) {
    EXPECT_FALSE(line.type.empty()) << line.key << ": no reader asks for it";
    EXPECT_TRUE(lines.insert(line.key).second) << line.key << " twice";
  }
  for (const std::string& key : known_keys())
    EXPECT_TRUE(lines.contains(key)) << key << ": without a line in key_meanings.cpp";
}

// One of the three: required, a default of the reader, words of what holds instead.
TEST(Reference, EveryKeyTellsWhatHoldsWithoutIt) {
  for (const KeyLine& line : key_lines())
    EXPECT_FALSE(line.default_text().empty()) << line.key << ": what holds when it is not given?";
}

// Words stand where code has no one value, and nowhere else: otherwise they could contradict it.
TEST(Reference, WordsDoNotHideADefault) {
  const std::set<std::string> follow = {"model.attention.rope_scaling.attention_factor",
                                        "train.warmup"};
  for (const KeyLine& line : key_lines())
    EXPECT_TRUE(line.unless_given == nullptr || follow.contains(line.key) || line.defaults.empty())
        << line.key << ": " << line.default_text();
}

TEST(Reference, DefaultsAreThoseOfTheCode) {
  const TrainConfig plain;
  EXPECT_EQ(line_named("train.beta2").default_text(), "`0.98`");
  EXPECT_EQ(plain.beta2, 0.98);
  EXPECT_EQ(line_named("train.learning_rate").default_text(), "`adamw`: `0.001`; `sgd`: `0.1`");
  EXPECT_EQ(line_named("train.log").default_text(), "`[\"jsonl\"]`");
  EXPECT_EQ(line_named("model.kind").default_text(), "required");
  // Numbers in words, beside the constants they speak of.
  const auto begins = [](const char* key, const std::string& number) {
    const std::string text = line_named(key).default_text();
    EXPECT_TRUE(text.starts_with(number)) << key << ": " << text;
  };
  begins("data.max_length", std::to_string(data::kDefaultMaxLength));
  begins("train.eval_every", std::to_string(kEvalEvery));
  begins("train.timeout", std::to_string(kTimeout));
  begins("train.parts", "none; " + std::to_string(kUsualParts));
  EXPECT_EQ(usual_warmup(400), 40);
  EXPECT_EQ(usual_warmup(1 << 20), 100);
}

TEST(Reference, ChoicesAndRanges) {
  const KeyLine& kind = line_named("model.kind");
  EXPECT_EQ(kind.choices.size(), 7u);
  const KeyLine& task = line_named("model.task");  // of two kinds
  EXPECT_EQ(task.choices, (std::vector<std::string>{"tag", "classify", "masked", "language"}));
  EXPECT_EQ(line_named("model.layers").values_text(), "integer, 1 to 2046");
  EXPECT_EQ(line_named("model.dropout").values_text(), "number, 0 to 0.999");
  EXPECT_EQ(line_named("model.attention.rope_scaling.factors").values_text(),
            "list of numbers, 1e-06 to 1e+06");
  EXPECT_EQ(line_named("train.log").values_text(), "list of `jsonl`, `csv`, `tensorboard`");
}

TEST(Reference, KeysByName) {
  EXPECT_EQ(keys_named("kv_heads").at(0).key, "model.attention.kv_heads");
  EXPECT_EQ(keys_named("model.moe").size(), 14u);
  EXPECT_EQ(keys_named("dropout").size(), 2u);
  try {
    keys_named("kv_head");
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("kv_heads"), std::string::npos) << e.what();
  }
}

// The pages of the documentation are what `heddle keys --markdown` writes.
TEST(Reference, PagesAreAsTheProgramWritesThem) {
  for (const Language language : {Language::english, Language::chinese}) {
    set_language(language);
    const bool zh = language == Language::chinese;
    const std::string path = source_tree(zh ? "docs/zh/reference.md" : "docs/reference.md");
    const std::string written = reference_chapter();
    set_language(Language::english);
    EXPECT_TRUE(io::read_file(path, 1 << 20) == written)
        << path << " is old: heddle " << (zh ? "--lang zh " : "") << "keys --markdown " << path;
  }
}

}  // namespace
}  // namespace heddle::recipe
