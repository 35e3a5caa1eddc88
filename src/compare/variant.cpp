#include "compare/variant.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>

#include "heddle/error.h"
#include "run/recipe_file.h"

namespace heddle::compare {

namespace {

constexpr std::int64_t kCurvePoints = 40;  // at least, where there are as many steps

struct Fixed {
  const char* key;
  const char* instead;
};
// Keys that are the same for all variants, by the meaning of a comparison.
constexpr const char* kNotPartOfTheModel =
    "keys that change what is trained; it may be the same for all: --set";
constexpr std::array<Fixed, 13> kFixed = {
    {{"train", "its keys one by one: train.batch=32,64"},
     {"train.steps", "--budget steps=N: all variants may spend the same"},
     {"train.seed", "--seeds N: every variant is trained with the same seeds"},
     {"train.patience", "no early stopping: all variants may spend the same"},
     {"train.eval_every", kNotPartOfTheModel},
     {"train.eval_batches", kNotPartOfTheModel},
     {"train.save_every", kNotPartOfTheModel},
     {"train.keep", kNotPartOfTheModel},
     {"train.log_every", kNotPartOfTheModel},
     {"train.log", kNotPartOfTheModel},
     {"compare", "--seeds N and --budget steps=N: they are the same for all variants"},
     {"compare.seeds", "--seeds N: every variant is trained with the same seeds"},
     {"compare.budget", "--budget steps=N: all variants may spend the same"}}};

void check_key(const std::string& key) {
  if (key.starts_with("data.") || key == "data")
    fail(ErrorCode::invalid_argument, "--vary", "key " + key,
         "keys of [model] and [train]: losses on other data cannot be compared");
  for (const Fixed& fixed : kFixed)
    if (key == fixed.key) fail(ErrorCode::invalid_argument, "--vary", "key " + key, fixed.instead);
  if (key.starts_with("compare."))
    fail(ErrorCode::invalid_argument, "--vary", "key " + key, "keys of [model] and [train]");
}

std::string key_of(const std::string& assignment) {
  std::string key = assignment.substr(0, assignment.find('='));
  std::erase_if(key, [](char c) { return c == ' ' || c == '\t'; });
  return key;
}

// A key that is set for all and then varies would be ignored.
void check_not_set(const std::vector<std::string>& set, const std::string& varied) {
  for (const std::string& text : set) {
    const std::string key = key_of(text);
    if (key == varied || key.starts_with(varied + "."))
      fail(ErrorCode::invalid_argument, "--set " + text, "key " + varied + " is varied",
           "either one value with --set, or several with --vary");
  }
}

std::string stem(const std::string& file) { return std::filesystem::path(file).stem().string(); }

// Letters, digits and what is harmless in a path.
std::string folder_of(const std::string& name) {
  std::string folder;
  for (const char c : name) {
    if (c == ' ') continue;
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0;
    folder += plain || std::string_view("=,._+-").find(c) != std::string_view::npos ? c : '-';
  }
  if (folder.empty() || folder.front() == '.' || folder.front() == '-') folder = "v" + folder;
  constexpr std::size_t kLongest = 120;
  return folder.substr(0, kLongest);
}

// The same values twice are two variants: that is how the comparison itself is put to the test.
void make_unique(std::vector<Variant>& variants) {
  const auto rename = [&variants](std::string Variant::* part, const char* mark) {
    for (std::size_t i = 0; i < variants.size(); ++i) {
      const std::string plain = variants[i].*part;
      const auto taken = [&](const std::string& text) {
        return std::any_of(variants.begin(), variants.begin() + static_cast<std::ptrdiff_t>(i),
                           [&](const Variant& v) { return v.*part == text; });
      };
      for (int n = 2; taken(variants[i].*part); ++n)
        variants[i].*part = plain + mark + std::to_string(n);
    }
  };
  rename(&Variant::name, " #");
  rename(&Variant::folder, "+");
}

bool is_housekeeping(const std::string& key) {
  return key.starts_with("compare.") || key == "train.steps" || key == "train.seed" ||
         key == "train.save_every" || key == "train.keep" || key == "train.log_every" ||
         key == "train.log";
}

Variant further(const ComparisonSpec& spec, const std::string& file, const recipe::Recipe& base) {
  Variant v{.name = stem(file),
            .folder = {},
            .place = "variant " + stem(file) + " of --also",
            .file = file,
            .common = spec.set,
            .set = {},
            .whole_recipe = true,
            .recipe = run::load_recipe(file, spec.set)};
  for (const recipe::Difference& d : differences(base, v.recipe)) {
    if (is_housekeeping(d.key)) continue;
    if (d.key.starts_with("data."))
      fail(ErrorCode::invalid_argument, "--also " + file, "key " + d.key,
           "the data of the other variants: " + d.was(), d.is());
    v.set.push_back({d.key, d.is("default")});
  }
  return v;
}

void check(const std::vector<Variant>& variants) {
  if (variants.size() < 2)
    fail(ErrorCode::invalid_argument, "compare", "there is nothing to compare",
         "--vary key=a,b with two values or more, --also other.toml, or a recipe with [compare]",
         std::to_string(variants.size()) + " variant");
  for (const Variant& v : variants) {
    if (v.recipe.train.patience)
      fail(ErrorCode::invalid_argument, "variant " + v.name, "key train.patience",
           "no early stopping: all variants may spend the same");
    if (v.recipe.model.task != variants[0].recipe.model.task)
      fail(ErrorCode::invalid_argument, "variant " + v.name, "has another task",
           "the task of " + variants[0].name);
  }
}

}  // namespace

std::vector<Variant> make_variants(const ComparisonSpec& spec) {
  const recipe::Recipe base = run::load_recipe(spec.recipe, spec.set);
  std::vector<Variation> variations;
  const auto& texts = spec.vary.empty() ? base.compare.vary : spec.vary;
  for (const std::string& text : texts) {
    variations.push_back(parse_variation(text));
    check_key(variations.back().key);
    check_not_set(spec.set, variations.back().key);
  }
  const std::string source = spec.vary.empty() ? base.places.of("compare.vary") : "--vary";
  std::vector<Variant> all;
  for (const std::vector<Assignment>& combination : combinations(variations)) {
    std::vector<std::string> varied;
    varied.reserve(combination.size());
    for (const Assignment& a : combination) varied.push_back(a.text());
    const std::string name = combination.empty() ? stem(spec.recipe) : name_of(combination);
    std::string place = "variant ";
    place.append(name).append(" of ").append(source);
    all.push_back({.name = name,
                   .folder = {},
                   .place = place,
                   .file = spec.recipe,
                   .common = spec.set,
                   .set = combination,
                   .recipe = of_variant(
                       place, [&] { return run::load_recipe(spec.recipe, spec.set, varied); })});
  }
  for (const std::string& file : spec.also) all.push_back(further(spec, file, base));
  check(all);
  for (Variant& v : all) v.folder = folder_of(v.name);
  make_unique(all);
  return all;
}

// "--vary model.width" says nothing that the variant's name and the key do not.
void refuse_variant(const std::string& place, const Error& e) {
  const bool varied = e.where().starts_with("--vary ");
  throw Error(e.code(), varied || e.where().empty() ? place : place + ": " + e.where(), e.problem(),
              e.expected(), e.got());
}

bool sets(const std::vector<std::string>& set, const std::string& key) {
  return std::ranges::any_of(set, [&](const std::string& text) { return key_of(text) == key; });
}

recipe::Recipe recipe_of(const Variant& variant, std::int64_t steps, std::int64_t seed) {
  std::vector<std::string> set = variant.common, varied;
  const std::int64_t log_every =
      std::clamp<std::int64_t>(steps / kCurvePoints, 1, variant.recipe.train.log_every);
  set.push_back("train.steps=" + std::to_string(steps));
  set.push_back("train.seed=" + std::to_string(seed));
  set.push_back("train.log_every=" + std::to_string(log_every));
  if (!sets(variant.common, "train.keep")) set.emplace_back("train.keep=1");
  if (!variant.whole_recipe)
    for (const Assignment& a : variant.set) varied.push_back(a.text());
  return run::load_recipe(variant.file, set, varied);
}

}  // namespace heddle::compare
