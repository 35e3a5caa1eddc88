// Where a text is cut into pieces that are encoded one by one.
#pragma once

#include <cstddef>
#include <string_view>

#include "text/tokenizer.h"

namespace heddle::text {

// The first place at or behind `from`, and inside of the text, that cuts it as Tokenizer::cuts()
// says; text.size() where there is none.
std::size_t find_cut(std::string_view text, std::size_t from, Cuts cuts) noexcept;

}  // namespace heddle::text
