// The frame of the lab. That every experiment comes to its verdict is the test lab.all.
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "heddle/error.h"
#include "io/files/file.h"
#include "lab/experiments.h"
#include "lab/present/documents.h"
#include "lab/present/present.h"
#include "lab/run.h"
#include "language/test_support.h"
#include "report/page/formula.h"
#include "unit/source_tree.h"

namespace heddle::lab {
namespace {

bool has_chinese(const std::string& text) {
  // U+4E00 to U+9FFF are E4 B8 80 to E9 BF BF.
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0xE4 && byte <= 0xE9) return true;
  }
  return false;
}

Experiment planted(const std::string& name, Verdict expected, void (*run)(Findings&)) {
  const char* text = "text";
  return {.name = name,
          .topic = text,
          .title = text,
          .claim = "a < b & c",
          .source = text,
          .method = text,
          .threshold = text,
          .expected = expected,
          .because = text,
          .run = run};
}

void measures_two(Findings& f) {
  f.number("two", 2, "two", mark("s"));
  const bool small = f.check("two is small", 2, Relation::less, 1);
  f.verdict(small ? Verdict::holds : Verdict::refuted);
}

std::vector<Outcome> run_all(const std::vector<Experiment>& list) {
  const std::vector<std::string> all = {"all"};
  return run(choose(list, all, true));
}

TEST(Lab, EveryExperimentIsSaidInBothLanguages) {
  std::set<std::string> names;
  for (const Experiment& e : experiments()) {
    EXPECT_TRUE(names.insert(e.name).second) << e.name << " is listed twice";
    for (const std::string& english :
         {e.topic, e.title, e.claim, e.source, e.method, e.threshold, e.because}) {
      EXPECT_FALSE(english.empty()) << e.name;
      EXPECT_FALSE(has_chinese(english)) << e.name << ": " << english;
      const InChinese chinese;
      EXPECT_TRUE(has_chinese(tr(english))) << e.name << ": " << english;
    }
    EXPECT_NE(e.run, nullptr) << e.name;
  }
}

// Pages show a heading when the topic changes: a topic that comes twice would have two.
TEST(Lab, ExperimentsOfATopicStandTogether) {
  std::set<std::string> seen;
  std::string last;
  for (const Experiment& e : experiments()) {
    if (e.topic == last) continue;
    last = e.topic;
    EXPECT_TRUE(seen.insert(last).second) << last << " begins again at " << e.name;
  }
}

TEST(Lab, AWrongVerdictFails) {
  const std::vector<Experiment> right = {planted("right", Verdict::refuted, measures_two)};
  EXPECT_EQ(exit_status(run_all(right)), 0);

  std::vector<Experiment> wrong = right;
  wrong.push_back(planted("wrong", Verdict::holds, measures_two));
  const std::vector<Outcome> outcomes = run_all(wrong);
  EXPECT_EQ(exit_status(outcomes), 1);
  EXPECT_TRUE(outcomes[0].pass());
  EXPECT_FALSE(outcomes[1].pass());
  const auto json = nlohmann::json::parse(outcomes_json(outcomes));
  EXPECT_EQ(json["experiments"][1]["verdict"], "refuted");
  EXPECT_EQ(json["experiments"][1]["expected"], "holds");
  EXPECT_EQ(json["experiments"][1]["pass"], false);
  EXPECT_EQ(json["experiments"][1]["numbers"]["two"], 2);
  EXPECT_NE(summary_text(outcomes).find("wrong"), std::string::npos);
  EXPECT_NE(outcomes_page(outcomes).find("badge refuted wrong"), std::string::npos);
}

TEST(Lab, AnExperimentThatThrowsOrSaysNothingFails) {
  const std::vector<Experiment> list = {
      planted("throws", Verdict::holds,
              [](Findings&) { fail(ErrorCode::failed, "lab", "it broke"); }),
      planted("silent", Verdict::holds, [](Findings&) {}),
      planted("right", Verdict::refuted, measures_two)};
  const std::vector<Outcome> outcomes = run_all(list);
  ASSERT_EQ(outcomes.size(), 3U);
  EXPECT_EQ(exit_status(outcomes), 1);
  EXPECT_FALSE(outcomes[0].pass());
  EXPECT_FALSE(outcomes[1].pass());
  EXPECT_TRUE(outcomes[2].pass());
  const auto json = nlohmann::json::parse(outcomes_json(outcomes));
  EXPECT_FALSE(json["experiments"][0].contains("verdict"));
  EXPECT_NE(outcome_text(outcomes[0], false).find("it broke"), std::string::npos);
  EXPECT_NE(outcomes_markdown(outcomes).find("did not come to an end"), std::string::npos);
}

TEST(Lab, NamesChoose) {
  std::vector<Experiment> list = {planted("elman-and", Verdict::holds, measures_two),
                                  planted("long-one", Verdict::holds, measures_two)};
  list[1].slow = true;
  const auto names = [&](const std::vector<std::string>& wanted, bool slow) {
    std::string joined;
    for (const Experiment* e : choose(list, wanted, slow)) joined += e->name + " ";
    return joined;
  };
  EXPECT_EQ(names({"all"}, false), "elman-and ");
  EXPECT_EQ(names({"all"}, true), "elman-and long-one ");
  EXPECT_EQ(names({"long-one"}, false), "long-one ");
  EXPECT_EQ(names({"all", "long-one"}, false), "elman-and long-one ");
  EXPECT_THROW(names({"long-one"}, true), Error) << "--slow would be ignored";
  try {
    names({"elman-adn"}, false);
    FAIL() << "a name that is not there was taken";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::invalid_argument);
    EXPECT_NE(std::string(e.what()).find("elman-and"), std::string::npos) << e.what();
  }
}

TEST(Lab, WordsFindWhatHasToDoWithThem) {
  std::vector<Experiment> list = {planted("rope-relative", Verdict::holds, measures_two),
                                  planted("other", Verdict::holds, measures_two),
                                  planted("long-one", Verdict::holds, measures_two)};
  list[1].title = "What RoPE is";
  list[2].claim = "thanks to rope";
  list[2].slow = true;
  const std::vector<std::string> word = {"RoPE"};
  const std::vector<const Experiment*> chosen = choose(list, word, false);
  ASSERT_EQ(chosen.size(), 2U);
  EXPECT_EQ(chosen[0]->name, "rope-relative");
  EXPECT_EQ(chosen[1]->name, "other");
  const std::vector<Match> matches = found_by(list, word);
  ASSERT_EQ(matches.size(), 1U);
  EXPECT_EQ(matches[0].word, "RoPE");
  ASSERT_EQ(matches[0].slow.size(), 1U) << "told, not run";
  EXPECT_EQ(matches[0].slow[0]->name, "long-one");
  const std::vector<std::string> name = {"other"}, slow = {"thanks"}, none = {"alibi"};
  EXPECT_TRUE(found_by(list, name).empty()) << "a name is no word";
  EXPECT_THROW(choose(list, slow, false), Error) << "found, but slow";
  EXPECT_THROW(choose(list, none, false), Error);
}

TEST(Lab, EveryExperimentNamesItsDocumentAndHasAFormulaThatCanBeSet) {
  std::set<std::string> used;
  for (const Experiment& e : experiments()) {
    const std::vector<std::string> named = documents_of(e);
    EXPECT_FALSE(named.empty()) << e.name;
    used.insert(named.begin(), named.end());
    if (!e.formula.empty()) {
      EXPECT_NO_THROW(report::formula(e.formula)) << e.name;
    }
  }
  EXPECT_EQ(used.size(), documents().size()) << "a document without a claim";
}

// A claim that is refuted shows what refutes it; one that holds shows nothing against it.
TEST(Lab, ChecksShowTheVerdict) {
  Findings refuted;
  refuted.control("sound", 1, Relation::less, 2);
  EXPECT_FALSE(refuted.checks()[0].contradicts());
  EXPECT_THROW(refuted.verdict(Verdict::refuted), Error) << "nothing speaks against it";
  EXPECT_TRUE(refuted.counter("it moves", 2, Relation::greater, 1));
  EXPECT_TRUE(refuted.checks()[1].contradicts());
  EXPECT_THROW(refuted.verdict(Verdict::holds), Error);
  refuted.verdict(Verdict::refuted);

  Findings holds;
  EXPECT_FALSE(holds.counter("it moves", 0, Relation::greater, 1));
  EXPECT_TRUE(holds.check("it stays", 0, Relation::less, 1));
  EXPECT_THROW(holds.verdict(Verdict::conditional), Error);
  holds.verdict(Verdict::holds);
}

TEST(Lab, ThePageTellsChecksOfTheClaimFromThoseOfTheMeasurement) {
  const std::vector<Experiment> list = {planted("right", Verdict::refuted, [](Findings& f) {
    f.control("sound", 1, Relation::less, 2);
    f.counter("W_q of look_back", 2, Relation::greater, 1);
    f.verdict(Verdict::refuted);
  })};
  const std::string page = outcomes_page(run_all(list));
  EXPECT_NE(page.find("class=\"contradicts\">✗ contradicts it"), std::string::npos);
  EXPECT_EQ(page.find("class=\"supports\""), std::string::npos) << "green beside refuted";
  EXPECT_NE(page.find("class=\"met\">yes"), std::string::npos);
  EXPECT_NE(page.find("W<sub>q</sub> of look_back"), std::string::npos);
}

TEST(Lab, ConditionsWithoutANumberAreNotMet) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Relation r : {Relation::less, Relation::at_most, Relation::greater, Relation::at_least,
                           Relation::equal}) {
    EXPECT_FALSE(is_true(nan, r, 1));
    EXPECT_FALSE(is_true(1, r, nan));
  }
  EXPECT_TRUE(is_true(1, Relation::at_most, 1));
  EXPECT_TRUE(is_true(1, Relation::at_least, 1));
  EXPECT_FALSE(is_true(1, Relation::less, 1));
  EXPECT_FALSE(is_true(1, Relation::greater, 1));
}

TEST(Lab, AKeyOrAVerdictIsGivenOnce) {
  Findings f;
  f.number("a", 1, "a");
  EXPECT_THROW(f.number("a", 1, "a"), Error);
  f.verdict(Verdict::holds);
  EXPECT_THROW(f.verdict(Verdict::holds), Error);
}

TEST(Lab, AControlThatIsNotMetLeavesNoVerdict) {
  const std::vector<Experiment> list = {planted("untrusted", Verdict::holds, [](Findings& f) {
    f.control("two is small", 2, Relation::less, 1);
    f.verdict(Verdict::holds);
  })};
  const std::vector<Outcome> outcomes = run_all(list);
  EXPECT_EQ(exit_status(outcomes), 1);
  EXPECT_FALSE(outcomes[0].findings.measured_verdict().has_value());
}

TEST(Lab, PagesAreInTheirLanguageAndEscaped) {
  const std::vector<Experiment> list = {planted("right", Verdict::refuted, measures_two)};
  const std::vector<Outcome> outcomes = run_all(list);
  const std::string english = outcomes_page(outcomes);
  const InChinese in_chinese;
  const std::string chinese = outcomes_page(outcomes);
  EXPECT_NE(english.find("<html lang=\"en\">"), std::string::npos);
  EXPECT_NE(english.find("a &lt; b &amp; c"), std::string::npos);
  EXPECT_FALSE(has_chinese(english));
  EXPECT_NE(chinese.find("<html lang=\"zh-CN\">"), std::string::npos);
  EXPECT_NE(chinese.find("不成立"), std::string::npos);
}

// Every width of the text before the marks puts the end of the line elsewhere among them.
TEST(Lab, LinesBeginWithNeitherPunctuationNorSpace) {
  std::vector<Experiment> list = {planted("right", Verdict::refuted, measures_two)};
  const std::string indent(13, ' ');
  std::size_t wrapped = 0;
  for (std::size_t before = 20; before < 60; ++before) {
    list[0].claim.clear();
    for (std::size_t i = 0; i < before; ++i) list[0].claim += "字";
    list[0].claim += "（甲）、「乙」：丙 float64 丁，戊。";
    std::istringstream lines(outcome_text(run_all(list)[0], false));
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with(indent)) continue;
      ++wrapped;
      for (const char* mark : {" ", "）", "、", "」", "：", "，", "。"})
        EXPECT_FALSE(line.substr(indent.size()).starts_with(mark)) << before << ": " << line;
      for (const char* mark : {"（", "「"}) EXPECT_FALSE(line.ends_with(mark)) << before;
    }
  }
  EXPECT_GT(wrapped, 30U) << "nothing was wrapped";
}

// The page is generated from a run; its numbers are that run's, but names and verdicts must be
// those of today: `heddle lab all --slow --markdown docs/lab.md` writes it anew.
TEST(Lab, TheDocumentationListsTheSameVerdicts) {
  std::string wanted, found;
  for (const Experiment& e : experiments())
    wanted += "| [" + e.name + "](#" + e.name + ")" + (e.slow ? " (slow)" : "") + " | " +
              words(e.expected) + " |\n";
  const std::string page = io::read_file(source_tree("docs/lab.md"), std::size_t{1} << 20U);
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| [")) continue;
    const std::size_t verdict = line.find("| ", 2);
    found += line.substr(0, line.find(" |", verdict + 2) + 2) + "\n";
  }
  EXPECT_EQ(found, wanted);
}

TEST(Lab, NumbersAreReadable) {
  EXPECT_EQ(number_text(1048576), "1048576");
  EXPECT_EQ(number_text(-0.0), "0");
  EXPECT_EQ(number_text(0.123456), "0.1235");
  EXPECT_EQ(number_text(12345.6), "12346") << "not 1.235e+04 beside 12346";
  EXPECT_EQ(number_text(1.5e-13), "1.5e-13");
  const auto measured = [](double value, const char* unit) {
    return measured_text({.key = "k", .value = value, .label = "l", .unit = unit});
  };
  EXPECT_EQ(measured(67633152, "bytes"), "67.6 MB");
  EXPECT_EQ(measured(256, "bytes"), "256 bytes");
  EXPECT_EQ(measured(1.25, "s"), "1.25 s");
  EXPECT_EQ(measured(7, ""), "7");
}

}  // namespace
}  // namespace heddle::lab
