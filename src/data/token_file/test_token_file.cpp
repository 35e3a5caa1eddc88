#include <gtest/gtest.h>

#include <filesystem>

#include "data/token_file/format.h"
#include "data/token_file/source_files.h"
#include "data/token_file/token_file.h"
#include "data/token_file/token_writer.h"
#include "io/files/checksums/xxh64.h"
#include "io/test_support.h"

namespace heddle::data {
namespace {

std::int32_t token_at(std::int64_t i, std::int64_t vocabulary) {
  return static_cast<std::int32_t>((i * 7919 + i / 1000) % vocabulary);
}

void write(const std::string& path, std::int64_t vocabulary, std::int64_t count,
           const std::vector<std::int64_t>& begins = {}) {
  TokenWriter writer(path, vocabulary, !begins.empty());
  std::vector<std::int32_t> tokens;
  std::int64_t at = 0;
  for (std::size_t i = 0; i <= begins.size(); ++i) {
    const std::int64_t end = i + 1 < begins.size() ? begins[i + 1] : count;
    if (i == begins.size() && !begins.empty()) break;
    tokens.clear();
    for (; at < end; ++at) tokens.push_back(token_at(at, vocabulary));
    writer.add(tokens, !begins.empty());
  }
  EXPECT_EQ(writer.tokens(), count);
  writer.commit({.unknown = 3, .recipe = 11, .content = 12, .stamp = 13, .source_bytes = 14});
}

TEST(TokenFile, GivesBackTokensOfEveryWidthAcrossBlocks) {
  const io::TempDir dir;
  const std::int64_t count = 2 * token_format::kBlock + 1234;
  for (const auto& [vocabulary, width] : std::vector<std::pair<std::int64_t, std::uint64_t>>{
           {256, 1}, {257, 2}, {65536, 2}, {65537, 4}}) {
    const std::string path = dir.file("a.tokens");
    write(path, vocabulary, count);
    const TokenFile file(path);
    EXPECT_EQ(file.facts(), (TokenFileFacts{.tokens = count,
                                            .vocabulary = vocabulary,
                                            .unknown = 3,
                                            .recipe = 11,
                                            .content = 12,
                                            .stamp = 13,
                                            .source_bytes = 14}));
    EXPECT_EQ(file.file_bytes(), 128 + static_cast<std::uint64_t>(count) * width + 3 * 8);
    EXPECT_FALSE(file.has_documents());
    EXPECT_LT(file.bytes(), 100);
    for (const auto& [begin, length] : std::vector<std::pair<std::int64_t, std::int64_t>>{
             {0, 5}, {count - 7, 7}, {token_format::kBlock - 3, 9}, {0, count}, {17, 0}}) {
      std::vector<std::int32_t> tokens(static_cast<std::size_t>(length));
      file.copy(begin, length, tokens.data());
      for (std::int64_t i = 0; i < length; ++i)
        ASSERT_EQ(tokens[static_cast<std::size_t>(i)], token_at(begin + i, vocabulary));
    }
  }
  EXPECT_EQ(dir.entries(), 1u);
}

TEST(TokenFile, KnowsWhereDocumentsBegin) {
  const io::TempDir dir;
  const std::string path = dir.file("a.tokens");
  const std::int64_t block = token_format::kBlock, count = 2 * block + 5;
  const std::vector<std::int64_t> begins = {0, 1, 9, block - 1, block, block + 3, 2 * block + 4};
  write(path, 300, count, begins);
  const TokenFile file(path);
  EXPECT_EQ(file.facts().documents, 7);
  std::vector<std::uint8_t> flags(static_cast<std::size_t>(count) + 3, 9);
  file.copy_begins(0, count + 3, flags.data());
  std::vector<std::int64_t> found;
  for (std::int64_t i = 0; i < count + 3; ++i)
    if (flags[static_cast<std::size_t>(i)] != 0) found.push_back(i);
  EXPECT_EQ(found, begins);
  file.copy_begins(block - 2, 4, flags.data());
  EXPECT_EQ(std::vector<std::uint8_t>(flags.begin(), flags.begin() + 4),
            (std::vector<std::uint8_t>{0, 1, 1, 0}));
}

TEST(TokenFile, AnEmptyOneIsOne) {
  const io::TempDir dir;
  TokenWriter(dir.file("a"), 10, false).commit({});
  EXPECT_EQ(TokenFile(dir.file("a")).facts().tokens, 0);
}

std::int32_t first_token(const std::string& path) {
  const TokenFile file(path);
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(file.facts().tokens));
  file.copy(0, file.facts().tokens, tokens.data());
  return tokens.at(0);
}

TEST(TokenFile, NoticesEveryByteThatIsNotWhatWasWritten) {
  const io::TempDir dir;
  const std::string path = dir.file("a.tokens");
  write(path, 300, 50, {0, 20});
  const std::string whole = io::slurp(path);
  ASSERT_EQ(whole.size(), 128u + 100 + 7 + 8);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string edited = whole;
    edited[i] = static_cast<char>(edited[i] ^ 1);
    dir.file("a.tokens", edited);
    io::expect_refusal([&] { first_token(path); }, {"a.tokens", "remove it"});
  }
  for (std::size_t length = 0; length < whole.size(); ++length) {
    dir.file("a.tokens", whole.substr(0, length));
    io::expect_refusal([&] { first_token(path); }, {"a.tokens", "remove it"});
  }
  dir.file("a.tokens", whole + "x");
  io::expect_refusal([&] { first_token(path); }, {"244 bytes and not 243"});
}

// A file whose hashes are right and whose content cannot be.
TEST(TokenFile, BelievesNoHeaderAndNoTokenBecauseOfItsHash) {
  const io::TempDir dir;
  const std::string path = dir.file("a.tokens");
  write(path, 250, 50);
  const std::string whole = io::slurp(path);
  const auto sealed = [](std::string bytes) {
    const std::uint64_t seal = io::xxh64(std::string_view(bytes).substr(0, 120));
    token_format::put_number(reinterpret_cast<unsigned char*>(bytes.data()) + 120, seal);
    return bytes;
  };
  const auto with = [&](std::size_t at, std::uint64_t number) {
    std::string bytes = whole;
    token_format::put_number(reinterpret_cast<unsigned char*>(bytes.data()) + at, number);
    dir.file("a.tokens", sealed(bytes));
    io::expect_refusal([&] { first_token(path); }, {"a.tokens"});
  };
  for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{1} << 63, ~std::uint64_t{0},
                                     std::uint64_t{1} << 40, std::uint64_t{51}})
    with(16, number);  // tokens
  for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{1} << 63, ~std::uint64_t{0},
                                     std::uint64_t{1} << 25, std::uint64_t{257}})
    with(24, number);  // vocabulary
  with(24, 5);         // which has no such token
  with(32, 1);         // documents without their bits
  with(8, 2);          // another version
  with(80, 12345);     // hash of the table
  EXPECT_EQ(first_token(dir.file("a.tokens", sealed(whole))), token_at(0, 250));
}

TEST(TokenFile, NoticesOneThatIsCutWhileItIsOpen) {
  const io::TempDir dir;
  const std::string path = dir.file("a.tokens");
  write(path, 250, 500);
  const TokenFile file(path);
  std::int32_t token = 0;
  file.copy(400, 1, &token);
  std::filesystem::resize_file(path, 300);
  io::expect_refusal([&] { file.copy(400, 1, &token); }, {"cut short"});
}

TEST(SourceFiles, KnowFilesByContentAndByTime) {
  const io::TempDir dir;
  const std::string a = dir.file("a", "one"), b = dir.file("b", "two");
  SourceFiles first({a, b}), swapped({b, a});
  EXPECT_EQ(first.bytes(), 6u);
  EXPECT_NE(first.content(), swapped.content());
  EXPECT_FALSE(first.is_settled());  // written just now
  const std::uint64_t stamp = first.stamp(), content = first.content();
  const auto old = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  for (const std::string& path : {a, b}) std::filesystem::last_write_time(path, old);
  EXPECT_THROW(first.check_unchanged(), Error);
  SourceFiles touched({a, b});
  touched.check_unchanged();
  EXPECT_TRUE(touched.is_settled());
  EXPECT_NE(touched.stamp(), stamp);
  EXPECT_EQ(touched.content(), content);
  dir.file("b", "twx");
  std::filesystem::last_write_time(b, old);
  SourceFiles sly({a, b});  // which is why a stamp is only believed of files that have settled
  EXPECT_EQ(sly.stamp(), touched.stamp());
  EXPECT_NE(sly.content(), content);
  EXPECT_NE(SourceFiles({dir.file("c", "onetwo")}).content(), content);
}

}  // namespace
}  // namespace heddle::data
