#include "train/fine_tune.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <numeric>
#include <utility>

#include "heddle/error.h"
#include "io/files/file.h"
#include "io/safetensors/safetensors.h"
#include "language/language.h"
#include "run/recipe_file.h"
#include "run/run_directory.h"
#include "run/weights.h"

namespace heddle::train {

namespace {

using model::Task;

// For each row of the new tensor the old row that it takes over, or -1.
using RowMap = std::vector<std::int64_t>;

bool is_whole(const RowMap& map, std::int64_t old_rows) {
  if (static_cast<std::int64_t>(map.size()) != old_rows) return false;
  for (std::size_t i = 0; i < map.size(); ++i)
    if (map[i] != static_cast<std::int64_t>(i)) return false;
  return true;
}

template <class Key>
RowMap map_rows(const std::vector<Key>& before, const std::vector<Key>& now) {
  std::map<Key, std::int64_t> places;
  for (std::size_t i = 0; i < before.size(); ++i)
    places.emplace(before[i], static_cast<std::int64_t>(i));
  RowMap map;
  for (const Key& key : now) {
    const auto found = places.find(key);
    map.push_back(found == places.end() ? -1 : found->second);
  }
  return map;
}

// The identity of tokens: their text, and whether they are special.
std::vector<std::pair<bool, std::string>> tokens_of(const text::Tokenizer& tokenizer) {
  std::vector<std::pair<bool, std::string>> all;
  all.reserve(static_cast<std::size_t>(tokenizer.vocabulary()));
  for (std::int32_t id = 0; id < tokenizer.vocabulary(); ++id)
    all.emplace_back(tokenizer.is_special(id), tokenizer.decode(std::span(&id, 1)));
  return all;
}

RowMap map_positions(const model::ModelConfig& before, const model::ModelConfig& now) {
  // The class token stands in front of the others.
  const std::int64_t shift = (before.has_class_token() ? 1 : 0) - (now.has_class_token() ? 1 : 0);
  RowMap map(static_cast<std::size_t>(positions_of(now)));
  std::iota(map.begin(), map.end(), shift);
  if (now.has_class_token()) map[0] = before.has_class_token() ? 0 : -1;
  for (std::int64_t& row : map)
    if (row >= positions_of(before)) row = -1;
  return map;
}

bool predicts_labels(Task task) { return task == Task::tag || task == Task::classify; }

class Adoption {
 public:
  Adoption(const std::string& weights, const Knowledge& before, const Knowledge& now)
      : file_(weights), before_(before), now_(now) {
    run::check_weights(file_);
  }

  std::vector<std::string> run(nn::Parameters& parameters) {
    say_changed_keys();
    for (nn::Parameter& p : parameters.all()) take(p);
    for (const io::TensorEntry& entry : file_.entries()) {
      if (std::ranges::find(used_, entry.name) != used_.end()) continue;
      // Without a head of its own the new model has no place for the old one.
      if (!is_head(entry.name) && entry.name != "class_token")
        fail(ErrorCode::io, file_.path(),
             "tensor " + entry.name + " has no place in the new model");
      said_.push_back(tr("{}: left out, the new model has none", entry.name));
    }
    return std::move(said_);
  }

 private:
  static bool is_head(const std::string& name) { return name.starts_with("head."); }

  void say_changed_keys() {
    for (const recipe::Difference& d : differences(before_.recipe, now_.recipe))
      if (d.key.starts_with("model."))
        said_.push_back(tr("{} was {} and is {}", d.key, d.was(tr("absent")), d.is(tr("absent"))));
  }

  void take(nn::Parameter& p) {
    const bool known = file_.contains(p.name);
    if (known) used_.push_back(p.name);
    const Task task = now_.codec.task();
    if (is_head(p.name) && (!known || !same_head())) {
      said_.push_back(tr("{}: new, for the task {}", p.name, to_string(task)));
    } else if (p.name == "class_token" && !known) {
      said_.push_back(tr("{}: new", p.name));
    } else if (is_head(p.name) && predicts_labels(task)) {
      take_rows(p, map_rows(before_.codec.labels(), now_.codec.labels()), mark("labels"));
    } else if (is_head(p.name)) {
      take_tokens(p, task == Task::translate);
    } else if (p.name.ends_with("embed.weight")) {
      take_tokens(p, p.name.starts_with("decoder."));
    } else if (p.name.ends_with("position.weight") && !now_.codec.image()) {
      take_rows(p, map_positions(before_.recipe.model, now_.recipe.model), mark("positions"));
    } else {
      file_.load_into(p.name, p.tensor);
    }
  }

  bool same_head() const {
    const Task a = before_.codec.task(), b = now_.codec.task();
    // Both predict tokens of the one vocabulary there is.
    const auto by_token = [](Task t) { return t == Task::language || t == Task::masked; };
    return a == b || (by_token(a) && by_token(b));
  }

  void take_tokens(nn::Parameter& p, bool target) {
    const auto& before = target ? before_.codec.target() : before_.codec.source();
    const auto& now = target ? now_.codec.target() : now_.codec.source();
    take_rows(p, map_rows(tokens_of(before), tokens_of(now)), mark("tokens"));
  }

  void take_rows(nn::Parameter& p, const RowMap& map, const char* what) {
    const Tensor old = file_.load(p.name);
    const Shape &from = old.shape(), &to = p.tensor.shape();
    const bool fits = old.dtype() == p.tensor.dtype() && from.rank() == to.rank() &&
                      to[0] == static_cast<std::int64_t>(map.size()) &&
                      (from.rank() == 1 || from[1] == to[1]) &&
                      std::ranges::all_of(map, [&](std::int64_t row) { return row < from[0]; });
    if (!fits)
      fail(ErrorCode::shape_mismatch, file_.path(), "tensor " + p.name, p.tensor.describe(),
           old.describe());
    const std::size_t bytes = p.tensor.bytes() / map.size();
    const auto* source = static_cast<const char*>(old.raw());
    Tensor here = p.tensor.detach().to(Device::cpu);
    auto* destination = static_cast<char*>(here.mutable_raw());
    for (std::size_t i = 0; i < map.size(); ++i)
      if (map[i] >= 0)
        std::memcpy(destination + i * bytes, source + static_cast<std::size_t>(map[i]) * bytes,
                    bytes);
    overwrite(p.tensor, here);
    if (is_whole(map, from[0])) return;
    const auto fresh = std::ranges::count(map, std::int64_t{-1});
    const std::int64_t kept = static_cast<std::int64_t>(map.size()) - fresh;
    said_.push_back(tr("{}: {} of {} {} kept, {} new", p.name, kept, from[0], tr(what), fresh));
  }

  io::SafetensorsFile file_;
  Knowledge before_, now_;
  std::vector<std::string> used_, said_;
};

}  // namespace

std::vector<std::string> adopt_weights(const std::string& weights, const Knowledge& before,
                                       const Knowledge& now, nn::Parameters& parameters) {
  return Adoption(weights, before, now).run(parameters);
}

std::vector<std::string> adopt_run(const std::string& directory, const Knowledge& now,
                                   nn::Parameters& parameters) {
  const run::RunPaths paths{directory};
  if (!run::is_run(directory))
    fail(ErrorCode::io, directory, "is not the directory of a run",
         "train.from to be one, with a file recipe.toml");
  recipe::Recipe recipe = run::load_recipe(paths.recipe());
  const auto codec = data::Codec::load(directory);
  recipe.model.sizes = codec->sizes();
  return adopt_weights(paths.weights(), {recipe, *codec}, now, parameters);
}

}  // namespace heddle::train
