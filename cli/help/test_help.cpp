// Help without the parser's types, and what is said of options that there are not.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "help/help.h"
#include "help/parser_words.h"
#include "help/suggest.h"
#include "language/language.h"
#include "language/test_support.h"

namespace heddle::cli {
namespace {

TEST(HelpWords, NamesOfValues) {
  EXPECT_EQ(value_words("INT").name, "N");
  EXPECT_EQ(value_words("UINT:0 to 2^64 - 1").name, "N");
  EXPECT_EQ(value_words("FLOAT").name, "X");
  EXPECT_EQ(value_words("KEY=VALUE").name, "KEY=VALUE");
  EXPECT_EQ(value_words("TEXT:{fp32,bf16}").name, "fp32|bf16");
  EXPECT_EQ(value_words("INT:SIZE [b, kb(=1024b), ...]:INT in [1 - 1152921504606846976]").name,
            "SIZE");
}

TEST(HelpWords, Ranges) {
  EXPECT_EQ(value_words("INT:INT in [1 - 1024]").range, "1 to 1024");
  EXPECT_EQ(value_words("FLOAT:FLOAT in [0 - 1e+06]").range, "0 to 1e+06");
  // A bound that only the type sets is none to a reader.
  EXPECT_EQ(value_words("INT:INT in [1 - 1152921504606846976]").range, "");
  EXPECT_EQ(value_words("INT:INT in [2 - 1152921504606846976]").range, "at least 2");
  EXPECT_EQ(value_words("INT").range, "");
}

// One option or command of a program as its help shows it, without a terminal: 80 columns.
class HelpLines : public testing::Test {
 protected:
  HelpLines() { setenv("COLUMNS", "80", 1); }
  ~HelpLines() override { unsetenv("COLUMNS"); }

  std::string line_of(const CLI::Option* option) const { return help_.make_option(option, false); }

  HelpFormatter help_;
  CLI::App app_{"", "heddle"};
  std::int64_t value_ = 0;
};

// Descriptions begin in column 26, at least two blanks behind the name.
TEST_F(HelpLines, ALongNameHasALineOfItsOwn) {
  const std::string indent(26, ' ');
  for (std::size_t length = 1; length <= 30; ++length) {
    const std::string name(length, 'n');
    CLI::App* command = app_.add_subcommand(name, "what it does");
    const std::string left = "  " + name;
    const std::string expected = left.size() + 2 <= 26
                                     ? left + std::string(26 - left.size(), ' ') + "what it does\n"
                                     : left + "\n" + indent + "what it does\n";
    EXPECT_EQ(help_.make_subcommand(command), expected) << length;
  }
}

TEST_F(HelpLines, RangesDefaultsAndWhatGoesTogetherAreSaid) {
  CLI::Option* beam = app_.add_option("--beam", value_, "kept")->check(CLI::Range(1, 64));
  CLI::Option* top_k = app_.add_option("--top-k", value_, "drawn from")->excludes(beam);
  CLI::Option* best = app_.add_option("--best", value_, "shown")->needs(beam)->default_str("1");
  const auto padded = [](const std::string& name) {
    return "  " + name + std::string(24 - name.size(), ' ');
  };
  EXPECT_EQ(line_of(beam), padded("--beam N") + "kept (1 to 64; not with --top-k)\n");
  EXPECT_EQ(line_of(top_k), padded("--top-k N") + "drawn from (not with --beam)\n");
  EXPECT_EQ(line_of(best), padded("--best N") + "shown (default: 1; with --beam)\n");
}

TEST_F(HelpLines, ADefaultInWordsIsTranslatedAndAValueIsNot) {
  CLI::Option* beam = app_.add_option("--beam", value_, "kept")->default_str("none: draw");
  CLI::Option* out = app_.add_option("--out", value_, "kept")->default_str("tokenizer.json");
  EXPECT_NE(line_of(beam).find("(default: none: draw)"), std::string::npos) << line_of(beam);
  const InChinese chinese;
  const UntranslatedTexts untranslated;
  EXPECT_NE(line_of(beam).find("无：随机采样"), std::string::npos) << line_of(beam);
  EXPECT_NE(line_of(out).find("tokenizer.json"), std::string::npos) << line_of(out);
  EXPECT_EQ(untranslated.found(), std::vector<std::string>{"kept"});
}

const std::vector<std::string> kGenerate = {"--prompt", "--tokens", "--temperature", "--json"};
const std::vector<std::string> kTrain = {"--recipe", "--set", "--out", "--resume", "--json"};

TEST(SuggestOption, WordsOfOtherSystems) {
  EXPECT_EQ(suggest_option("--max-tokens", kGenerate), "did you mean --tokens?");
  EXPECT_EQ(suggest_option("--max-new-tokens=20", kGenerate), "did you mean --tokens?");
  EXPECT_EQ(suggest_option("-p", kGenerate), "did you mean --prompt?");
  EXPECT_EQ(suggest_option("--output", kTrain), "did you mean --out?");
  // Only what the command has.
  EXPECT_EQ(suggest_option("--max-tokens", kTrain), "");
}

TEST(SuggestOption, SlipsOfThePen) {
  EXPECT_EQ(suggest_option("--temprature", kGenerate), "did you mean --temperature?");
  EXPECT_EQ(suggest_option("--resum", kTrain), "did you mean --resume?");
}

TEST(SuggestOption, KeysOfARecipe) {
  EXPECT_EQ(suggest_option("--lr", kTrain),
            "it is a key of the recipe: --set train.learning_rate=VALUE");
  EXPECT_EQ(suggest_option("--batch-size=8", kTrain),
            "it is a key of the recipe: --set train.batch=VALUE");
  EXPECT_EQ(suggest_option("--n_head", kTrain),
            "it is a key of the recipe: --set model.attention.heads=VALUE");
  EXPECT_EQ(suggest_option("--layers", kTrain),
            "it is a key of the recipe: --set model.layers=VALUE");
  EXPECT_EQ(suggest_option("--lr", kGenerate), "");
}

TEST(SuggestOption, WhatIsSetElsewhere) {
  EXPECT_NE(suggest_option("--threads", kTrain).find("HEDDLE_THREADS"), std::string::npos);
  EXPECT_NE(suggest_option("--device", kTrain).find("CPU"), std::string::npos);
  EXPECT_EQ(suggest_option("--frobnicate", kTrain), "");
}

// The command line "heddle ..." of a small program with the shape of this one.
std::string complaint(const std::vector<std::string>& arguments) {
  CLI::App app("", "heddle");
  CLI::App* generate = app.add_subcommand("generate", "");
  std::int64_t tokens = 0;
  std::string model;
  generate->add_option("--tokens", tokens, "");
  generate->add_option("MODEL", model, "");
  CLI::App* bench = app.add_subcommand("bench", "");
  bench->require_subcommand(1);
  bench->add_subcommand("roofline", "");
  bench->add_subcommand("attention", "");
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& e) {
    return usage_complaint(app, arguments, e);
  }
  return "parsed";
}

TEST(UsageComplaint, CommandsThatThereAreNot) {
  EXPECT_EQ(complaint({"generat"}), "there is no command generat; did you mean generate?");
  EXPECT_EQ(complaint({"serve"}), "there is no command heddle serve; there are: generate, bench");
  EXPECT_EQ(complaint({"bench", "gpu"}),
            "there is no command heddle bench gpu; there are: roofline, attention");
  EXPECT_EQ(complaint({"bench", "attenton"}),
            "there is no command attenton; did you mean attention?");
}

TEST(UsageComplaint, OptionsAndArgumentsTooMany) {
  EXPECT_EQ(complaint({"generate", "runs/a", "--max-tokens", "5"}),
            "heddle generate has no option --max-tokens; did you mean --tokens?");
  EXPECT_EQ(complaint({"generate", "runs/a", "--frobnicate"}),
            "heddle generate has no option --frobnicate; heddle generate --help lists them");
  EXPECT_EQ(complaint({"generate", "runs/a", "runs/b"}),
            "what is runs/b for? heddle generate --help shows what it takes");
  EXPECT_EQ(complaint({"generate", "runs/a", "--tokens", "5"}), "parsed");
}

// The parser's own complaints in words for people, whole.
TEST(UsageComplaint, ValuesInWords) {
  CLI::App app("", "heddle");
  std::int64_t tokens = 0, beam = 0, memory = 0;
  double share = 0, rate = 0;
  std::string prompt, model, precision;
  app.add_option("MODEL", model, "the directory of a run")->required();
  app.add_option("--tokens", tokens, "");
  app.add_option("--prompt", prompt, "what the text goes on from");
  CLI::Option* beams = app.add_option("--beam", beam, "kept")->check(CLI::Range(1, 64));
  app.add_option("--rate", rate, "");
  app.add_option("--share", share, "")->check(CLI::Range(0.0, 0.5));
  app.add_option("--memory", memory, "")->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 60));
  app.add_option("--precision", precision, "")->check(CLI::IsMember({"fp32", "bf16"}));
  app.add_option("--top-k", tokens, "")->excludes(beams);
  app.add_option("--best", tokens, "")->needs(beams);
  const auto said = [&app](std::vector<std::string> arguments) -> std::string {
    std::reverse(arguments.begin(), arguments.end());
    try {
      app.parse(arguments);
    } catch (const CLI::ParseError& e) {
      return in_words(app, e);
    }
    return "parsed";
  };
  EXPECT_EQ(said({"a", "--tokens", "many"}), "--tokens: expected a whole number; got many");
  EXPECT_EQ(said({"a", "--rate", "half"}), "--rate: expected a number; got half");
  EXPECT_EQ(said({"a", "--share", "2"}), "--share: expected 0 to 0.5; got 2");
  EXPECT_EQ(said({"a", "--beam", "0"}), "--beam: expected 1 to 64; got 0");
  EXPECT_EQ(said({"a", "--memory", "0"}), "--memory: expected 1 or more; got 0");
  EXPECT_EQ(said({"a", "--precision", "fp16"}),
            "--precision: expected one of fp32, bf16; got fp16");
  EXPECT_EQ(said({"a", "--prompt"}), "--prompt needs a value: what the text goes on from");
  EXPECT_EQ(said({"--tokens", "3"}), "MODEL is required: the directory of a run");
  EXPECT_EQ(said({"a", "--beam", "2", "--top-k", "3"}),
            "--beam does not go with --top-k: leave one of them out");
  EXPECT_EQ(said({"a", "--best", "2"}), "--best needs --beam beside it: kept");
}

}  // namespace
}  // namespace heddle::cli
