// tokenizer.json, as Hugging Face's `tokenizers` reads it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "text/bpe/byte_bpe.h"
#include "text/tokenizer.h"
#include "text/word_level.h"

namespace heddle::text {

// The pattern that cuts text into characters.
inline constexpr std::string_view kAnyCharacter = "[\\s\\S]";

std::string bpe_json(std::span<const Piece> pieces, std::span<const AddedToken> added,
                     const BpeModel& model);
std::string word_level_json(std::span<const Piece> pieces, std::span<const AddedToken> added,
                            Unit unit, std::optional<std::int32_t> unknown);

}  // namespace heddle::text
