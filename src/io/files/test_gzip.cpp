#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/resource.h>

#include "io/files/gzip.h"
#include "io/files/memory_limit.h"
#include "io/test_support.h"

namespace heddle::io {
namespace {

std::string some_text(std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; text.size() < bytes; ++i) text += std::to_string(i * i) + "\n";
  text.resize(bytes);
  return text;
}

TEST(Gzip, ReadsPlainAndCompressedFiles) {
  const TempDir dir;
  const std::string text = some_text(300000);
  EXPECT_EQ(read_maybe_gzip(dir.file("plain.gz", text), 300000), text);
  EXPECT_EQ(read_maybe_gzip(dir.file("packed", gzipped(text)), 300000), text);
  EXPECT_EQ(read_maybe_gzip(dir.file("empty", ""), 10), "");
  EXPECT_EQ(gunzip(gzipped(""), "x", 0), "");
}

TEST(Gzip, ReadsSeveralMembersAndPadding) {
  const std::string two = gzipped("one ") + gzipped("") + gzipped("two");
  EXPECT_EQ(gunzip(two, "x", 7), "one two");
  EXPECT_EQ(gunzip(two + std::string(100, '\0'), "x", 7), "one two");
}

TEST(Gzip, NamesFileAndOffsetOfDamage) {
  const std::string packed = gzipped(some_text(5000));
  const std::string size = std::to_string(packed.size());
  expect_refusal([&] { gunzip(packed + "garbage", "f.gz", 9999); },
                 {"f.gz", "offset " + size, "\"garbage\""});
  expect_refusal([&] { gunzip(packed + packed.substr(0, 3), "f.gz", 9999); }, {"ends inside"});
  expect_refusal([&] { gunzip(packed.substr(0, 1000), "f.gz", 9999); },
                 {"f.gz", "ends inside of its compressed data, at offset 1000"});
  std::string wrong_sum = packed;
  wrong_sum[packed.size() - 6] ^= 1;
  expect_refusal([&] { gunzip(wrong_sum, "f.gz", 9999); }, {"incorrect data check"});
  std::string wrong_length = packed;
  wrong_length[packed.size() - 2] ^= 1;
  expect_refusal([&] { gunzip(wrong_length, "f.gz", 9999); }, {"incorrect length check"});
  expect_refusal([] { gunzip("\x1f\x8b\x09", "f.gz", 10); }, {"f.gz"});
  expect_refusal([] { gunzip("\x1f\x8b", "f.gz", 10); }, {"f.gz", "ends inside"});
}

TEST(Gzip, ABombStopsAtTheLimit) {
  const std::string bomb = gzipped(std::string(1 << 24, '\0'));
  expect_refusal([&] { gunzip(bomb, "bomb", 1000); }, {"bomb", "at most 1000 bytes"});
  expect_refusal([&] { gunzip(bomb, "bomb", (1 << 24) - 1); }, {"at most"});
  EXPECT_EQ(gunzip(bomb, "bomb", 1 << 24).size(), std::size_t{1} << 24);
  EXPECT_EQ(gunzip(bomb, "bomb", std::string::npos).size(), std::size_t{1} << 24);
}

RC_GTEST_PROP(Gzip, RoundTrip, (const std::string& bytes)) {
  RC_ASSERT(gunzip(gzipped(bytes), "x", bytes.size()) == bytes);
}

TEST(Gzip, SurvivesMutations) {
  const int refused = survive_mutations(gzipped(some_text(2000)), 4000, [](const std::string& b) {
    (void)gunzip(b, "fuzz", 100000);
  });
  EXPECT_GT(refused, 3000);
}

// 700 members of a megabyte each, 700 kB in all: counted before memory is taken for it.
TEST(Gzip, ABombIsRefusedWithoutTakingMemory) {
  std::string bomb;
  const std::string member = gzipped(std::string(std::size_t{1} << 20, '\0'));
  for (int i = 0; i < 700; ++i) bomb += member;
  const PretendMemory memory(std::uint64_t{2} << 30);  // a quarter is 512 MB
  const auto peak = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;  // in kilobytes
  };
  const auto before = peak();
  expect_refusal([&] { gunzip(bomb, "bomb.gz", std::size_t{4} << 30); },
                 {"bomb.gz", "too large once unpacked", "at most 536870912 bytes, a quarter"});
  EXPECT_LT(peak() - before, 20000);
}

}  // namespace
}  // namespace heddle::io
