// Tokens in as few bytes as the vocabulary allows.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/process_memory.h"
#include "base/sanitizers.h"
#include "data/order/tokens.h"
#include "data/test_support.h"
#include "data/text/encode_text.h"
#include "text/train.h"

namespace heddle::data {
namespace {

[[maybe_unused]] constexpr std::int64_t kMega = std::int64_t{1} << 20;

// Ids from both ends of the vocabulary, in no simple rhythm.
std::vector<std::int32_t> ids_of(std::int64_t vocabulary, std::int64_t count) {
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t id = (i * 7919 + i / 13) % vocabulary;
    ids.push_back(static_cast<std::int32_t>(i % 3 == 0 ? vocabulary - 1 - id : id));
  }
  return ids;
}

TEST(TokenStore, TakesOneTwoOrFourBytes) {
  const std::int64_t count = 2 * TokenStore::kBlock + 12345;
  struct Case {
    std::int64_t vocabulary, width;
  };
  for (const auto& [vocabulary, width] :
       {Case{256, 1}, Case{257, 2}, Case{65536, 2}, Case{65537, 4}, Case{1 << 24, 4}}) {
    SCOPED_TRACE(vocabulary);
    const std::vector<std::int32_t> ids = ids_of(vocabulary, count);
    EXPECT_EQ(*std::max_element(ids.begin(), ids.end()), vocabulary - 1);
    TokenStore store(vocabulary);
    // Pieces that end before, at and after the ends of blocks.
    const std::int64_t block = TokenStore::kBlock;
    std::int64_t at = 0;
    for (const std::int64_t end : {std::int64_t{1}, block - 1, block, 2 * block + 3, count}) {
      store.append(
          std::span(ids).subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(end - at)));
      at = end;
    }
    ASSERT_EQ(store.size(), count);
    // The last block holds up to twice of what is in it.
    EXPECT_GE(store.bytes(), count * width);
    EXPECT_LE(store.bytes(), (count + 12345) * width + 1024);
    std::vector<std::int32_t> back(ids.size());
    store.copy(0, count, back.data());
    EXPECT_TRUE(back == ids);
    store.copy(block - 2, 5, back.data());
    for (std::int64_t i = 0; i < 5; ++i)
      EXPECT_EQ(back[static_cast<std::size_t>(i)], ids[static_cast<std::size_t>(block - 2 + i)]);
    EXPECT_EQ(store.at(block), ids[static_cast<std::size_t>(block)]);

    TokenStore behind(vocabulary);
    behind.append(std::span(ids).first(7));
    behind.append(store);
    ASSERT_EQ(behind.size(), count + 7);
    behind.copy(7, count, back.data());
    EXPECT_TRUE(back == ids);
    EXPECT_EQ(behind.at(6), ids[6]);
  }
}

TEST(TokenStore, AShortTextTakesLittle) {
  TokenStore store(300);
  store.append(ids_of(300, 100));
  EXPECT_GE(store.bytes(), 200);
  EXPECT_LE(store.bytes(), 500);
}

TEST(Sequences, CountTheirBytes) {
  Sequences sequences(100);
  for (int i = 0; i < 1000; ++i) sequences.add(ids_of(100, 10));
  EXPECT_GE(sequences.bytes(), 10000 + 8 * 1001);
  EXPECT_LE(sequences.bytes(), 2 * (10000 + 8 * 1001) + 1024);
}

Codec codec_for(const char* spec, const std::string& text) {
  const std::vector<std::string_view> texts = {text};
  CodecParts parts;
  parts.source = text::train_tokenizer(text::TokenizerSpec::parse(spec, "test"), texts, {});
  parts.length = 8;
  parts.specials = text::SpecialsInText::plain;
  return Codec(std::move(parts));
}

// Of several rounds of pieces: more than one thread has at once.
TEST(EncodeText, IsTheTokensOfTheWhole) {
  std::string text;
  for (int i = 0; text.size() < 9u << 20; ++i)
    text += std::to_string(i * 37) + (i % 5 == 0 ? " Grüße aus\n" : " mit Nummer ");
  JoinedText whole;
  whole.text = text;
  whole.parts = {{0, "a.txt"}};
  for (const char* spec : {"byte", "char", "bpe:300"}) {
    SCOPED_TRACE(spec);
    const Codec codec = codec_for(spec, text.substr(0, 200000) + "ß");
    const std::vector<std::int32_t> expected =
        codec.source().encode(text, text::SpecialsInText::plain);
    for (const Documents border : {Documents::none, Documents::line}) {
      const EncodedText encoded = encode_text(codec, whole, whole.text, border);
      ASSERT_EQ(encoded.size(), static_cast<std::int64_t>(expected.size()));
      std::vector<std::int32_t> got(expected.size());
      encoded.tokens.copy(0, encoded.size(), got.data());
      EXPECT_TRUE(got == expected);
      EXPECT_EQ(encoded.documents.size(),
                border == Documents::none
                    ? 0u
                    : static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) +
                          (text.back() == '\n' ? 0 : 1));
    }
  }
}

// A sanitizer's memory is not ours.
#if !HEDDLE_SANITIZED_MEMORY
// Beside the text itself nothing is there but its tokens and the pieces in work.
TEST(EncodeText, TakesAByteForAByte) {
  JoinedText whole;
  whole.text.assign(static_cast<std::size_t>(96 * kMega), 'x');
  whole.parts = {{0, "a.txt"}};
  const Codec codec = codec_for("byte", "x");
  trim_heap();
  reset_resident_peak();
  const std::int64_t before = resident_bytes();
  const EncodedText encoded = encode_text(codec, whole, whole.text);
  EXPECT_EQ(encoded.tokens.bytes() / kMega, 96);
  EXPECT_GE(resident_peak(), before + 90 * kMega);
  EXPECT_LE(resident_peak(), before + 150 * kMega);
}
#endif

// The bytes that the plan of a run counts.
TEST(DataBytes, AreThoseOfTheExamples) {
  const SampleData files;
  Sample text = files.language("byte");
  const std::int64_t bytes = static_cast<std::int64_t>(io::slurp(files.file("text.txt")).size());
  EXPECT_GE(text.open()->bytes(), bytes);
  EXPECT_LE(text.open()->bytes(), 2 * bytes + 1024);
  for (const Sample& sample : files.all()) EXPECT_GT(sample.open()->bytes(), 500) << sample.name;
}

}  // namespace
}  // namespace heddle::data
