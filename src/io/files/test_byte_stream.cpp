#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/file.h>

#include <filesystem>

#include "io/files/byte_stream.h"
#include "io/files/checksums/xxh64.h"
#include "io/files/file.h"
#include "io/files/unnamed_file.h"
#include "io/test_support.h"

namespace heddle::io {
namespace {

// Values of the reference implementation.
TEST(Xxh64, IsXxh64) {
  EXPECT_EQ(xxh64(""), 0xEF46DB3751D8E999u);
  EXPECT_EQ(xxh64("a"), 0xD24EC4F1A98C6E5Bu);
  EXPECT_EQ(xxh64("abc"), 0x44BC2CF5AD770999u);
  EXPECT_EQ(xxh64("Nobody inspects the spammish repetition"), 0xFBCEA83C8A378BF1u);
  EXPECT_EQ(hex_text(0x0123456789abcdefu), "0123456789abcdef");
}

RC_GTEST_PROP(Xxh64, DoesNotDependOnPieces, (const std::string& text, std::size_t at)) {
  const std::string all = text + text + text;
  const std::string_view view(all);
  at = all.empty() ? 0 : at % all.size();
  Xxh64 hash;
  hash.add(view.substr(0, at));
  hash.add(view.substr(at));
  RC_ASSERT(hash.value() == xxh64(all));
}

TEST(Xxh64, FieldsHaveEnds) {
  Xxh64 one, two;
  one.add_field("ab");
  one.add_field("c");
  two.add_field("a");
  two.add_field("bc");
  EXPECT_NE(one.value(), two.value());
}

std::string streamed(const std::string& path, std::size_t step) {
  ByteStream file(path);
  std::string all, piece(step, '\0');
  for (std::size_t got = step; got == step; all.append(piece, 0, got))
    got = file.read(piece.data(), step);
  return all;
}

std::string digits(std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; text.size() < bytes; ++i) text += std::to_string(i * i) + "\n";
  text.resize(bytes);
  return text;
}

TEST(ByteStream, GivesWhatIsReadWholeInPiecesOfAnySize) {
  const TempDir dir;
  const std::string text = digits(300000);
  const std::string plain = dir.file("plain", text), packed = dir.file("packed", gzipped(text));
  const std::string two = dir.file("two", gzipped(text.substr(0, 100001)) + gzipped("") +
                                              gzipped(text.substr(100001)) + std::string(70, '\0'));
  for (const std::size_t step : {std::size_t{777}, std::size_t{65536}, std::size_t{300000}}) {
    EXPECT_EQ(streamed(plain, step), text);
    EXPECT_EQ(streamed(packed, step), text);
    EXPECT_EQ(streamed(two, step), text);
  }
  EXPECT_EQ(streamed(dir.file("empty", ""), 5), "");
  EXPECT_TRUE(ByteStream(packed).is_packed());
  EXPECT_FALSE(ByteStream(plain).is_packed());
}

TEST(ByteStream, SkipsAsIfItHadRead) {
  const TempDir dir;
  const std::string text = digits(200000);
  for (const std::string& path : {dir.file("plain", text), dir.file("packed", gzipped(text))}) {
    ByteStream file(path);
    EXPECT_EQ(file.skip(150001), 150001u);
    std::string piece(10, '\0');
    EXPECT_EQ(file.read(piece.data(), 10), 10u);
    EXPECT_EQ(piece, text.substr(150001, 10));
    EXPECT_EQ(file.skip(~std::uint64_t{0}), 49989u);
    EXPECT_EQ(file.read(piece.data(), 10), 0u);
  }
}

TEST(ByteStream, NamesFileAndOffsetOfDamage) {
  const TempDir dir;
  const std::string packed = gzipped(digits(5000));
  const auto refused = [&](const std::string& bytes,
                           std::initializer_list<std::string_view> parts) {
    const std::string path = dir.file("f.gz", bytes);
    expect_refusal([&] { streamed(path, 512); }, parts);
  };
  refused(packed.substr(0, 1000), {"f.gz", "ends inside of its compressed data, at offset 1000"});
  refused(packed + "garbage", {"f.gz", "other bytes", "offset " + std::to_string(packed.size())});
  refused(packed + std::string(3, '\0') + packed, {"other bytes"});
  std::string wrong_sum = packed;
  wrong_sum[packed.size() - 6] ^= 1;
  refused(wrong_sum, {"incorrect data check"});
  refused(std::string("\x1f\x8b"), {"ends inside"});
  expect_refusal([&] { ByteStream stream(dir.file("nowhere")); }, {"nowhere", "cannot open"});
}

TEST(ByteStream, SurvivesDamage) {
  MemoryFile file;
  const int refused = survive_mutations(gzipped(digits(3000)), 2000, [&](const std::string& bytes) {
    EXPECT_LE(streamed(file.hold(bytes), 512).size(), std::size_t{4} << 20);
  });
  EXPECT_GT(refused, 1000);
}

TEST(UnnamedFile, IsThereWhenItIsWholeAndNotBefore) {
  const TempDir dir;
  const std::string path = dir.file("big");
  {
    UnnamedFile file(path);
    file.write("half", 4);
    EXPECT_FALSE(file_exists(path));
  }
  EXPECT_EQ(dir.entries(), 0u);
  dir.file("big", "before");
  UnnamedFile file(path);
  file.write("xxxx and the rest", 17);
  file.write_at("HEAD", 4, 0);
  EXPECT_EQ(slurp(path), "before");
  file.commit();
  EXPECT_EQ(slurp(path), "HEAD and the rest");
  EXPECT_EQ(dir.entries(), 1u);
  expect_refusal([&] { UnnamedFile(dir.file("no/such/file")); }, {"folder is not there"});
}

TEST(UnnamedFile, OneProcessHasTheLock) {
  const TempDir dir;
  const std::string path = dir.file("lock");
  Descriptor first = open_lock(path);
  ASSERT_TRUE(has_taken_lock(first, path));
  int waited = 0;
  const Descriptor second = wait_for_lock(path, [&] {
    if (++waited == 2) first.close();
  });
  EXPECT_EQ(waited, 2);
  EXPECT_FALSE(has_taken_lock(open_lock(path), path));
}

}  // namespace
}  // namespace heddle::io
