// The corpus of tokenizers, and random changes of it: a few seconds of what a fuzzer does for hours
// (fuzz_tokenizers.cpp).
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "fuzz/read_tokenizers.h"
#include "io/test_support.h"
#include "unit/source_tree.h"

namespace heddle::fuzz {
namespace {

TEST(FuzzTokenizers, CorpusAndChangesOfIt) {
  int files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(source_tree("tests/fuzz/tokenizers"))) {
    const std::string name = entry.path().filename().string();
    SCOPED_TRACE(name);
    const std::string valid = io::slurp(entry.path().string());
    EXPECT_NO_THROW(read_tokenizer(name, valid));
    const int rounds = valid.size() > 4000 ? 100 : 300;
    const int refused = io::survive_mutations(
        valid, rounds, [&](const std::string& bytes) { read_tokenizer(name, bytes); });
    EXPECT_GT(refused, 0);
    ++files;
  }
  EXPECT_GE(files, 9);
}

}  // namespace
}  // namespace heddle::fuzz
