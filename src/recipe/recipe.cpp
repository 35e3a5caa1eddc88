#include "recipe/recipe.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <variant>

#include "data/keys.h"
#include "data/library/library.h"
#include "heddle/error.h"
#include "io/errors.h"
#include "io/toml/toml.h"
#include "io/utf8.h"
#include "model/parse/parse.h"
#include "recipe/begin_with.h"
#include "recipe/inherit.h"
#include "recipe/shipped/shipped.h"
#include "recipe/synonyms.h"

namespace heddle::recipe {

namespace {

namespace fs = std::filesystem;

// As data::resolve_path(), but what is not there stays as it is: a model is used in places where
// its training data is not.
std::string absolute(const std::string& path, const std::string& directory) {
  const auto found = data::find_path(directory, path);
  if (!found) return path;
  std::error_code error;
  std::string whole = fs::absolute(*found, error).lexically_normal().string();
  if (io::first_invalid_utf8(whole) != std::string::npos)
    fail(ErrorCode::invalid_argument, "recipe", "path of a file",
         "UTF-8: the run keeps its recipe with whole paths, and TOML is UTF-8", io::shown(whole));
  return whole;
}

// A base is chosen where the recipe is written: what an option or a run's own recipe says comes
// after it was read.
void refuse_base(const io::TomlTable& root) {
  for (const char* key : {"base", "without"})
    if (root.has(key))
      root.refuse(key, "it in the recipe's file, above the first table, and nowhere else");
}

// A [model] without a kind says what is different from the model that training begins with.
void complete_model(io::TomlDocument& document, const std::string& directory) {
  const io::TomlTable train = document.root().table("train");
  if (!train.has("from") || document.root().table("model").has("kind")) return;
  document.inherit(model_of(absolute(train.string("from"), directory), train.where("from")));
}

// Whether text becomes tokens as in the model that training begins with.
bool takes_codec(const Recipe& recipe) {
  return !recipe.train.from.empty() && recipe.data.tokenizer.empty() &&
         recipe.model.kind != model::Kind::vit;
}

void parse_tables(const io::TomlDocument& document, const std::string& directory, Recipe& recipe) {
  const io::TomlTable root = document.root();
  refuse_base(root);
  recipe.model = model::parse_model(root.table("model"));
  recipe.data = data::parse_data(root.table("data"), directory.empty() ? "." : directory);
  recipe.train = parse_train(root.table("train"));
  recipe.compare = parse_compare(root.table("compare"));
  document.finish();
  recipe.data.prompts = recipe.model.attention.prefix;
  data::validate(recipe.data, recipe.model.kind, recipe.model.task,
                 {.codec = !takes_codec(recipe)});
  // Before any data is read. The rest is known when its sizes are.
  model::ModelConfig model = recipe.model;
  model.sizes.context = recipe.data.context;
  model::validate_choices(model);
}

Recipe parse_document(io::TomlDocument& document, const std::string& directory) {
  Recipe recipe;
  io::KeyHabits habits = key_habits();
  for (const char* key : {"base", "without"})
    habits[key] = {key, "it stands above the first [table], at the top of the file"};
  document.expect_habits(habits);
  complete_model(document, directory);
  recipe.places = document.places();
  with_places(recipe, [&] { parse_tables(document, directory, recipe); });

  // A recipe says the same wherever it is read from.
  if (!recipe.train.from.empty()) recipe.train.from = absolute(recipe.train.from, directory);
  put_train(document, recipe.train);
  data::map_paths(document, [&recipe](const std::string& path) {
    return absolute(path, recipe.data.directory);
  });
  // It need not be there yet.
  document.map_strings("data.token_folder", [](const std::string& folder) {
    if (folder.empty()) return folder;
    std::error_code error;
    return fs::absolute(folder, error).lexically_normal().string();
  });
  recipe.keys = document.values();
  recipe.toml = document.text();
  return recipe;
}

}  // namespace

ComparisonKeys parse_compare(const io::TomlTable& table) {
  constexpr std::int64_t kMostSeeds = 1000;
  ComparisonKeys keys;
  keys.vary = table.strings_if("vary").value_or(std::vector<std::string>{});
  keys.seeds = table.integer_if("seeds", {1, kMostSeeds});
  keys.budget = table.string_or("budget", "");
  return keys;
}

Recipe load_recipe(const std::string& path, const std::vector<std::string>& overrides,
                   const std::vector<std::string>& varied, const KeptText& kept) {
  io::TomlDocument document = read_with_bases(path, kept);
  for (const std::string& assignment : overrides) document.apply(assignment);
  for (const std::string& assignment : varied) document.apply(assignment, "--vary");
  return parse_document(document, folder_of_recipe(path));
}

Recipe recipe_of_text(const std::string& toml, const std::string& where) {
  io::TomlDocument document = io::TomlDocument::parse(toml, where);
  return parse_document(document, "");
}

namespace {

std::shared_ptr<const data::Codec> codec_to_begin_with(const Recipe& recipe) {
  const std::string where = recipe.places.of("train.from");
  auto codec = codec_of(recipe.train.from, where);
  if (codec->task() != recipe.model.task)
    fail(ErrorCode::invalid_argument, where,
         "key data.tokenizer is missing: the model to begin with was made for another task",
         "a tokenizer, such as the path of that model's tokenizer.json",
         "a model for " + std::string(model::to_string(codec->task())));
  // As for a context that is longer than that of the model.
  return recipe.data.context > codec->max_tokens() ? codec->lengthened(recipe.data.context) : codec;
}

}  // namespace

std::unique_ptr<data::Dataset> open_data(const Recipe& recipe, const data::OpenOptions& options) {
  data::OpenOptions with = options;
  if (!with.codec && takes_codec(recipe)) with.codec = codec_to_begin_with(recipe);
  return with_places(recipe, [&] {
    return data::open_dataset(recipe.data, recipe.model.kind, recipe.model.task, with);
  });
}

void take_sizes(Recipe& recipe, const data::Dataset& data) {
  recipe.model.sizes = data.codec().sizes();
  with_places(recipe, [&] { model::validate(recipe.model); });
}

std::string Difference::was(const std::string& absent) const {
  return before ? io::toml_inline(*before) : absent;
}

std::string Difference::is(const std::string& absent) const {
  return now ? io::toml_inline(*now) : absent;
}

std::vector<Difference> differences(const io::TomlValues& before, const io::TomlValues& now) {
  std::vector<Difference> all;
  for (const auto& [key, value] : before) {
    const auto found = now.find(key);
    if (found == now.end())
      all.push_back({key, value, std::nullopt});
    else if (value != found->second)
      all.push_back({key, value, found->second});
  }
  for (const auto& [key, value] : now)
    if (!before.contains(key)) all.push_back({key, std::nullopt, value});
  return all;
}

std::vector<Difference> differences(const Recipe& before, const Recipe& now) {
  return differences(before.keys, now.keys);
}

namespace {

// The absolute paths that a value is: one string or an array of them; none where it is else.
std::vector<std::string> paths_in(const io::TomlValue& value) {
  std::vector<std::string> paths;
  const auto add = [&paths](const io::TomlValue& one) {
    const auto* path = std::get_if<std::string>(&one.data);
    if (path == nullptr || !path->starts_with("/")) return false;
    paths.push_back(*path);
    return true;
  };
  const auto* array = std::get_if<io::TomlArray>(&value.data);
  const bool all = array == nullptr ? add(value) : std::ranges::all_of(*array, add);
  return all ? paths : std::vector<std::string>();
}

// Files that are not where they were, and are at the new place.
bool has_moved(const Difference& d) {
  if (!d.key.starts_with("data.") || !d.before || !d.now) return false;
  const auto before = paths_in(*d.before), now = paths_in(*d.now);
  std::error_code error;
  const auto there = [&error](const std::string& path) { return fs::exists(path, error); };
  return !before.empty() && before.size() == now.size() && std::ranges::none_of(before, there) &&
         std::ranges::all_of(now, there);
}

}  // namespace

void check_resumable(const Recipe& before, const Recipe& now) {
  for (const Difference& d : differences(before, now)) {
    if (d.key.starts_with("compare.")) continue;  // not about this run
    // A run may go on on another device: what it has learned is the same, its last digits are not.
    if (d.key == "train.save_every" || d.key == "train.keep" || d.key == "train.log" ||
        d.key == "train.device" || d.key == "train.timeout" || d.key == "train.shard" ||
        d.key == "data.token_folder" || has_moved(d))
      continue;
    std::string expected = "the run's " + d.was();
    if (d.key == "train.steps") {
      const bool by_length =
          now.train.schedule == ScheduleKind::cosine || now.train.schedule == ScheduleKind::linear;
      if (!by_length && now.train.steps > before.train.steps) continue;
      expected += by_length ? " (the schedule goes by the number of steps)" : " or more";
    }
    fail(ErrorCode::invalid_argument, now.places.has(d.key) ? now.places.of(d.key) : "resume",
         "key " + d.key + " is not that of the run to go on with",
         expected +
             "; what it has learned goes on with another recipe by train.from and another --out",
         d.is());
  }
}

}  // namespace heddle::recipe
