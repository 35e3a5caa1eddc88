// How byte-level tokenizers write bytes in tokenizer.json: each byte is one printable character.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace heddle::text {

// The bytes 33..126, 161..172 and 174..255 are written as the code points of the same value, the
// others, in order, as 256, 257, ...: the alphabet of GPT-2.
std::string byte_name(std::uint8_t byte);

// Names of all bytes, one after the other.
std::string byte_names(std::string_view bytes);

// Bytes of a token's name; nothing when a character of it is not in the alphabet.
std::optional<std::string> bytes_of_names(std::string_view name);

// All bytes, in order of their characters: '!' first. The ids of GPT-2, and of all BPE tokenizers
// made here, start with these.
std::array<std::uint8_t, 256> bytes_by_name();

}  // namespace heddle::text
