// Pieces of a text have the tokens of the whole, whatever is cut and wherever the cut is looked
// for.
#include <nlohmann/json.hpp>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "text/bpe/byte_alphabet.h"
#include "text/split/find_cut.h"
#include "text/split/known_patterns.h"
#include "text/test_support.h"

namespace heddle::text {
namespace {

const char* const kTraining =
    "the cat's hat'll be there!! 12345 ... Don't STOPnow camelCase\n\n  and  more\r\n words/ "
    "here.\n"
    "the cat's hat'll be there!! 12345 ... Don't STOPnow camelCase\n\n  and  more\r\n words/ "
    "here.\n"
    "字字。字\n字字。字\n!!\n!!\n//\n//\n \n \n\t\t";

// Any two of some bytes are a token: where one word ends and the next begins shows in the ids,
// whatever is cut.
nlohmann::json pairs_json() {
  nlohmann::json json = nlohmann::json::parse(trained("byte", "")->to_json());
  int id = 256;
  const std::string bytes = " \n\r\t/'slAa12!\x80\x82\xe3\xa0";
  for (const char first : bytes)
    for (const char second : bytes) {
      const std::string left = byte_name(static_cast<std::uint8_t>(first)),
                        right = byte_name(static_cast<std::uint8_t>(second));
      json["model"]["vocab"][left + right] = id++;
      json["model"]["merges"].push_back(left + " " + right);
    }
  return json;
}

nlohmann::json added(int id, const char* content, bool special) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", special}};
}

std::unique_ptr<Tokenizer> of(const nlohmann::json& json) {
  return Tokenizer::from_json(json.dump(), "test");
}

// Byte-level BPE behind a pattern, as its makers write it.
std::unique_ptr<Tokenizer> behind(std::string_view pattern) {
  nlohmann::json json = pairs_json();
  json["pre_tokenizer"] = {{"type", "Sequence"},
                           {"pretokenizers",
                            {{{"type", "Split"},
                              {"pattern", {{"Regex", pattern}}},
                              {"behavior", "Isolated"},
                              {"invert", false}},
                             {{"type", "ByteLevel"},
                              {"add_prefix_space", false},
                              {"trim_offsets", true},
                              {"use_regex", false}}}}};
  const auto id = static_cast<int>(json["model"]["vocab"].size());
  json["model"]["vocab"]["<|x|>"] = id;
  json["added_tokens"].push_back(added(id, "<|x|>", true));
  return of(json);
}

std::string drawn_text() {
  static const std::vector<std::string> kParts = {
      " ", " ",   "\n", "\n", "\r", "\t", "/",      "'",      "s",     "ll", "A",  "a",    "the",
      "1", "234", "!",  "。", "字", "é",  "\u00a0", "\u3000", "<|x|>", "<|", "|>", "\xff", "\xe5"};
  const auto parts = *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(kParts));
  std::string text;
  for (const std::string& part : parts) text += part;
  return text;
}

// Whether it was cut at all.
bool check_cuts(const Tokenizer& tokenizer, const std::string& text, std::size_t step) {
  const std::vector<std::int32_t> whole = tokenizer.encode(text);
  std::vector<std::int32_t> ids;
  std::size_t pieces = 0;
  for (std::string_view left(text); !left.empty(); ++pieces) {
    const std::size_t end =
        left.size() > step ? find_cut(left, step, tokenizer.cuts()) : left.size();
    const std::vector<std::int32_t> some = tokenizer.encode(left.substr(0, end));
    ids.insert(ids.end(), some.begin(), some.end());
    left.remove_prefix(end);
  }
  RC_ASSERT(ids == whole);
  return pieces > 1;
}

void check(const Tokenizer& tokenizer, Cuts cuts) {
  EXPECT_EQ(tokenizer.cuts(), cuts);
  int cut = 0;
  EXPECT_TRUE(rc::check([&] {
    const std::size_t step = *rc::gen::inRange<std::size_t>(1, 6);
    cut += check_cuts(tokenizer, drawn_text(), step) ? 1 : 0;
  }));
  EXPECT_GT(cut, 30);
}

TEST(FindCut, KeepsTheTokensOfThePatternsOfOthers) {
  for (const std::string_view pattern :
       {kGpt2Pattern, kCl100kPattern, kQwen2Pattern, kO200kPattern}) {
    SCOPED_TRACE(pattern);
    check(*behind(pattern), Cuts::spaces_and_lines);
  }
}

// Words of this pattern go on behind a newline, with slashes.
TEST(FindCut, KeepsWordsThatGoOnInTheNextLine) {
  const auto tokenizer = behind(kO200kPattern);
  EXPECT_TRUE(rc::check([&] {
    check_cuts(*tokenizer, "so!!\n//here !\n/\n/x", *rc::gen::inRange<std::size_t>(1, 12));
  }));
}

TEST(FindCut, KeepsTheTokensOfThoseMadeHere) {
  check(*trained("bpe:330", kTraining), Cuts::white_space);
  check(*trained("byte", ""), Cuts::characters);
  nlohmann::json json = pairs_json();
  json["pre_tokenizer"]["add_prefix_space"] = true;
  check(*of(json), Cuts::spaces);
}

TEST(FindCut, KeepsWordsAndCharacters) {
  const auto check_text = [](const Tokenizer& tokenizer, Cuts cuts) {
    EXPECT_EQ(tokenizer.cuts(), cuts);
    EXPECT_TRUE(rc::check(
        [&] { check_cuts(tokenizer, *unicode_texts(), *rc::gen::inRange<std::size_t>(1, 6)); }));
  };
  SpecialTokens unknown;
  unknown.unknown = true;
  check_text(*trained("word", kTraining, unknown), Cuts::spaces_and_lines);
  EXPECT_EQ(trained("word", kTraining, unknown)->cuts(SpecialsInText::plain), Cuts::white_space);
  EXPECT_EQ(trained("char", kTraining)->cuts(), Cuts::characters);
}

TEST(FindCut, NowhereWhereItIsNotKnown) {
  nlohmann::json json = nlohmann::json::parse(behind(kCl100kPattern)->to_json());
  const auto cuts = [&json](const auto& change) {
    nlohmann::json changed = json;
    change(changed);
    return of(changed)->cuts();
  };
  EXPECT_EQ(cuts([](auto&) {}), Cuts::spaces_and_lines);
  EXPECT_EQ(cuts([](auto& j) { j["normalizer"] = {{"type", "NFC"}}; }), Cuts::nowhere);
  EXPECT_EQ(cuts([](auto& j) { j["added_tokens"][0]["rstrip"] = true; }), Cuts::nowhere);
  EXPECT_EQ(cuts([](auto& j) { j["added_tokens"][0]["lstrip"] = true; }), Cuts::spaces);
  const auto named = [&](const char* content) {
    return cuts([&](auto& j) {
      j["model"]["vocab"].erase("<|x|>");
      j["model"]["vocab"][content] = j["added_tokens"][0]["id"];
      j["added_tokens"][0]["content"] = content;
    });
  };
  EXPECT_EQ(named("<|x y|>"), Cuts::nowhere);
  EXPECT_EQ(named("  "), Cuts::spaces_and_lines);
  EXPECT_EQ(named("a\nb"), Cuts::spaces);
  json["added_tokens"][0]["single_word"] = true;
  EXPECT_EQ(named("<|x|>"), Cuts::spaces_and_lines);
  EXPECT_EQ(named(" x"), Cuts::nowhere);
  json["added_tokens"][0]["single_word"] = false;
  EXPECT_EQ(cuts([](auto& j) {
              j["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "\\d+|\\D+";
            }),
            Cuts::nowhere);
}

TEST(FindCut, FindsTheFirstPlaceAtOrBehindOne) {
  const std::string text = "ab  cd\nef\r\ng\n/h";
  EXPECT_EQ(find_cut(text, 0, Cuts::spaces), 2u);
  EXPECT_EQ(find_cut(text, 2, Cuts::spaces), 2u);
  EXPECT_EQ(find_cut(text, 3, Cuts::spaces), text.size());  // a space behind a space
  EXPECT_EQ(find_cut(text, 3, Cuts::spaces_and_lines), 7u);
  EXPECT_EQ(find_cut(text, 8, Cuts::spaces_and_lines), text.size());  // \r\n, and a slash
  EXPECT_EQ(find_cut(text, 3, Cuts::white_space), 6u);
  EXPECT_EQ(find_cut(text, 3, Cuts::nowhere), text.size());
  EXPECT_EQ(find_cut("a字b", 2, Cuts::characters), 4u);
  EXPECT_EQ(find_cut("字 b", 1, Cuts::spaces), 3u);
  EXPECT_EQ(find_cut("\u3000 b", 1, Cuts::spaces), 5u);  // the space behind an ideographic one
}

}  // namespace
}  // namespace heddle::text
