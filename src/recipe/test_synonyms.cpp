#include "recipe/synonyms.h"

#include <gtest/gtest.h>

#include "base/test_support.h"
#include "io/files/file.h"
#include "io/test_support.h"
#include "recipe/recipe.h"
#include "unit/source_tree.h"

namespace heddle::recipe {
namespace {

const std::string kSmallRecipe =
    "[model]\nkind = \"decoder\"\nlayers = 1\nwidth = 8\n[model.attention]\nheads = 2\n"
    "[data]\ntext = \"t.txt\"\ntokenizer = \"char\"\ncontext = 8\n[train]\nsteps = 1\nbatch = 1\n";

TEST(Synonyms, LeadToKeysThatThereAre) {
  const std::string docs = io::read_file(source_tree("docs/recipes.md"), 1 << 20);
  for (const auto& [theirs, habit] : key_habits()) {
    const std::string name = habit.key.substr(habit.key.rfind('.') + 1);
    EXPECT_NE(docs.find("`" + name + "`"), std::string::npos) << theirs << " -> " << habit.key;
    EXPECT_EQ(recipe_key(theirs), habit.key);
  }
  EXPECT_EQ(recipe_key("kv_heads"), "model.attention.kv_heads");
  EXPECT_EQ(recipe_key("frobnicate"), "");
}

// Wherever the key was put: people write train.n_head as well.
TEST(Synonyms, AreSuggestedForUnknownKeys) {
  const io::TempDir files;
  const std::string path = files.file("r.toml", kSmallRecipe);
  const auto says = [&](const std::string& key, std::initializer_list<std::string_view> parts) {
    expect_says([&] { load_recipe(path, {key + "=3"}); }, parts);
  };
  says("train.lr", {"unknown key train.lr", "did you mean train.learning_rate?"});
  says("train.batch_size", {"did you mean train.batch?"});
  says("model.n_layer", {"did you mean model.layers?"});
  says("model.n_head", {"did you mean model.attention.heads?"});
  says("model.attention.num_heads", {"did you mean model.attention.heads?"});
  says("model.d_model", {"did you mean model.width?"});
  says("data.block_size", {"did you mean data.context?"});
  says("model.attention.window", {"did you mean model.attention.look_back?", "w - 1"});
  says("train.epochs", {"did you mean train.steps?", "an epoch is"});
  says("data.vocab_size", {"did you mean data.tokenizer?", "bpe:8000"});
}

TEST(Synonyms, AreNamedWhereARequiredKeyIsMissing) {
  const io::TempDir files;
  std::string other = kSmallRecipe;
  other.replace(other.find("layers"), 6, "num_hidden_layers");
  const std::string path = files.file("r.toml", other);
  expect_says([&] { load_recipe(path); },
              {"key model.layers is missing", "the key num_hidden_layers at", "r.toml:3"});
}

}  // namespace
}  // namespace heddle::recipe
