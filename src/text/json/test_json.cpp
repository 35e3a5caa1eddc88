// tokenizer.json: what was written comes back, what others wrote is read, what is broken is
// refused.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/json/json.h"
#include "text/test_support.h"
#include "unit/source_tree.h"

namespace heddle::text {
namespace {

using Ids = std::vector<std::int32_t>;
using Document = nlohmann::ordered_json;

const SpecialTokens kAll = {.pad = true, .begin = true, .end = true, .unknown = true, .mask = true};

TEST(tokenizer_json, comes_back_equal) {
  for (const char* spec : {"char", "byte", "word:1", "bpe:290"}) {
    for (const SpecialTokens& specials : {SpecialTokens{}, kAll}) {
      const std::string text = "the \"best\" of\tall ünïcode, \\ the best\n";
      const auto tokenizer = trained(spec, text, specials);
      const std::string json = tokenizer->to_json();
      const auto again = Tokenizer::from_json(json, "test");
      EXPECT_EQ(again->to_json(), json);
      EXPECT_EQ(again->kind(), tokenizer->kind());
      EXPECT_EQ(again->vocabulary(), tokenizer->vocabulary());
      EXPECT_EQ(again->pad(), tokenizer->pad());
      EXPECT_EQ(again->begin(), tokenizer->begin());
      EXPECT_EQ(again->end(), tokenizer->end());
      EXPECT_EQ(again->unknown(), tokenizer->unknown());
      EXPECT_EQ(again->mask(), tokenizer->mask());
      EXPECT_EQ(again->encode(text), tokenizer->encode(text));
    }
  }
}

// Hugging Face's tokenizers trained this one and encoded the texts (tests/conformance).
TEST(tokenizer_json, golden_ids_of_hugging_face) {
  const std::string path = source_tree("tests/golden/tokenizer.json");
  const io::Json golden = io::Json::read(path);
  const auto tokenizer = Tokenizer::from_json(golden.at("tokenizer").raw().dump(), path);
  const io::Json cases = golden.at("cases");
  ASSERT_GT(cases.size(), 20U);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::string text = cases.at(i).at("text").string();
    Ids expected;
    for (const std::int64_t id : cases.at(i).at("ids").integers())
      expected.push_back(static_cast<std::int32_t>(id));
    EXPECT_EQ(tokenizer->encode(text), expected) << text;
    EXPECT_EQ(tokenizer->decode(expected), text);
  }
}

Document sample(const char* spec) {
  return Document::parse(trained(spec, "hello hello <there>", kAll)->to_json());
}

// A valid file with one value replaced must be refused with a message that names the parts.
void expect_refused(Document document, const char* pointer, const Document& value,
                    std::initializer_list<std::string_view> parts) {
  document[Document::json_pointer(pointer)] = value;
  expect_refusal([&] { Tokenizer::from_json(document.dump(), "file.json"); }, parts);
}

TEST(tokenizer_json, what_is_not_supported_is_refused_by_name) {
  const Document bpe = sample("bpe:262");
  const auto part = [](const char* type) { return Document{{"type", type}}; };
  expect_refused(bpe, "/version", "2.0", {"file.json", "version", "1.0"});
  expect_refused(bpe, "/normalizer", part("Nmt"), {"normalizer.type", "Nmt"});
  expect_refused(bpe, "/truncation", part("NFC"), {"truncation.type"});
  expect_refused(bpe, "/padding", part("NFC"), {"padding.type"});
  expect_refused(bpe, "/post_processor", part("NFC"), {"post_processor.type", "NFC"});
  expect_refused(bpe, "/decoder", part("CTC"), {"decoder.type", "CTC"});
  expect_refused(bpe, "/pre_tokenizer", part("UnicodeScripts"), {"pre_tokenizer.type", "Scripts"});
  expect_refused(bpe, "/pre_tokenizer/other", 1, {"pre_tokenizer.other"});
  expect_refused(bpe, "/model/type", "Other", {"model.type", "Other"});
  expect_refused(bpe, "/model/dropout", 0.1, {"model.dropout"});
  expect_refused(bpe, "/unheard_of", 1, {"unheard_of"});
  const Document characters = sample("char");
  expect_refused(characters, "/pre_tokenizer/pattern/Regex", "[a&&b]", {"pattern", "&&"});
  expect_refused(characters, "/pre_tokenizer/behavior", "Other", {"pre_tokenizer.behavior"});
}

TEST(tokenizer_json, broken_vocabularies_are_refused_by_name) {
  const Document bpe = sample("bpe:262");
  expect_refused(bpe, "/model/vocab", Document::array(), {"model.merges"});
  expect_refused(bpe, "/model/vocab/a", -1, {"model.vocab.a", "-1"});
  expect_refused(bpe, "/model/vocab/a", 1.5, {"model.vocab.a", "1.5"});
  expect_refused(bpe, "/model/vocab/a", "b", {"model.vocab.a", "\"b\""});
  expect_refused(bpe, "/model/vocab/a", 1, {"model.vocab.", "no other token has"});
  expect_refused(bpe, "/model/vocab/new", 1'000'000, {"model.vocab.new", "1000000"});
  expect_refused(bpe, "/model/unk_token", "nobody", {"model.unk_token", "nobody"});
  expect_refused(bpe, "/model/merges/0", "h nobody", {"model.merges[0]", "nobody"});
  expect_refused(bpe, "/model/merges/0", "h x", {"model.merges[0]", "hx"});
  expect_refused(bpe, "/model/merges/0", "hx", {"model.merges[0]", "space"});
  expect_refused(bpe, "/model/merges/0", "h e l", {"model.merges[0]", "space"});
  expect_refused(bpe, "/model/merges/0", {"h", "e", "l"}, {"model.merges[0]", "two names"});
  expect_refused(bpe, "/model/merges/0", 7, {"model.merges[0]", "7"});
  expect_refused(bpe, "/model/merges", nullptr, {"model.merges"});
  expect_refused(bpe, "/added_tokens/0/id", 3, {"added_tokens[0].id", "<pad>"});
  expect_refused(bpe, "/added_tokens/0/content", "", {"added_tokens[0].content"});
  expect_refused(bpe, "/added_tokens/0/content", "<s>", {"added_tokens[0].id", "<s>"});
  expect_refused(bpe, "/added_tokens/0", bpe.at("added_tokens").at(1), {"added_tokens[1].content"});
  expect_refused(bpe, "/added_tokens", 1, {"added_tokens"});
  Document empty = sample("char");
  empty["added_tokens"] = Document::array();
  expect_refused(empty, "/model/vocab", Document::object(), {"model.vocab", "from 1 to"});
}

// Ids that no token has decode to nothing; the vocabulary reaches to the largest.
TEST(tokenizer_json, holes_between_ids) {
  Document bpe = sample("bpe:262");
  bpe["model"]["vocab"]["new"] = 300;
  const auto tokenizer = Tokenizer::from_json(bpe.dump(), "test");
  EXPECT_EQ(tokenizer->vocabulary(), 301);
  EXPECT_EQ(tokenizer->decode(Ids{299, 300}), "new");
  EXPECT_EQ(tokenizer->encode("hello"),
            Tokenizer::from_json(sample("bpe:262").dump(), "test")->encode("hello"));
}

TEST(tokenizer_json, added_tokens_take_white_space_and_want_words) {
  Document bpe = sample("byte");
  Document& mask = bpe["added_tokens"][4];
  ASSERT_EQ(mask["content"], "<mask>");
  const std::int32_t id = mask["id"];
  mask["lstrip"] = true;
  EXPECT_EQ(Tokenizer::from_json(bpe.dump(), "test")->encode("a  <mask> b"),
            (Ids{'a', id, ' ', 'b'}));
  mask["lstrip"] = false;
  mask["rstrip"] = true;
  EXPECT_EQ(Tokenizer::from_json(bpe.dump(), "test")->encode("a <mask>  b"),
            (Ids{'a', ' ', id, 'b'}));
  mask["rstrip"] = false;
  mask["single_word"] = true;
  const auto single = Tokenizer::from_json(bpe.dump(), "test");
  EXPECT_EQ(single->encode("<mask>."), (Ids{id, '.'}));
  EXPECT_EQ(single->encode("<mask>x").size(), 7U);
}

TEST(tokenizer_json, post_processors_frame_texts) {
  Document bpe = sample("byte");
  bpe["post_processor"] = {
      {"type", "BertProcessing"}, {"sep", {"</s>", 258}}, {"cls", {"<s>", 257}}};
  const auto bert = Tokenizer::from_json(bpe.dump(), "test");
  EXPECT_EQ(bert->framed(Ids{1}).ids, (Ids{257, 1, 258}));
  EXPECT_EQ(bert->framed(Ids{1}, Ids{2, 3}).ids, (Ids{257, 1, 258, 2, 3, 258}));
  EXPECT_EQ(bert->framed(Ids{1}, Ids{2, 3}).segments, (Ids{0, 0, 0, 1, 1, 1}));
  bpe["post_processor"]["type"] = "RobertaProcessing";
  EXPECT_EQ(Tokenizer::from_json(bpe.dump(), "test")->framed(Ids{1}, Ids{2}).ids,
            (Ids{257, 1, 258, 258, 2, 258}));
}

// The shape of Llama 2: spaces as "▁", unknown characters as bytes, no words.
TEST(tokenizer_json, sentence_piece_bpe) {
  Document vocabulary = {{"<unk>", 0}, {"▁", 1}, {"a", 2}, {"b", 3}, {"▁a", 4}};
  constexpr std::string_view hex = "0123456789ABCDEF";
  for (std::size_t byte = 0; byte < 256; ++byte)
    vocabulary[std::string("<0x") + hex[byte >> 4] + hex[byte & 15] + ">"] = 5 + byte;
  const Document space = {{"String", " "}}, mark = {{"String", "▁"}};
  const Document file = {{"normalizer",
                          {{"type", "Sequence"},
                           {"normalizers",
                            {{{"type", "Prepend"}, {"prepend", "▁"}},
                             {{"type", "Replace"}, {"pattern", space}, {"content", "▁"}}}}}},
                         {"decoder",
                          {{"type", "Sequence"},
                           {"decoders",
                            {{{"type", "Replace"}, {"pattern", mark}, {"content", " "}},
                             {{"type", "ByteFallback"}},
                             {{"type", "Fuse"}},
                             {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}}}}},
                         {"model",
                          {{"type", "BPE"},
                           {"unk_token", "<unk>"},
                           {"fuse_unk", true},
                           {"byte_fallback", true},
                           {"vocab", vocabulary},
                           {"merges", {"▁ a"}}}}};
  const auto tokenizer = Tokenizer::from_json(file.dump(), "test");
  EXPECT_EQ(tokenizer->encode("a ab é"), (Ids{4, 4, 3, 1, 5 + 0xC3, 5 + 0xA9}));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("a ab é\xFF")), "a ab é\xFF");
  EXPECT_EQ(Tokenizer::from_json(tokenizer->to_json(), "test")->encode("a b"), (Ids{4, 1, 3}));
}

// Added tokens may begin with any byte, each of them wherever it stands in a text.
TEST(tokenizer_json, added_tokens_are_found_by_their_first_bytes) {
  Document document = sample("byte");
  const std::size_t count = document["added_tokens"].size();
  ASSERT_GE(count, 3U);
  for (const auto& [number, content] : {std::pair{1, "[one]"}, {2, "|two|"}}) {
    Document& token = document["added_tokens"][static_cast<std::size_t>(number)];
    document["model"]["vocab"].erase(token["content"].get<std::string>());
    token["content"] = content;
  }
  const auto tokenizer = Tokenizer::from_json(document.dump(), "test");
  const auto id = [&](std::size_t i) {
    return document["added_tokens"][i]["id"].get<std::int32_t>();
  };
  const std::string first = document["added_tokens"][0]["content"];
  EXPECT_EQ(tokenizer->encode("[one]"), (Ids{id(1)}));
  EXPECT_EQ(tokenizer->encode("|two|"), (Ids{id(2)}));
  EXPECT_EQ(tokenizer->encode(first), (Ids{id(0)}));
  EXPECT_EQ(tokenizer->encode("a|two|" + first + "[one]"), (Ids{'a', id(2), id(0), id(1)}));
}

// Forms that occur in Hugging Face's files but not in Heddle's.
TEST(tokenizer_json, forms_of_others) {
  Document bpe = sample("bpe:262");
  const std::string text = "hello <s> there";
  const Ids expected = Tokenizer::from_json(bpe.dump(), "test")->encode(text);
  // Pairs as arrays, special tokens that are not in the model's vocabulary.
  for (Document& merge : bpe["model"]["merges"]) {
    const std::string both = merge;
    const std::size_t space = both.find(' ');
    merge = {both.substr(0, space), both.substr(space + 1)};
  }
  for (const char* name : {"<pad>", "<s>", "</s>", "<unk>", "<mask>"})
    bpe["model"]["vocab"].erase(name);
  bpe["post_processor"] = bpe["pre_tokenizer"];
  const auto tokenizer = Tokenizer::from_json(bpe.dump(), "test");
  EXPECT_EQ(tokenizer->encode(text), expected);

  bpe["pre_tokenizer"]["add_prefix_space"] = true;
  const auto prefixed = Tokenizer::from_json(bpe.dump(), "test");
  EXPECT_EQ(prefixed->encode("a b"), tokenizer->encode(" a b"));
  EXPECT_EQ(prefixed->encode(" a b"), tokenizer->encode(" a b"));
  EXPECT_EQ(prefixed->encode("<s>a"), tokenizer->encode("<s> a"));
  EXPECT_EQ(Tokenizer::from_json(prefixed->to_json(), "test")->encode("a"), prefixed->encode("a"));
}

TEST(tokenizer_json, bytes_that_are_missing) {
  Document bpe = {
      {"model",
       {{"type", "BPE"}, {"vocab", {{"a", 0}, {"b", 1}, {"?", 2}}}, {"merges", Document::array()}}},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
      {"decoder", {{"type", "ByteLevel"}}}};
  const auto strict = Tokenizer::from_json(bpe.dump(), "test");
  EXPECT_EQ(strict->encode("ab"), (Ids{0, 1}));
  expect_refusal([&] { strict->encode("abc"); }, {"byte 2", "got c"});
  bpe["model"]["unk_token"] = "?";
  EXPECT_EQ(Tokenizer::from_json(bpe.dump(), "test")->encode("acdb"), (Ids{0, 2, 2, 1}));
  EXPECT_EQ(Tokenizer::from_json(bpe.dump(), "test")->unknown(), 2);
  bpe["model"]["fuse_unk"] = true;
  EXPECT_EQ(Tokenizer::from_json(bpe.dump(), "test")->encode("acdb"), (Ids{0, 2, 1}));
}

TEST(tokenizer_json, mutations_are_read_or_refused) {
  for (const char* spec : {"char", "word:1", "bpe:262"}) {
    const std::string json = trained(spec, "hello hello <there>", kAll)->to_json();
    int refused = io::survive_mutations(json, 400, [](const std::string& bytes) {
      const auto tokenizer = Tokenizer::from_json(bytes, "file.json");
      Tokenizer::from_json(tokenizer->to_json(), "again");
      try {
        tokenizer->decode(tokenizer->encode("hello <s>there\xFF"));
      } catch (const Error& e) {  // a text it has no tokens for
        EXPECT_EQ(e.code(), ErrorCode::invalid_argument);
      }
    });
    EXPECT_GT(refused, 200) << spec;
  }
}

}  // namespace
}  // namespace heddle::text
