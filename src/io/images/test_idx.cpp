#include <gtest/gtest.h>

#include "io/images/idx.h"
#include "io/test_support.h"

namespace heddle::io {
namespace {

std::string idx(int type, const std::vector<std::uint32_t>& sizes, const std::string& data) {
  std::string out = {'\0', '\0', static_cast<char>(type), static_cast<char>(sizes.size())};
  for (const std::uint32_t size : sizes)
    for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(size >> shift & 0xff);
  return out + data;
}

TEST(Idx, ReadsImagesAndLabels) {
  const TempDir dir;
  const std::string images = idx(8, {2, 2, 3}, "\1\2\3\4\5\6\7\10\11\12\13\xff");
  for (const std::string& bytes : {images, gzipped(images)}) {
    const Tensor t = read_idx(dir.file("images", bytes));
    EXPECT_EQ(t.shape(), (Shape{2, 2, 3}));
    EXPECT_EQ(t.dtype(), DType::u8);
    EXPECT_EQ(t.to_vector<std::uint8_t>(),
              (std::vector<std::uint8_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 255}));
  }
  EXPECT_EQ(parse_idx(idx(8, {3}, "abc"), "labels").shape(), Shape{3});
  EXPECT_EQ(parse_idx(idx(8, {0, 28, 28}, ""), "none").elements(), 0);
}

TEST(Idx, RefusesHostileFiles) {
  const auto parse = [](const std::string& bytes) { return [bytes] { parse_idx(bytes, "f"); }; };
  expect_refusal(parse(""), {"f", "at least 4 bytes", "got 0"});
  expect_refusal(parse("PK\3\4"), {"offset 0", "two zeros"});
  expect_refusal(parse(idx(13, {1}, "1234")), {"offset 2", "8 (unsigned bytes)", "got 13"});
  expect_refusal(parse(idx(8, {}, "")), {"offset 3", "got 0"});
  expect_refusal(parse(idx(8, {1, 1, 1, 1, 1, 1, 1, 1, 1}, "x")), {"offset 3", "got 9"});
  expect_refusal(parse(idx(8, {2, 3}, "").substr(0, 11)), {"at least 12 bytes", "got 11"});
  expect_refusal(parse(idx(8, {2, 3}, "12345")), {"[2, 3]", "6 bytes after offset 12", "got 5"});
  expect_refusal(parse(idx(8, {2, 3}, "1234567")), {"6 bytes", "got 7"});
  expect_refusal(parse(idx(8, {0xffffffff, 0xffffffff, 0xffffffff}, "")), {"64 bits"});
  expect_refusal(parse(idx(8, {1u << 31, 1u << 31, 4}, "")), {"64 bits"});  // 2^64 is 0
  expect_refusal(parse(idx(8, {0xffffffff}, "x")), {"4294967295 bytes"});
}

TEST(Idx, SurvivesMutations) {
  const int refused = survive_mutations(idx(8, {2, 3, 4}, std::string(24, 'x')), 4000,
                                        [](const std::string& bytes) { parse_idx(bytes, "fuzz"); });
  EXPECT_GT(refused, 2000);
}

}  // namespace
}  // namespace heddle::io
