// Finds the tokens of one word.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "text/bpe/word_cache.h"

namespace heddle::text {

// Memory of one call of encode, kept for the next one.
struct WordWorkspace {
  WordCache cache;
  std::vector<std::int32_t> word;
};

class Model {
 public:
  Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  virtual ~Model() = default;

  // Appends the ids of a word, which is not empty. Throws Error where it has none, naming the byte
  // `offset` of the text that the word stands at.
  virtual void encode(std::string_view word, std::size_t offset,
                      std::vector<std::int32_t>& ids) const = 0;

  // Where the word may be cut in two whose tokens are the tokens of the whole: the end of the first
  // part, or the end of the word.
  virtual std::size_t part_end(std::string_view word, std::size_t at) const;
};

using ModelPtr = std::unique_ptr<const Model>;

// The error of a text that a model without unknown token has no tokens for.
[[noreturn]] void fail_unknown(std::string_view text, std::size_t offset);

}  // namespace heddle::text
