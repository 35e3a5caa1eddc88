// Models that look words up: as they are, or by the longest pieces from the left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "text/models/byte_trie.h"
#include "text/models/model.h"
#include "text/models/vocabulary.h"

namespace heddle::text {

class WordPiece final : public Model {
 public:
  // Words of more characters are unknown, and so are those that have a part without piece. Pieces
  // that do not begin a word begin with `prefix`.
  WordPiece(const NameIds& ids, std::optional<std::int32_t> unknown, std::string_view prefix,
            std::size_t max_characters);

  void encode(std::string_view word, std::size_t offset,
              std::vector<std::int32_t>& ids) const override;

 private:
  bool append_pieces(std::string_view word, std::vector<std::int32_t>& ids) const;

  ByteTrie trie_;
  std::uint32_t inside_ = ByteTrie::kNowhere;  // the node behind the prefix
  std::optional<std::int32_t> unknown_;
  std::size_t max_characters_;
};

class WordLookup final : public Model {
 public:
  WordLookup(NameIds ids, std::optional<std::int32_t> unknown)
      : ids_(std::move(ids)), unknown_(unknown) {}

  void encode(std::string_view word, std::size_t offset,
              std::vector<std::int32_t>& ids) const override;

 private:
  NameIds ids_;
  std::optional<std::int32_t> unknown_;
};

}  // namespace heddle::text
