// The tokenizer that needs no training: a token is a byte.
#pragma once

#include <memory>

#include "text/tokenizer.h"

namespace heddle::text {

// Every text has tokens, and 256 of them are enough.
std::shared_ptr<const Tokenizer> bytes();

}  // namespace heddle::text
