// The places of a recipe's keys, for errors that are found after it was read.
#pragma once

#include <map>
#include <string>

#include "base/key_error.h"

namespace heddle::io {

class KeyPlaces {
 public:
  KeyPlaces() = default;
  // `places`: "model.attention.heads" -> "recipe.toml:12" or "--set model.attention.heads"; tables
  // are keys too.
  KeyPlaces(std::string file, std::map<std::string, std::string> places);

  bool has(const std::string& key) const { return places_.contains(key); }
  // For a missing key: the table that it would be in, or the file.
  std::string of(const std::string& key) const;

  // The error with the place of the refused key at the front, and those of the other keys that are
  // given at the end.
  Error placed(const KeyError& error) const;

 private:
  std::string file_;
  std::map<std::string, std::string> places_;
};

}  // namespace heddle::io
