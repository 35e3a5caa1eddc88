// A prompt, from text to what a language model reads.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "data/codec/codec.h"

namespace heddle::generate {

// One token or more. An empty text is the token that texts begin with, or the one between texts;
// Error where the tokenizer has neither. `where` names the prompt in errors.
std::vector<std::int32_t> prompt_tokens(const data::Codec& codec, std::string_view text,
                                        std::string_view where);

}  // namespace heddle::generate
