#include "train/fine_tune/fine_tune.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <numeric>
#include <utility>

#include "heddle/error.h"
#include "language/language.h"
#include "nn/finite.h"
#include "ops/copy/copy.h"
#include "pretrained/load.h"
#include "recipe/begin_with.h"
#include "run/recipe_file.h"
#include "run/run_directory.h"
#include "train/fine_tune/old_weights.h"

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
  // Learned tokens stand in front of the others.
  const std::int64_t shift = before.tokens_before() - now.tokens_before();
  RowMap map(static_cast<std::size_t>(positions_of(now)));
  std::iota(map.begin(), map.end(), shift);
  for (std::int64_t i = 0; i < now.tokens_before(); ++i) map[static_cast<std::size_t>(i)] = -1;
  if (now.has_class_token() && before.has_class_token()) map[0] = 0;
  for (std::int64_t& row : map)
    if (row >= positions_of(before)) row = -1;
  return map;
}

bool predicts_labels(Task task) { return task == Task::tag || task == Task::classify; }

class Adoption {
 public:
  Adoption(const OldWeights& old, const Knowledge& before, const Knowledge& now)
      : old_(old), before_(before), now_(now) {}

  std::vector<std::string> run(nn::Parameters& parameters) {
    say_changed_keys();
    for (nn::Parameter& p : parameters.all()) take(p);
    for (const std::string& name : old_.names()) {
      if (std::ranges::find(used_, name) != used_.end()) continue;
      // Without a head of its own the new model has no place for the old one.
      if (!is_head(name) && !is_before(name))
        fail(ErrorCode::io, old_.where(), "tensor " + name + " has no place in the new model");
      said_.push_back(tr("{}: left out, the new model has none", name));
    }
    return std::move(said_);
  }

 private:
  static bool is_head(const std::string& name) { return name.starts_with("head."); }
  // In front of a sequence: a model may have them or not.
  static bool is_before(const std::string& name) {
    return name == "class_token" || name == "extra_tokens";
  }

  void say_changed_keys() {
    for (const recipe::Difference& d : differences(before_.recipe, now_.recipe))
      if (d.key.starts_with("model."))
        said_.push_back(tr("{} was {} and is {}", d.key, d.was(tr("absent")), d.is(tr("absent"))));
  }

  void take(nn::Parameter& p) {
    const bool known = std::ranges::find(old_.names(), p.name) != old_.names().end();
    if (known) used_.push_back(p.name);
    const Task task = now_.codec.task();
    if (is_head(p.name) && (!known || !same_head())) {
      said_.push_back(tr("{}: new, for the task {}", p.name, to_string(task)));
    } else if (is_before(p.name) && !known) {
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
      take_whole(p);
    }
  }

  Tensor load(const nn::Parameter& p) const {
    Tensor old = old_.load(p.name);
    return old.dtype() == p.tensor.dtype() ? old : ops::cast(old, p.tensor.dtype());
  }

  [[noreturn]] void refuse_shape(const nn::Parameter& p, const Tensor& old) const {
    fail(ErrorCode::shape_mismatch, old_.where(), "tensor " + p.name, p.tensor.describe(),
         old.describe());
  }

  void take_whole(nn::Parameter& p) const {
    const Tensor old = load(p);
    if (old.shape() != p.tensor.shape()) refuse_shape(p, old);
    overwrite(p.tensor, old);
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
    // Not token by token: the texts of two may be the same, and tables may have rows without one.
    if (before.to_json() == now.to_json()) return take_whole(p);
    take_rows(p, map_rows(tokens_of(before), tokens_of(now)), mark("tokens"));
  }

  void take_rows(nn::Parameter& p, const RowMap& map, const char* what) {
    const Tensor old = load(p);
    const Shape &from = old.shape(), &to = p.tensor.shape();
    const bool fits = from.rank() == to.rank() && to[0] == static_cast<std::int64_t>(map.size()) &&
                      (from.rank() == 1 || from[1] == to[1]) &&
                      std::ranges::all_of(map, [&](std::int64_t row) { return row < from[0]; });
    if (!fits) refuse_shape(p, old);
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

  const OldWeights& old_;
  Knowledge before_, now_;
  std::vector<std::string> used_, said_;
};

}  // namespace

std::vector<std::string> adopt_weights(const OldWeights& old, const Knowledge& before,
                                       const Knowledge& now, nn::Parameters& parameters) {
  return Adoption(old, before, now).run(parameters);
}

namespace {

std::vector<std::string> adopt_run(const std::string& directory, const Knowledge& now,
                                   nn::Parameters& parameters) {
  const run::RunPaths paths{directory};
  recipe::Recipe recipe = run::load_recipe(paths.recipe());
  const auto codec = data::Codec::load(directory);
  recipe.model.sizes = codec->sizes();
  return adopt_weights(WeightsOfRun(paths.weights()), {recipe, *codec}, now, parameters);
}

std::vector<std::string> adopt_pretrained(const std::string& path, const Knowledge& now,
                                          nn::Parameters& parameters) {
  const pretrained::Opened opened = pretrained::open(path);
  const auto codec = pretrained::codec_of(opened);
  recipe::Recipe recipe;
  recipe.model = opened.config;
  recipe.keys = recipe::model_of(path, path).values();
  WeightsOfOthers weights(opened);
  auto said = adopt_weights(weights, {recipe, *codec}, now, parameters);
  weights.finish();
  nn::check_parameters(parameters, weights.where());
  return said;
}

}  // namespace

std::vector<std::string> adopt(const std::string& from, const Knowledge& now,
                               nn::Parameters& parameters) {
  if (run::is_run(from)) return adopt_run(from, now, parameters);
  if (pretrained::is_pretrained(from)) return adopt_pretrained(from, now, parameters);
  fail(ErrorCode::io, from, "is not the directory of a run",
       "train.from to be one, with a file recipe.toml, or a model that others trained: a directory "
       "with a config.json, or a .gguf file");
}

}  // namespace heddle::train
