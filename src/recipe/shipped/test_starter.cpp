#include "recipe/shipped/starter.h"

#include <gtest/gtest.h>

#include "base/test_support.h"
#include "io/test_support.h"
#include "language/language.h"
#include "language/test_support.h"
#include "recipe/recipe.h"

namespace heddle::recipe {
namespace {

// Every combination is a legal recipe that says what was asked for.
TEST(Starter, IsALegalRecipeForAllDataAndSizes) {
  const io::TempDir files;
  for (const StarterData data : {StarterData::text, StarterData::pairs, StarterData::tags,
                                 StarterData::labelled, StarterData::images})
    for (const StarterSize size : {StarterSize::tiny, StarterSize::small, StarterSize::medium}) {
      const Starter starter{data, "my \"data\".txt", size};
      const std::string text = starter_recipe(starter, "my.toml");
      const Recipe recipe = load_recipe(files.file("my.toml", text));
      EXPECT_EQ(recipe.model.layers, size == StarterSize::tiny    ? 2
                                     : size == StarterSize::small ? 4
                                                                  : 6);
      EXPECT_NE(recipe.toml.find("my \\\"data\\\".txt"), std::string::npos) << recipe.toml;
      EXPECT_NE(text.find("heddle train my.toml"), std::string::npos);
      EXPECT_EQ(starter_data(to_string(data)), data);
      EXPECT_EQ(starter_size(to_string(size)), size);
    }
}

TEST(Starter, MakesTheKindThatTheDataNeeds) {
  const io::TempDir files;
  const auto made = [&](StarterData data) {
    return load_recipe(
               files.file("r.toml", starter_recipe({data, "x", StarterSize::tiny}, "r.toml")))
        .model;
  };
  EXPECT_EQ(made(StarterData::text).kind, model::Kind::decoder);
  EXPECT_EQ(made(StarterData::pairs).kind, model::Kind::encoder_decoder);
  EXPECT_EQ(made(StarterData::tags).task, model::Task::tag);
  EXPECT_EQ(made(StarterData::labelled).task, model::Task::classify);
  EXPECT_EQ(made(StarterData::images).kind, model::Kind::vit);
}

// A recipe with a base is legal as it is written, in the language of the process.
TEST(Starter, DerivedRecipeHasCommentsInTheLanguageOfTheProcess) {
  const io::TempDir files;
  const auto derived = [&] {
    std::string text = derived_recipe("char-gpt", "[train]\nsteps = 7\n", "my.toml");
    EXPECT_EQ(load_recipe(files.file("my.toml", text)).train.steps, 2000) << text;
    EXPECT_NE(text.find("\n# steps = 7\n"), std::string::npos) << text;
    return text;
  };
  EXPECT_TRUE(derived().starts_with("# Keys that are absent here are as in char-gpt.\n"));
  const InChinese chinese;
  const UntranslatedTexts untranslated;
  EXPECT_NE(derived().find("此处未列出的字段与 char-gpt 相同"), std::string::npos);
  EXPECT_TRUE(untranslated.found().empty()) << untranslated.found().front();
}

TEST(Starter, NamesWhatThereIs) {
  expect_says([] { starter_data("audio"); }, {"audio", "text, pairs, tags, labelled, images"});
  expect_says([] { starter_size("huge"); }, {"huge", "tiny, small, medium"});
}

}  // namespace
}  // namespace heddle::recipe
