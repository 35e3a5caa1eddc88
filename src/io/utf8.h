// Which bytes are UTF-8.
#pragma once

#include <cstddef>
#include <string_view>

namespace heddle::io {

// Bytes of the sequence that `text` begins with; 0 when it is not well-formed (overlong forms,
// surrogates, beyond U+10FFFF, cut short) or when there is no text.
std::size_t utf8_sequence(std::string_view text) noexcept;

// Offset of the first byte that does not belong to a well-formed sequence; npos when there is none.
std::size_t first_invalid_utf8(std::string_view text) noexcept;

}  // namespace heddle::io
