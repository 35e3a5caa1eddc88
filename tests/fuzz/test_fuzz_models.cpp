// The corpus of models, and random changes of it: a few seconds of what a fuzzer does for hours
// (fuzz_models.cpp).
#include <gtest/gtest.h>

#include <exception>
#include <filesystem>
#include <random>
#include <string>

#include "fuzz/read_models.h"
#include "io/test_support.h"
#include "unit/source_tree.h"

namespace heddle::fuzz {
namespace {

bool fits_the_weights(const std::string& name) {
  return name.starts_with("small_") || !name.ends_with("config.json") ||
         name.ends_with("preprocessor_config.json");
}

// How many of the changed files were refused.
int refused_changes(const std::string& name, const std::string& valid, int rounds) {
  std::mt19937 random(20261118);
  int refused = 0;
  for (int round = 0; round < rounds; ++round) {
    const std::string bytes = io::mutated(valid, random);
    try {
      refused += read_model(name, bytes) == Reading::refused ? 1 : 0;
    } catch (const std::exception& e) {
      ADD_FAILURE() << "round " << round << ": " << e.what() << "\n" << bytes;
      return refused;
    }
  }
  return refused;
}

TEST(FuzzModels, CorpusAndChangesOfIt) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(source_tree("tests/fuzz/models"))) {
    const std::string name = entry.path().filename().string();
    SCOPED_TRACE(name);
    const std::string valid = io::slurp(entry.path().string());
    EXPECT_EQ(read_model(name, valid), fits_the_weights(name) ? Reading::used : Reading::opened);
    EXPECT_GT(refused_changes(name, valid, 100), 0);
    ++files;
  }
  EXPECT_GE(files, 30);
}

}  // namespace
}  // namespace heddle::fuzz
