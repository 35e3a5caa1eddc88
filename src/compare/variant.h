// The variants of a comparison: every combination of what varies, and further recipes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compare/grid.h"
#include "heddle/error.h"
#include "recipe/recipe.h"

namespace heddle::compare {

// The request. Empty or absent: as the recipe's [compare] says.
struct ComparisonSpec {
  std::string recipe;
  std::vector<std::string> set = {};   // "key=value", for all variants
  std::vector<std::string> vary = {};  // "key=a,b,c"
  std::vector<std::string> also = {};  // recipes that are variants too
  std::optional<std::int64_t> seeds = {};
  std::string budget = {};
  std::string out;
};

struct Variant {
  std::string name;                 // "kv_heads=2, position=rope"
  std::string folder;               // the same, fit for a path
  std::string place;                // for errors: "variant kv_heads=2 of --vary"
  std::string file;                 // its recipe,
  std::vector<std::string> common;  // keys set in all variants,
  std::vector<Assignment> set;      // and what sets this one apart
  bool whole_recipe = false;        // of `also`: `set` only tells the differences
  recipe::Recipe recipe;            // as written; steps and seed are the comparison's
};

// All of them, loaded and checked: at least two, on the same data and for the same task. Errors
// name the variant or the key and what to write instead.
std::vector<Variant> make_variants(const ComparisonSpec& spec);

// Rethrows an exception raised while working on a variant, with its place in front.
[[noreturn]] void refuse_variant(const std::string& place, const Error& error);

// Runs what may refuse a variant.
template <class Body>
auto of_variant(const std::string& place, const Body& body) {
  try {
    return body();
  } catch (const Error& e) {
    refuse_variant(place, e);
  }
}

// Whether "key=value"s of --set name this key.
bool sets(const std::vector<std::string>& set, const std::string& key);

// The recipe of one run of a variant. Of its checkpoints the newest stays, unless --set train.keep
// asks for more: there are many runs on one disk.
recipe::Recipe recipe_of(const Variant& variant, std::int64_t steps, std::int64_t seed);

}  // namespace heddle::compare
