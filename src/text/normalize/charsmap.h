// The normalizer that SentencePiece compiles into its models: a trie from spellings to their
// replacements.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "text/normalize/normalizer.h"

namespace heddle::text {

// How the map is asked. SentencePiece takes the longest key that the text begins with at each
// place; `tokenizers` asks for clusters (a letter with its marks) of at most five bytes, then for
// their characters. They differ for letters with several marks.
enum class CharsmapLookup : std::uint8_t { clusters, longest };

// Of a Precompiled normalizer in a tokenizer.json that was made of a SentencePiece file. Heddle's
// own: other readers pass over it.
inline constexpr std::string_view kLongestMatchKey = "heddle_longest_match";
// The same of bytes that are no UTF-8: each becomes U+FFFD.
inline constexpr std::string_view kReplaceBrokenKey = "heddle_replace_broken";

struct CharsmapOptions {
  CharsmapLookup lookup = CharsmapLookup::clusters;
  bool replace_broken = false;  // with CharsmapLookup::longest
};

// The bytes: length of the trie (u32), the trie (a double array of u32 units, as Darts-clone writes
// it), then the replacements, each ended by a zero. Throws Error, naming `where`, unless the sizes
// fit; places inside of the trie are checked when they are followed.
NormalizerPtr charsmap(std::string_view bytes, std::string_view where,
                       const CharsmapOptions& options = {});

// The bytes of base64 text, as tokenizer.json has them; throws Error for any other character.
std::string from_base64(std::string_view text, std::string_view where);
std::string to_base64(std::string_view bytes);

}  // namespace heddle::text
