// Previews of data, as shown to people.
#include <gtest/gtest.h>

#include "data/preview.h"
#include "data/test_support.h"

namespace heddle::data {
namespace {

TEST(DataPreview, TokensAsTheyAre) {
  const SampleData files;
  Sample sample = files.translate("word:1");
  sample.config.training.pairs = files.file("p.tsv", "one two\teins\n");
  sample.config.validation_share = 0;
  const std::vector<Preview> pair = preview(*sample.open(), 5, 8, 1);
  ASSERT_EQ(pair.size(), 1u);
  EXPECT_EQ(pair[0].read, "one two </s>");
  EXPECT_EQ(pair[0].wanted, "eins </s>");

  sample = files.tag("char");
  sample.config.training.tags = files.file("t.tsv", "Hi\tX\nyou\tY\n");
  sample.config.validation_share = 0;
  const std::vector<Preview> tagged = preview(*sample.open(), 1, 1, 1);
  EXPECT_EQ(tagged.at(0).read, "H i y o u");
  EXPECT_EQ(tagged.at(0).wanted, "X · Y · ·");

  sample = files.language();
  sample.config.training.text = {files.file("t.txt", "a b")};
  sample.config.validation_share = 0;
  sample.config.context = 2;
  const std::vector<Preview> text = preview(*sample.open(), 1, 1, 1);
  EXPECT_EQ(text.at(0).read, "a ␣");
  EXPECT_EQ(text.at(0).wanted, "␣ b");
}

TEST(DataPreview, ABatchThatNoMemoryHoldsIsRefused) {
  const SampleData files;
  try {
    preview(*files.language().open(), 1, std::int64_t{1} << 40, 1);
    FAIL() << "was taken";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("train.batch"), std::string::npos) << e.what();
  }
}

TEST(DataPreview, ImagesAreDrawn) {
  const SampleData files;
  Sample sample = files.images();
  sample.config.flip = false;
  sample.config.shift = 0;
  sample.config.validation_share = 0;
  sample.config.label_names = {"boot"};
  sample.config.training.images =
      files.file("i.idx", idx({1, 2, 3}, std::string("\0\x80\xff\0\0\0", 6)));
  sample.config.training.labels = files.file("l.idx", idx({1}, std::string(1, '\0')));
  const std::vector<Preview> image = preview(*sample.open(), 1, 1, 1);
  EXPECT_EQ(image.at(0).read, " =@\n");
  EXPECT_EQ(image.at(0).wanted, "boot");
}

TEST(DataPreview, EveryKindHasOne) {
  const SampleData files;
  for (const Sample& sample : files.all()) {
    SCOPED_TRACE(sample.name);
    const auto data = sample.open();
    const std::vector<Preview> previews = preview(*data, 7, 3, 1);
    EXPECT_EQ(previews.size(), 7u);
    for (const Preview& one : previews) EXPECT_FALSE(one.read.empty() || one.wanted.empty());
    EXPECT_NE(data->summary().find("training:   "), std::string::npos);
    EXPECT_NE(data->summary().find("validation: "), std::string::npos);
  }
}

}  // namespace
}  // namespace heddle::data
