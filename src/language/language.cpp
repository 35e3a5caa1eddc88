#include "language/language.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "language/catalogue.h"
#include "language/po.h"

namespace heddle {

namespace {

std::atomic<Language> chosen_language{Language::english};

const po::Texts& chinese_texts() {
  static const po::Texts texts = [] {
    std::string whole;
    for (const std::string_view piece : po::kChinese) whole += piece;
    return po::read(whole, "po/zh_CN.po");
  }();
  return texts;
}

struct Notes {
  std::mutex guard;
  bool wanted = false;
  std::vector<std::string> texts;
};

Notes& notes() {
  static Notes all;
  return all;
}

void note(std::string_view english) {
  Notes& all = notes();
  const std::lock_guard lock(all.guard);
  if (all.wanted && std::find(all.texts.begin(), all.texts.end(), english) == all.texts.end())
    all.texts.emplace_back(english);
}

}  // namespace

Language language() { return chosen_language.load(std::memory_order_relaxed); }

void set_language(Language language) { chosen_language.store(language, std::memory_order_relaxed); }

std::optional<Language> language_named(std::string_view name) {
  const std::string_view primary = name.substr(0, name.find_first_of("-_.@"));
  if (primary == "zh") return Language::chinese;
  if (primary == "en" || primary == "C" || primary == "POSIX") return Language::english;
  return std::nullopt;
}

std::string_view tag_of(Language language) {
  return language == Language::english ? "en" : "zh-CN";
}

std::string tr(std::string_view english) {
  if (language() == Language::english) return std::string(english);
  const po::Texts& texts = chinese_texts();
  const auto at = texts.find(english);
  if (at != texts.end()) return at->second;
  note(english);
  return std::string(english);
}

UntranslatedTexts::UntranslatedTexts() {
  const std::lock_guard lock(notes().guard);
  notes().wanted = true;
  notes().texts.clear();
}

UntranslatedTexts::~UntranslatedTexts() {
  const std::lock_guard lock(notes().guard);
  notes().wanted = false;
}

std::vector<std::string> UntranslatedTexts::found() const {
  const std::lock_guard lock(notes().guard);
  return notes().texts;
}

}  // namespace heddle
