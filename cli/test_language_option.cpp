// Who decides the language: the option, the variable, the locale, in this order.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "heddle/error.h"
#include "language_option.h"

namespace heddle::cli {
namespace {

using Variables = std::map<std::string, std::string>;

// With these variables and no others that would decide; they are put back.
class Environment {
 public:
  explicit Environment(const Variables& set) {
    for (const char* name : {"HEDDLE_LANG", "LC_ALL", "LC_MESSAGES", "LANG"}) {
      if (const char* value = std::getenv(name)) before_[name] = value;
      const auto at = set.find(name);
      at == set.end() ? unsetenv(name) : setenv(name, at->second.c_str(), 1);
    }
  }
  ~Environment() {
    for (const char* name : {"HEDDLE_LANG", "LC_ALL", "LC_MESSAGES", "LANG"}) {
      const auto at = before_.find(name);
      at == before_.end() ? unsetenv(name) : setenv(name, at->second.c_str(), 1);
    }
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  Variables before_;
};

Language chosen(std::vector<std::string> arguments, const Variables& set = {}) {
  const Environment environment(set);
  return chosen_language(arguments);
}

std::string language_refusal(std::vector<std::string> arguments, const Variables& set = {}) {
  try {
    chosen(std::move(arguments), set);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::invalid_argument);
    return e.what();
  }
  return "taken";
}

TEST(LanguageOption, TheOptionIsTakenWhereverItStands) {
  const Environment environment({});
  for (const std::vector<std::string>& given :
       {std::vector<std::string>{"--lang", "zh", "train", "my.toml"},
        {"train", "--lang=zh", "my.toml"},
        {"train", "my.toml", "--lang", "zh"}}) {
    std::vector<std::string> arguments = given;
    EXPECT_EQ(chosen_language(arguments), Language::chinese);
    EXPECT_EQ(arguments, (std::vector<std::string>{"train", "my.toml"}));
  }
  std::vector<std::string> plain = {"tokenize", "--", "--lang", "zh"};
  EXPECT_EQ(chosen_language(plain), Language::english);
  EXPECT_EQ(plain.size(), 4U) << "behind -- nothing is an option";
}

TEST(LanguageOption, OptionThenVariableThenLocale) {
  EXPECT_EQ(chosen({}), Language::english);
  EXPECT_EQ(chosen({}, {{"LANG", "zh_CN.UTF-8"}}), Language::chinese);
  EXPECT_EQ(chosen({}, {{"LC_MESSAGES", "en_GB.UTF-8"}, {"LANG", "zh_CN"}}), Language::english);
  EXPECT_EQ(chosen({}, {{"LC_ALL", "C"}, {"LC_MESSAGES", "zh_CN"}}), Language::english);
  EXPECT_EQ(chosen({}, {{"LC_ALL", ""}, {"LANG", "zh_TW.UTF-8"}}), Language::chinese);
  EXPECT_EQ(chosen({}, {{"HEDDLE_LANG", "en"}, {"LC_ALL", "zh_CN"}}), Language::english);
  EXPECT_EQ(chosen({"--lang", "en"}, {{"HEDDLE_LANG", "zh"}}), Language::english);
  EXPECT_EQ(chosen({"plan", "--json"}, {{"LANG", "zh_CN.UTF-8"}}), Language::english);
  EXPECT_EQ(chosen({"plan", "--json"}, {{"HEDDLE_LANG", "zh"}}), Language::chinese);
  EXPECT_EQ(chosen({"plan", "--json", "--lang", "zh"}), Language::chinese);
  EXPECT_EQ(chosen({}, {{"LANG", "de_DE.UTF-8"}}), Language::english) << "a locale is no wish";
}

TEST(LanguageOption, WhatIsNoLanguageIsRefusedWithWhatThereIs) {
  EXPECT_NE(language_refusal({"--lang", "fr"}).find("en (English) or zh (Chinese)"),
            std::string::npos);
  EXPECT_NE(language_refusal({"--lang", "fr"}).find("fr"), std::string::npos);
  const std::string variable = language_refusal({}, {{"HEDDLE_LANG", "chinese"}});
  EXPECT_NE(variable.find("HEDDLE_LANG"), std::string::npos) << variable;
  EXPECT_NE(variable.find("zh"), std::string::npos) << variable;
  EXPECT_NE(language_refusal({"train", "--lang"}).find("missing"), std::string::npos);
  EXPECT_NE(language_refusal({"--lang="}).find("no such language"), std::string::npos);
  EXPECT_NE(language_refusal({"--lang", "zh", "--lang", "en"}).find("twice"), std::string::npos);
}

}  // namespace
}  // namespace heddle::cli
