// A prompt, from text to what a language model reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "data/codec/codec.h"
#include "heddle/error.h"

namespace heddle::generate {

// One token or more. An empty text is the token that texts begin with, or the one between texts;
// Error where the tokenizer has neither. `where` names the prompt in errors.
std::vector<std::int32_t> prompt_tokens(const data::Codec& codec, std::string_view text,
                                        std::string_view where);

// Of many prompts: an error about number i says "prompt 3" where there was "prompt", or the room
// that did not suffice for it. What is wrong with options is no prompt's fault.
Error with_prompt_numbered(const Error& error, std::size_t i);

template <class Body>
auto numbering_prompt(std::size_t i, const Body& body) {
  try {
    return body();
  } catch (const Error& e) {
    throw with_prompt_numbered(e, i);
  }
}

}  // namespace heddle::generate
