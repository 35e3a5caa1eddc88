// A recipe: what a model is, what it learns from, and how. One TOML file with the tables [model],
// [data] and [train] (and [compare], where variants are worth comparing); strict: an unknown key, a
// value out of range or a combination that makes no sense is an Error that names it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/config.h"
#include "data/dataset.h"
#include "io/toml/key_places.h"
#include "io/toml/toml_value.h"
#include "model/config.h"
#include "recipe/train_config.h"
#include "recipe/unedited.h"

namespace heddle::io {
class TomlTable;
}

namespace heddle::recipe {

// The table [compare]: the keys that `heddle compare` varies by default. It says nothing about the
// model, and training does not use it.
struct ComparisonKeys {
  std::vector<std::string> vary = {};      // "model.norm=layer,rms", as after --vary
  std::optional<std::int64_t> seeds = {};  // of each variant
  std::string budget = {};                 // "steps=200", as after --budget; empty: train.steps

  bool empty() const { return vary.empty() && !seeds && budget.empty(); }
};

ComparisonKeys parse_compare(const io::TomlTable& table);

struct Recipe {
  // Without what the data decides: model.sizes is known when the data or the codec is.
  model::ModelConfig model;
  data::DataConfig data;
  TrainConfig train;
  ComparisonKeys compare;

  // The places of its keys.
  io::KeyPlaces places;

  // The whole as it is in force: overrides included, the keys of [train] complete, paths of files
  // that exist made absolute. "train.steps" -> 500.
  io::TomlValues keys;
  // The same as a file has it. load_recipe() of it gives the same text again.
  std::string toml;
};

// `overrides` are "key=value" as of --set: "train.steps=500", "model.norm=rms". Values are TOML;
// what is not (a bare word) is taken as a string. `varied` come on top of them and are named --vary
// in errors. A recipe that a run wrote has a seal (io/files/checksums/seal.h): one that was edited
// since is refused, with the key where `kept` tells what it was. run/recipe_file.h has a
// load_recipe() that asks the run's checkpoints; it is the one for files that people name.
Recipe load_recipe(const std::string& path, const std::vector<std::string>& overrides = {},
                   const std::vector<std::string>& varied = {}, const KeptText& kept = {});

// Of a text that load_recipe() gave as Recipe::toml. `where` is what errors name.
Recipe recipe_of_text(const std::string& toml, const std::string& where);

// Runs what may refuse keys of the recipe, and lets its errors name file and line of them.
template <class Body>
auto with_places(const Recipe& recipe, const Body& body) {
  try {
    return body();
  } catch (const KeyError& e) {
    throw recipe.places.placed(e);
  }
}

// data::open_dataset() of the recipe, with places. Without a codec, and without data.tokenizer
// where train.from is given, text becomes tokens as in the model that training begins with.
std::unique_ptr<data::Dataset> open_data(const Recipe& recipe,
                                         const data::OpenOptions& options = {});
// Gives the model the sizes that the data decides, and validates the whole.
void take_sizes(Recipe& recipe, const data::Dataset& data);

// A key that one of two recipes lacks, or that has another value there.
struct Difference {
  std::string key;
  std::optional<io::TomlValue> before, now;

  // The two as TOML has them.
  std::string was(const std::string& absent = "(absent)") const;
  std::string is(const std::string& absent = "(absent)") const;
};
std::vector<Difference> differences(const io::TomlValues& before, const io::TomlValues& now);
std::vector<Difference> differences(const Recipe& before, const Recipe& now);

// Whether a run that began with `before` may continue with `now` and be what it would have been
// from the start. Throws Error naming the first key that may not change. These may change:
// train.save_every, train.keep, train.log, train.shard, train.timeout and data.token_folder;
// train.steps may grow where the schedule does not depend on it (constant, inverse-sqrt); and files
// of data that are not where they were may be elsewhere (what is in them is compared later).
void check_resumable(const Recipe& before, const Recipe& now);

}  // namespace heddle::recipe
