// The Unicode that normalizers of others know. Hugging Face's `tokenizers` decides by tables of
// Unicode 9 what is a mark, punctuation or a control character and how characters are composed: a
// model was trained on what came out of that, so younger characters are nothing to them here too.
#pragma once

#include <cstdint>

namespace heddle::text {

// Whether the character is younger than those tables, and would be changed if it were not.
bool is_unknown_to_normalizers(std::int32_t code_point) noexcept;

// is_mark(), is_nonspacing_mark(), is_control() and is_punctuation() of unicode.h, as of that
// older Unicode.
bool is_older_mark(std::int32_t code_point) noexcept;
bool is_older_nonspacing_mark(std::int32_t code_point) noexcept;
bool is_older_control(std::int32_t code_point) noexcept;
bool is_older_punctuation(std::int32_t code_point) noexcept;

}  // namespace heddle::text
