// BLEU against what sacreBLEU 2.6.0 says with its defaults.
#include <gtest/gtest.h>

#include "heddle/error.h"
#include "text/bleu.h"

namespace heddle::text {
namespace {

struct Golden {
  std::string name;
  std::vector<std::string> hypotheses, references;
  double score;
  std::array<double, kBleuOrder> precisions;
  double brevity_penalty;
  std::int64_t words, reference_words;
};

const Golden kGolden[] = {
    {"equal",
     {"the cat sat on the mat ."},
     {"the cat sat on the mat ."},
     100.00000000000004,
     {100.0, 100.0, 100.0, 100.0},
     1.0,
     7,
     7},
    {"one word differs",
     {"the cat sat on a mat today"},
     {"the cat sat on the mat today"},
     48.892302243490086,
     {85.71428571428571, 66.66666666666667, 40.0, 25.0},
     1.0,
     7,
     7},
    {"no three words in a row: smoothed",
     {"mat the cat on sat"},
     {"the cat sat on the mat"},
     21.994586237921105,
     {100.0, 25.0, 16.666666666666668, 12.5},
     0.8187307530779819,
     5,
     6},
    {"too short: brevity",
     {"the cat sat on"},
     {"the cat sat on the old mat"},
     47.23665527410149,
     {100.0, 100.0, 100.0, 100.0},
     0.4723665527410147,
     4,
     7},
    {"three words have no 4-gram",
     {"the cat sat"},
     {"the cat sat"},
     0.0,
     {100.0, 100.0, 100.0, 0.0},
     1.0,
     3,
     3},
    {"nothing in common", {"a b c d e"}, {"v w x y z"}, 0.0, {0.0, 0.0, 0.0, 0.0}, 1.0, 5, 5},
    {"empty hypothesis", {""}, {"the cat sat"}, 0.0, {0.0, 0.0, 0.0, 0.0}, 0.0, 0, 3},
    {"repetition is clipped",
     {"the the the the the the"},
     {"the cat is on the mat there"},
     8.170609724417774,
     {33.333333333333336, 10.0, 6.25, 4.166666666666667},
     0.846481724890614,
     6,
     7},
    {"case counts",
     {"The Cat sat on the mat"},
     {"the cat sat on the mat"},
     50.81327481546149,
     {66.66666666666667, 60.0, 50.0, 33.333333333333336},
     1.0,
     6,
     6},
    {"numbers and stops",
     {"It cost 3,000.50 dollars, or 7-8 pounds."},
     {"It cost 3,000.50 dollars , or 7 -8 pounds ."},
     63.15552371794039,
     {81.81818181818181, 70.0, 55.55555555555556, 50.0},
     1.0,
     11,
     10},
    {"entities and quotes",
     {"he said &quot;no&quot; &amp; left (early)"},
     {"he said \"no\" & left ( early )"},
     100.00000000000004,
     {100.0, 100.0, 100.0, 100.0},
     1.0,
     10,
     10},
    {"letters beyond ASCII",
     {"Ein Mann fährt über die Straße."},
     {"Ein Mann fährt langsam über die Straße ."},
     51.54486831107658,
     {100.0, 83.33333333333333, 60.0, 25.0},
     0.8668778997501817,
     7,
     8},
    {"a corpus adds counts, not scores",
     {"the cat sat on the mat .", "a dog runs", "two men are talking to each other"},
     {"the cat sat on the mat .", "a big dog is running fast", "two men talk to each other"},
     54.80082175945326,
     {82.3529411764706, 64.28571428571429, 54.54545454545455, 50.0},
     0.8890097654027757,
     17,
     19},
};

TEST(Bleu, IsWhatSacrebleuSays) {
  for (const Golden& g : kGolden) {
    SCOPED_TRACE(g.name);
    const Bleu b = corpus_bleu(g.hypotheses, g.references);
    EXPECT_NEAR(b.score, g.score, 1e-9);
    for (int n = 0; n < kBleuOrder; ++n) EXPECT_NEAR(b.precisions[n], g.precisions[n], 1e-9);
    EXPECT_NEAR(b.brevity_penalty, g.brevity_penalty, 1e-12);
    EXPECT_EQ(b.words, g.words);
    EXPECT_EQ(b.reference_words, g.reference_words);
  }
}

using Words = std::vector<std::string>;

TEST(Bleu, SplitsPunctuationButNotNumbers) {
  EXPECT_EQ(split_13a("Hello, world!"), (Words{"Hello", ",", "world", "!"}));
  EXPECT_EQ(split_13a("3.14 1,000 5."), (Words{"3.14", "1,000", "5", "."}));
  EXPECT_EQ(split_13a("7-8 well-known"), (Words{"7", "-", "8", "well-known"}));
  EXPECT_EQ(split_13a("a..b"), (Words{"a", ".", ".", "b"}));
  EXPECT_EQ(split_13a(" \t\n"), Words{});
  // White space beyond ASCII: no-break space, em space, the file separator.
  EXPECT_EQ(split_13a("a\u00A0b\u2003c\x1C"
                      "d"),
            (Words{"a", "b", "c", "d"}));
  EXPECT_EQ(split_13a("zero\u200Bwidth"), (Words{"zero\u200Bwidth"}));  // is not white space
  EXPECT_EQ(split_13a("broken-\nline <skipped>&amp;lt;"), (Words{"brokenline", "<"}));
}

TEST(Bleu, BrokenUtf8IsJustBytes) {
  EXPECT_EQ(split_13a("\xE2 \xC2.\xE3"), (Words{"\xE2", "\xC2", ".", "\xE3"}));
}

TEST(Bleu, RefusesCorporaOfDifferentSizes) {
  const Words two = {"a", "b"}, one = {"a"};
  EXPECT_THROW(corpus_bleu(two, one), Error);
}

}  // namespace
}  // namespace heddle::text
