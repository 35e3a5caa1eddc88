// The normalizer that SentencePiece compiles into its models: a trie from spellings to their
// replacements.
#pragma once

#include <string_view>

#include "text/normalize/normalizer.h"

namespace heddle::text {

// The bytes: length of the trie (u32), the trie (a double array of u32 units, as Darts-clone writes
// it), then the replacements, each ended by a zero. Throws Error, naming `where`, unless the sizes
// fit; places inside of the trie are checked when they are followed.
NormalizerPtr charsmap(std::string_view bytes, std::string_view where);

// The bytes of base64 text, as tokenizer.json has them; throws Error for any other character.
std::string from_base64(std::string_view text, std::string_view where);

}  // namespace heddle::text
