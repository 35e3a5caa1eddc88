// Tokenizers of pretrained models out of the files that they come in.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "io/gguf/gguf_metadata.h"
#include "text/pretrained/pretrained.h"
#include "text/pretrained/protobuf.h"
#include "text/pretrained/sentencepiece.h"
#include "text/pretrained/sources.h"
#include "text/test_support.h"

namespace heddle::text {
namespace {

using Ids = std::vector<std::int32_t>;
using Kind = SentencePiece::Kind;

// A protobuf field with bytes, or with an integer below 128.
std::string proto(std::uint32_t number, std::string_view bytes) {
  std::string out{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size() & 0x7F)};
  if (bytes.size() > 0x7F) {
    out.back() = static_cast<char>(out.back() | 0x80);
    out += static_cast<char>(bytes.size() >> 7);
  }
  return out.append(bytes);
}
std::string proto(std::uint32_t number, unsigned value) {
  std::string out;
  for (std::uint32_t key = number << 3; key != 0 || out.empty(); key >>= 7)
    out += static_cast<char>((key & 0x7F) | (key > 0x7F ? 0x80 : 0));
  return out + static_cast<char>(value);
}

std::string piece(std::string_view name, float score, Kind kind = Kind::normal) {
  std::string bits(4, '\0');
  std::memcpy(bits.data(), &score, 4);
  const std::string message = proto(1, name) + std::string(1, static_cast<char>(2 << 3 | 5)) +
                              bits + proto(3, static_cast<unsigned>(kind));
  return proto(1, message);
}

std::string bpe_file() {
  return piece("<unk>", 0, Kind::unknown) + piece("<s>", 0, Kind::control) +
         piece("</s>", 0, Kind::control) + piece("ab", 0) + piece("▁ab", -1) + piece("▁", -2) +
         piece("a", -3) + piece("b", -4) + piece("<", -5) + piece("s", -6) + piece(">", -7) +
         piece("<sep>", 0, Kind::user_defined) + proto(2, proto(3, 2U)) + proto(3, proto(4, 0U));
}

constexpr std::string_view kLlama =
    R"({"tokenizer_class": "LlamaTokenizer", "bos_token": "<s>", "eos_token": {"content": "</s>"},)"
    R"( "unk_token": "<unk>", "chat_template": "{{ messages }}"})";

TEST(Pretrained, SentencePieceBpe) {
  const io::TempDir folder;
  folder.file("tokenizer.model", bpe_file());
  folder.file("tokenizer_config.json", kLlama);
  const PretrainedTokenizer loaded = load_pretrained_tokenizer(folder.path());
  const Tokenizer& tokenizer = *loaded.tokenizer;
  EXPECT_EQ(tokenizer.encode("ab b"), (Ids{4, 5, 7}));
  EXPECT_EQ(tokenizer.encode("ab<sep>ab"), (Ids{4, 11, 3}));  // no space behind it
  EXPECT_EQ(tokenizer.encode("a<s>"), (Ids{5, 6, 1}));
  EXPECT_EQ(tokenizer.encode("a<s>", SpecialsInText::plain), (Ids{5, 6, 8, 9, 10}));
  EXPECT_EQ(tokenizer.encode("xy"), (Ids{5, 0}));  // unknown characters in a row are one
  EXPECT_EQ(tokenizer.framed(tokenizer.encode("a")).ids, (Ids{1, 5, 6}));
  EXPECT_EQ(tokenizer.decode(Ids{4, 5, 7}), "ab b");
  EXPECT_EQ(tokenizer.begin(), 1);
  EXPECT_EQ(tokenizer.end(), 2);
  EXPECT_EQ(tokenizer.unknown(), 0);
  EXPECT_EQ(tokenizer.pad(), std::nullopt);
  ASSERT_NE(loaded.chat_template(), nullptr);
  EXPECT_EQ(*loaded.chat_template(), "{{ messages }}");
  // The saved tokenizer is the same one.
  EXPECT_EQ(Tokenizer::from_json(tokenizer.to_json(), "again")->encode("ab<sep>a b"),
            tokenizer.encode("ab<sep>a b"));
}

TEST(Pretrained, SentencePieceUnigram) {
  const std::string file = piece("<unk>", 0, Kind::unknown) + piece("</s>", 0, Kind::control) +
                           piece("▁a", -1) + piece("b", -2) + piece("▁ab", -4) + piece("<", -9) +
                           piece("/", -9) + piece("s", -9) + piece(">", -9) +
                           proto(2, proto(3, 1U));
  const io::TempDir folder;
  folder.file("spiece.model", file);
  folder.file("tokenizer_config.json",
              R"({"tokenizer_class": "T5TokenizerFast", "eos_token": "</s>"})");
  const auto tokenizer = load_pretrained_tokenizer(folder.path()).tokenizer;
  EXPECT_EQ(tokenizer->encode("  ab   a "), (Ids{2, 3, 2}));  // spaces that say nothing go
  EXPECT_EQ(tokenizer->encode("a</s>", SpecialsInText::plain), (Ids{2, 5, 6, 7, 8}));
  EXPECT_EQ(tokenizer->framed(tokenizer->encode("a")).ids, (Ids{2, 1}));
}

// Equally good cuts of a long run are told apart by the rounding of f32 alone, a text that is one
// user defined piece has a space in front as any other, and a byte that is no UTF-8 is U+FFFD: ids
// of the package sentencepiece 0.2.3.
TEST(Pretrained, SentencePieceToTheLastId) {
  const std::string file = piece("<unk>", 0, Kind::unknown) + piece("<s>", 0, Kind::control) +
                           piece("</s>", 0, Kind::control) + piece("<sep>", 0, Kind::user_defined) +
                           piece("▁", -3.1F) + piece("a", -1.7F) + piece("aa", -3.4F) +
                           piece("aaa", -5.1F) + piece("b", -2.3F) + piece("▁a", -4.8F) +
                           proto(2, proto(3, 1U));
  const io::TempDir folder;
  folder.file("spiece.model", file);
  folder.file("tokenizer_config.json",
              R"({"tokenizer_class": "T5TokenizerFast", "eos_token": "</s>", "extra_ids": 0})");
  const auto tokenizer = load_pretrained_tokenizer(folder.path()).tokenizer;
  // Ids with how often they come.
  const auto runs = [&](std::string_view text) {
    std::vector<std::pair<std::int32_t, int>> all;
    for (const std::int32_t id : tokenizer->encode(text, SpecialsInText::plain))
      if (!all.empty() && all.back().first == id)
        ++all.back().second;
      else
        all.emplace_back(id, 1);
    return all;
  };
  using Runs = std::vector<std::pair<std::int32_t, int>>;
  EXPECT_EQ(runs("<sep>"), (Runs{{4, 1}, {3, 1}}));
  EXPECT_EQ(runs("<sep><sep>"), (Runs{{4, 1}, {3, 2}}));
  EXPECT_EQ(runs("a <sep> b"), (Runs{{9, 1}, {4, 1}, {3, 1}, {4, 1}, {8, 1}}));
  EXPECT_EQ(runs("aaaaa"), (Runs{{9, 1}, {7, 1}, {5, 1}}));
  EXPECT_EQ(runs(std::string(100, 'a')),
            (Runs{{4, 1}, {7, 2}, {5, 1}, {7, 1}, {6, 1}, {7, 8}, {5, 36}, {6, 14}}));
  EXPECT_EQ(runs("a\xFF"
                 "b"),
            (Runs{{9, 1}, {0, 1}, {8, 1}}));
  EXPECT_EQ(runs("\xE4\xB8"
                 "a"),
            (Runs{{4, 1}, {0, 1}, {5, 1}}));
  EXPECT_EQ(runs(" "), Runs{});
  EXPECT_EQ(runs(""), Runs{});
}

// Behind the pieces there are gaps to fill, unless the files list them.
TEST(Pretrained, GapsOfT5) {
  const std::string file = piece("<pad>", 0, Kind::control) + piece("</s>", 0, Kind::control) +
                           piece("<unk>", 0, Kind::unknown) + piece("▁a", -1) +
                           proto(2, proto(3, 1U));
  const io::TempDir folder;
  folder.file("spiece.model", file);
  folder.file("tokenizer_config.json", R"({"tokenizer_class": "T5Tokenizer", "extra_ids": 3})");
  const auto tokenizer = load_pretrained_tokenizer(folder.path()).tokenizer;
  EXPECT_EQ(tokenizer->vocabulary(), 7);
  EXPECT_EQ(tokenizer->find("<extra_id_0>"), 6);
  EXPECT_EQ(tokenizer->find("<extra_id_2>"), 4);
  EXPECT_EQ(tokenizer->pad(), 0);
  EXPECT_EQ(tokenizer->end(), 1);
  EXPECT_EQ(tokenizer->decode(Ids{3, 6, 3}, ShowSpecials::no), "a a");
  folder.file("added_tokens.json", R"({"<gap>": 4})");
  EXPECT_EQ(load_pretrained_tokenizer(folder.path()).tokenizer->vocabulary(), 5);
}

class Marian : public ::testing::Test {
 protected:
  Marian() {
    folder_.file("source.spm", unigram({{"▁a", -1}, {"b", -2}, {"▁c", -3}, {"▁", -4}}));
    folder_.file("target.spm", unigram({{"▁x", -1}, {"y", -2}, {"▁", -3}}));
    folder_.file("tokenizer_config.json", R"({"tokenizer_class": "MarianTokenizer"})");
    folder_.file("vocab.json", R"({"</s>": 0, "<unk>": 1, ">>fra<<": 2, "▁a": 3, "▁x": 4, "y": 5,
                                   "▁": 6, "b": 7, "<pad>": 8})");
  }
  static std::string unigram(const std::vector<std::pair<std::string, float>>& pieces) {
    std::string file = piece("<unk>", 0, Kind::unknown) + piece("<s>", 0, Kind::control) +
                       piece("</s>", 0, Kind::control);
    for (const auto& [name, score] : pieces) file += piece(name, score);
    return file + proto(2, proto(3, 1U));
  }
  io::TempDir folder_;
};

// Pieces of the one file have the ids of the other: those without are unknown, one by one, and a
// character that is no piece has the id of its name.
TEST_F(Marian, PiecesHaveTheIdsOfAnotherFile) {
  const PretrainedTokenizer both = load_pretrained_tokenizer(folder_.path());
  const Tokenizer& source = *both.tokenizer;
  EXPECT_EQ(source.encode("ab c"), (Ids{3, 7, 1}));
  EXPECT_EQ(source.encode("c c"), (Ids{1, 1}));
  EXPECT_EQ(source.encode("ay"), (Ids{3, 5}));
  EXPECT_EQ(source.encode("a??"), (Ids{3, 1}));
  EXPECT_EQ(source.encode(">>fra<< a", SpecialsInText::plain), (Ids{2, 3}));
  EXPECT_EQ(source.framed(source.encode("a")).ids, (Ids{3, 0}));
  EXPECT_EQ(source.vocabulary(), 9);
  EXPECT_EQ(source.pad(), 8);
  ASSERT_NE(both.target, nullptr);
  EXPECT_EQ(both.target->encode("xy a"), (Ids{4, 5, 6, 1}));
  EXPECT_EQ(both.target->decode(Ids{4, 5, 4, 6, 0}, ShowSpecials::no), "xy x");
  EXPECT_EQ(Tokenizer::from_json(source.to_json(), "again")->encode("ab c"), (Ids{3, 7, 1}));
}

TEST_F(Marian, TwoListsOfNames) {
  folder_.file("tokenizer_config.json",
               R"({"tokenizer_class": "MarianTokenizer", "separate_vocabs": true})");
  folder_.file("target_vocab.json", R"({"</s>": 0, "<unk>": 1, "<pad>": 2, "▁x": 3})");
  const PretrainedTokenizer both = load_pretrained_tokenizer(folder_.path());
  EXPECT_EQ(both.target->encode("xy"), (Ids{3, 1}));
  EXPECT_EQ(both.target->vocabulary(), 4);
}

TEST_F(Marian, WhatIsMissingIsNamed) {
  folder_.file("vocab.json", R"({"</s>": 0, "▁a": 1, "<pad>": 2})");
  expect_refusal([&] { load_pretrained_tokenizer(folder_.path()); }, {"vocab.json", "<unk>"});
  folder_.file("vocab.json", R"({"</s>": 0, "<unk>": 1, "<pad>": 99999999})");
  expect_refusal([&] { load_pretrained_tokenizer(folder_.path()); }, {"<pad>"});
  const io::TempDir empty;
  empty.file("source.spm", bpe_file());
  expect_refusal([&] { load_pretrained_tokenizer(empty.path()); }, {"target.spm is missing"});
  folder_.file("vocab.json", R"({"</s>": 0, "<unk>": 1, "<pad>": 2})");
  folder_.file("source.spm", bpe_file());
  expect_refusal([&] { load_pretrained_tokenizer(folder_.path()); }, {"source.spm", "unigram"});
}

TEST(Pretrained, ClassesThatAreNotKnownAreRefused) {
  const io::TempDir folder;
  folder.file("tokenizer.model", bpe_file());
  expect_refusal([&] { load_pretrained_tokenizer(folder.path()); },
                 {"tokenizer_class", "no file that names it"});
  folder.file("tokenizer_config.json", R"({"tokenizer_class": "XLMRobertaTokenizer"})");
  expect_refusal([&] { load_pretrained_tokenizer(folder.path()); }, {"XLMRobertaTokenizer"});
  const io::TempDir empty;
  expect_refusal([&] { load_pretrained_tokenizer(empty.path()); }, {"no tokenizer", "vocab.txt"});
}

TEST(Pretrained, BrokenSentencePieceFiles) {
  const auto read = [](std::string_view file) { read_sentencepiece(file, "x.model"); };
  expect_refusal([&] { read(""); }, {"x.model", "pieces"});
  expect_refusal([&] { read("\x0A\x05xy"); }, {"x.model", "ends in the file"});
  expect_refusal([&] { read(std::string(11, '\xFF')); }, {"at most ten bytes"});
  expect_refusal([&] { read(std::string("\x0B", 1)); }, {"a type of field"});
  expect_refusal([&] { read(proto(2, proto(3, 3U))); }, {"model_type", "3"});
  expect_refusal([&] { read(proto(2, proto(24, 1U))); }, {"treat_whitespace_as_suffix"});
  expect_refusal([&] { read(piece("a", 0, static_cast<Kind>(9))); }, {"type", "9"});
  expect_refusal(
      [&] { sentencepiece_json(read_sentencepiece(piece("a", 0) + piece("a", 0), "x"), "x"); },
      {"twice"});
}

TEST(Pretrained, VocabularyAndMerges) {
  const io::TempDir folder;
  folder.file("vocab.json", R"({"a": 0, "b": 1, "ab": 2, "Ġ": 3, "<|endoftext|>": 4})");
  folder.file("merges.txt", "#version: 0.2\na b\n");
  folder.file("tokenizer_config.json", R"({"tokenizer_class": "GPT2Tokenizer"})");
  folder.file("special_tokens_map.json", R"({"eos_token": "<|endoftext|>"})");
  const auto tokenizer = load_pretrained_tokenizer(folder.path()).tokenizer;
  EXPECT_EQ(tokenizer->encode("ab ba<|endoftext|>"), (Ids{2, 3, 1, 0, 4}));
  EXPECT_EQ(tokenizer->end(), 4);
  EXPECT_EQ(tokenizer->begin(), std::nullopt);
  folder.file("special_tokens_map.json", R"({"eos_token": "<nothing>"})");
  expect_refusal([&] { load_pretrained_tokenizer(folder.path()); }, {"eos_token", "<nothing>"});
}

TEST(Pretrained, VocabularyAndMergesOfBart) {
  const io::TempDir folder;
  folder.file("vocab.json", R"({"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "a": 4, "b": 5,
                                "ab": 6, "Ġ": 7, "<mask>": 8})");
  folder.file("merges.txt", "#version: 0.2\na b\n");
  folder.file("config.json", R"({"model_type": "bart"})");
  const auto tokenizer = load_pretrained_tokenizer(folder.path()).tokenizer;
  EXPECT_EQ(tokenizer->framed(tokenizer->encode("ab b")).ids, (Ids{0, 6, 7, 5, 2}));
  EXPECT_EQ(tokenizer->pad(), 1);
  EXPECT_EQ(tokenizer->mask(), 8);
}

TEST(Pretrained, LinesOfWordPieces) {
  const io::TempDir folder;
  folder.file("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nun\n##able\n");
  folder.file("config.json", R"({"model_type": "bert"})");
  const auto tokenizer = load_pretrained_tokenizer(folder.path()).tokenizer;
  EXPECT_EQ(tokenizer->framed(tokenizer->encode("UNable ünable zz")).ids,
            (Ids{2, 5, 6, 5, 6, 1, 3}));
  EXPECT_EQ(tokenizer->mask(), 4);
  EXPECT_EQ(tokenizer->specials().classify, 2);
  EXPECT_EQ(tokenizer->specials().separator, 3);
}

io::GgufMetadata gguf_bpe(const std::string& pre) {
  io::GgufMetadata metadata("model.gguf");
  metadata.add("tokenizer.ggml.model", std::string("gpt2"));
  metadata.add("tokenizer.ggml.pre", pre);
  metadata.add("tokenizer.ggml.tokens",
               io::GgufArray(std::vector<std::string>{"1", "2", "12", "<end>"}));
  metadata.add("tokenizer.ggml.token_type", io::GgufArray(std::vector<std::int32_t>{1, 1, 1, 3}));
  metadata.add("tokenizer.ggml.merges", io::GgufArray(std::vector<std::string>{"1 2"}));
  metadata.add("tokenizer.ggml.eos_token_id", std::uint32_t{3});
  metadata.add("tokenizer.ggml.add_eos_token", true);
  metadata.add("tokenizer.chat_template", std::string("{{ x }}"));
  return metadata;
}

TEST(Pretrained, Gguf) {
  const PretrainedTokenizer gpt2 = load_gguf_tokenizer(gguf_bpe("gpt-2"), "model.gguf");
  EXPECT_EQ(gpt2.tokenizer->encode("12<end>"), (Ids{2, 3}));
  EXPECT_EQ(gpt2.tokenizer->end(), 3);
  EXPECT_EQ(gpt2.tokenizer->framed(Ids{0}).ids, (Ids{0, 3}));
  EXPECT_EQ(*gpt2.chat_template(), "{{ x }}");
  // One digit after the other.
  const PretrainedTokenizer qwen = load_gguf_tokenizer(gguf_bpe("qwen2"), "model.gguf");
  EXPECT_EQ(qwen.tokenizer->encode("12"), (Ids{0, 1}));
  expect_refusal([] { load_gguf_tokenizer(gguf_bpe("nobody-knows"), "model.gguf"); },
                 {"model.gguf", "tokenizer.ggml.pre", "nobody-knows"});
}

// Placeholders for rows of the embeddings that no text can have.
TEST(Pretrained, GgufOfT5MayHaveMoreRowsThanPieces) {
  io::GgufMetadata m("model.gguf");
  m.add("tokenizer.ggml.model", std::string("t5"));
  m.add("tokenizer.ggml.tokens", io::GgufArray(std::vector<std::string>{
                                     "<pad>", "</s>", "<unk>", "▁a", "b", "[PAD5]", "[PAD6]"}));
  m.add("tokenizer.ggml.scores", io::GgufArray(std::vector<float>{0, 0, 0, -1, -2, -9, -9}));
  m.add("tokenizer.ggml.token_type", io::GgufArray(std::vector<std::int32_t>{3, 3, 2, 1, 1, 5, 5}));
  m.add("tokenizer.ggml.eos_token_id", std::uint32_t{1});
  const PretrainedTokenizer t5 = load_gguf_tokenizer(m, "model.gguf");
  EXPECT_EQ(t5.tokenizer->vocabulary(), 5);
  EXPECT_EQ(t5.tokenizer->framed(t5.tokenizer->encode("ab")).ids, (Ids{3, 4, 1}));
  m.add("tokenizer.ggml.padding_token_id", std::uint32_t{6});
  expect_refusal([&] { load_gguf_tokenizer(m, "model.gguf"); },
                 {"tokenizer.ggml.padding_token_id", "0 to 4"});
}

TEST(Pretrained, FrameOfTheConfiguration) {
  const io::TempDir folder;
  SpecialTokens specials;
  specials.begin = specials.end = true;
  trained("bpe:262", "hello", specials)->save(folder.file("tokenizer.json"));
  const auto load = [&](std::string_view config) {
    folder.file("tokenizer_config.json", config);
    return load_pretrained_tokenizer(folder.path()).tokenizer;
  };
  // "<s>" is a token of the file, but nobody says what it is for.
  EXPECT_EQ(load("{}")->begin(), std::nullopt);
  const auto tokenizer = load(R"({"bos_token": "<s>", "add_bos_token": true})");
  const Ids ids = tokenizer->encode("h");
  EXPECT_EQ(tokenizer->framed(ids).ids, (Ids{*tokenizer->begin(), ids[0]}));
  expect_refusal([&] { load(R"({"add_bos_token": true})"); }, {"add_bos_token"});
}

// People's words in a conversation are no special tokens, whatever they spell.
TEST(Pretrained, PlainRangesOfAText) {
  SpecialTokens specials;
  specials.end = true;
  const auto tokenizer = trained("byte", "", specials);
  const std::int32_t end = *tokenizer->end();
  const std::string text = "a</s>b</s>";
  EXPECT_EQ(tokenizer->encode(text, std::span<const TextRange>{}), (Ids{'a', end, 'b', end}));
  const std::vector<TextRange> first = {{0, 6}}, part = {{2, 3}, {9, 10}};
  EXPECT_EQ(tokenizer->encode(text, first), (Ids{'a', '<', '/', 's', '>', 'b', end}));
  EXPECT_EQ(tokenizer->encode(text, part), tokenizer->encode(text, SpecialsInText::plain));
}

}  // namespace
}  // namespace heddle::text
