// Pre-tokenizers and the patterns that they cut by.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "text/split/pcre.h"
#include "text/split/pre_tokenizer.h"
#include "text/split/word_end.h"
#include "text/test_support.h"

namespace heddle::text {
namespace {

using Cut = std::vector<std::string>;

Cut cut(const PreTokenizerPtr& step, std::string_view text) {
  Words words{.list = {text}, .at_start = true, .kept = {}};
  step->cut(words);
  return {words.list.begin(), words.list.end()};
}

TEST(PreTokenizer, BehavioursOfSplit) {
  const auto by = [](Behavior behavior, bool invert = false) {
    return cut(split(literal("-"), behavior, invert), "a-b--c");
  };
  EXPECT_EQ(by(Behavior::removed), (Cut{"a", "b", "c"}));
  EXPECT_EQ(by(Behavior::isolated), (Cut{"a", "-", "b", "-", "-", "c"}));
  EXPECT_EQ(by(Behavior::merged_with_previous), (Cut{"a-", "b-", "-", "c"}));
  EXPECT_EQ(by(Behavior::merged_with_next), (Cut{"a", "-b", "-", "-c"}));
  EXPECT_EQ(by(Behavior::contiguous), (Cut{"a", "-", "b", "--", "c"}));
  EXPECT_EQ(by(Behavior::removed, true), (Cut{"-", "-", "-"}));
  EXPECT_EQ(cut(split(regex("(?=[0-9])", "test"), Behavior::isolated), "a12"),
            (Cut{"a", "1", "2"}));  // places without characters cut as well
}

TEST(PreTokenizer, SimpleOnes) {
  EXPECT_EQ(cut(white_space_split(), " a b\u3000c "), (Cut{"a", "b", "c"}));
  EXPECT_EQ(cut(white_space(), "don't é_1 !?"), (Cut{"don", "'", "t", "é_1", "!?"}));
  EXPECT_EQ(cut(bert_pre_tokenizer(), "a b, $c。"), (Cut{"a", "b", ",", "$", "c", "。"}));
  EXPECT_EQ(cut(digits(true), "a12"), (Cut{"a", "1", "2"}));
  EXPECT_EQ(cut(digits(false), "a12b"), (Cut{"a", "12", "b"}));
  EXPECT_EQ(cut(metaspace({}), "a b"), (Cut{"▁a", "▁b"}));
  EXPECT_EQ(cut(metaspace({.prepend = PrependScheme::never}), "a b"), (Cut{"a", "▁b"}));
  EXPECT_EQ(cut(metaspace({.split = false}), "a b"), (Cut{"▁a▁b"}));
  EXPECT_EQ(cut(byte_level({}), "a é"), (Cut{"Ġa", "ĠÃ©"}));
}

TEST(PreTokenizer, MetaspaceMarksTheFirstWordOfTheTextOnly) {
  const auto step = metaspace({.prepend = PrependScheme::first});
  EXPECT_EQ(cut(step, "a"), (Cut{"▁a"}));
  Words later{.list = {"a"}, .at_start = false, .kept = {}};
  step->cut(later);
  EXPECT_EQ(later.list[0], "a");
}

TEST(Pattern, LimitsAndRefusalsOfPcre) {
  expect_refusal([] { regex("[\\p{L}&&[^\\p{Han}]]", "file: pattern"); }, {"file: pattern", "&&"});
  expect_refusal([] { regex("\\h+", "file"); }, {"\\h"});
  expect_refusal([] { regex("(a", "file"); }, {"not a pattern"});
  expect_refusal([] { regex("(a+)+$", "file")->find(std::string(50'000, 'a') + "b"); },
                 {"gives up", "limit"});
  EXPECT_EQ(regex("\\s", "file")->find("\u180E\u0085").size(), 1U);
  EXPECT_EQ(regex("a", "file")
                ->find("\xFF"
                       "a"),
            (std::vector<Match>{{1, 2}}));
}

constexpr std::string_view kO200k =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kCl100k =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// Texts where the rules of the patterns meet: few characters, often repeated.
rc::Gen<std::string> tricky_texts() {
  const auto pieces =
      rc::gen::element<std::string>("a", "B", "'", "s", "LL", "1", " ", "\n", "\r", "\t", ".", "/",
                                    "é", "É", "ǅ", "中", "\u0301", "ʰ", "²", "\u00A0");
  return rc::gen::map(rc::gen::container<std::vector<std::string>>(pieces),
                      [](const std::vector<std::string>& parts) {
                        std::string text;
                        for (const std::string& part : parts) text += part;
                        return text;
                      });
}

RC_GTEST_PROP(Pattern, OwnCodeCutsAsThePatternSays, ()) {
  const std::string text = *tricky_texts();
  for (const std::string_view pattern : {kCl100k, kQwen2, kO200k}) {
    const PatternPtr own = regex(pattern, "test");
    RC_ASSERT(own->word_end() != nullptr);
    RC_ASSERT(own->find(text) == pcre_pattern(pattern, "test")->find(text));
  }
}

}  // namespace
}  // namespace heddle::text
