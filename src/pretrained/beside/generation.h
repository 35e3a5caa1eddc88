// Tokens that generation needs, as the files beside a model say: generation_config.json, or
// config.json, where older files have the same keys.
#pragma once

#include <cstdint>
#include <vector>

#include "data/codec/codec.h"
#include "pretrained/load.h"
#include "text/tokenizer.h"

namespace heddle::pretrained {

// Tokens that end a text; from the tokenizer's files where these two say nothing.
std::vector<std::int32_t> ends_of(const Opened& opened, const text::Tokenizer& tokenizer);

// How a model that translates begins its texts, and which tokens it must not write. Throws Error
// naming file and key for what cannot be done, such as sequences of tokens that are forbidden.
data::Writing writing_of(const Opened& opened, const std::vector<std::int32_t>& ends);

}  // namespace heddle::pretrained
