// A model of others in words and numbers, without its weights in memory.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "pretrained/load.h"

namespace heddle::pretrained {

struct TypeFacts {
  std::int64_t tensors = 0;
  std::uint64_t bytes = 0;
};

struct Facts {
  std::string family;
  std::int64_t parameters = 0;
  // Choices of the grammar by the keys of recipes: {"attention.heads", "9"}.
  std::vector<std::pair<std::string, std::string>> choices;
  std::map<std::string, TypeFacts> types;  // of the weights in the files: "Q4_1"
  std::string tokenizer;                   // its kind; empty where it is refused
  std::int64_t tokens = 0;                 // of the tokenizer; the model's table may have more rows
  std::vector<std::string> templates;      // for conversations, by name
  std::string refusal;                     // why the tokenizer cannot be used
};

Facts facts_of(const Opened& opened);

}  // namespace heddle::pretrained
