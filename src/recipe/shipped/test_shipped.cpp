#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "io/files/file.h"
#include "recipe/recipe.h"
#include "recipe/shipped/shipped.h"
#include "unit/source_tree.h"

namespace heddle::recipe {
namespace {

// The program has what recipes/ has, letter for letter, and every one of them is legal.
TEST(Shipped, RecipesAreThoseOfTheSourceTree) {
  const std::string folder = source_tree("recipes");
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const auto place = find_shipped(entry.path().stem().string());
    ASSERT_TRUE(place.has_value()) << entry.path();
    ASSERT_TRUE(shipped_text(*place).has_value()) << *place;
    EXPECT_EQ(*shipped_text(*place), io::read_file(entry.path().string(), io::kMaxToml));
    const Recipe recipe = load_recipe(*place);
    EXPECT_GT(recipe.train.steps, 0) << *place;
    EXPECT_EQ(recipe.data.directory, ".") << *place;  // it lies in no folder
    ++files;
  }
  EXPECT_EQ(shipped_recipes().size(), files);
  EXPECT_TRUE(std::ranges::is_sorted(shipped_recipes()));
}

TEST(Shipped, PathsAndUnknownNamesAreNone) {
  EXPECT_FALSE(find_shipped("").has_value());
  EXPECT_FALSE(find_shipped("recipes/char-gpt").has_value());
  EXPECT_FALSE(find_shipped("char-gtp").has_value());
  EXPECT_FALSE(shipped_text("char-gpt").has_value());
  EXPECT_FALSE(shipped_text("./shipped:/char-gpt.toml").has_value());
  EXPECT_EQ(nearest_shipped("char-gtp"), "char-gpt");
}

}  // namespace
}  // namespace heddle::recipe
