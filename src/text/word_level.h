// Tokenizers that look whole pieces of text up: characters, or words.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/bpe/flat_map.h"
#include "text/tokenizer.h"

namespace heddle::text {

enum class Unit : std::uint8_t { character, word };

class WordLevel final : public Tokenizer {
 public:
  // Pieces that are added tokens are found by their names in the text, never looked up. The text
  // must be UTF-8 either way.
  WordLevel(std::vector<Piece> pieces, std::vector<AddedToken> added, Unit unit,
            std::optional<std::int32_t> unknown);

  std::string_view kind() const override { return unit_ == Unit::character ? "char" : "word"; }
  std::string to_json() const override;

 protected:
  void encode_plain(std::string_view text, std::size_t offset,
                    std::vector<std::int32_t>& ids) const override;
  Cuts plain_cuts() const override {
    return unit_ == Unit::character ? Cuts::characters : Cuts::white_space;
  }

 private:
  void encode_characters(std::string_view text, std::size_t offset,
                         std::vector<std::int32_t>& ids) const;
  void encode_words(std::string_view text, std::size_t offset,
                    std::vector<std::int32_t>& ids) const;
  std::int32_t lookup(std::string_view piece, std::size_t offset) const;

  Unit unit_;
  FlatMap<std::string_view, std::int32_t> ids_;  // views into the pieces
  std::array<std::int32_t, 128> ascii_;          // ids of ASCII characters; -1: none
};

// Throws Error naming the first byte that is not UTF-8; `at` is added to its offset.
void check_utf8(std::string_view text, std::string_view where, std::size_t at = 0);

}  // namespace heddle::text
