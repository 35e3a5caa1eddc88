// Documents that are JSON lines: {"text": "…"}, one a line.
#pragma once

#include <string>

#include "data/text/text_shares.h"
#include "data/text/text_stream.h"

namespace heddle::data {

// Lines of objects become the strings that they have under the key. Lines of white space alone are
// none. Error naming file and line of one that has no such string.
void take_field(TextShare& share, const std::string& field, const TextStream& stream);

}  // namespace heddle::data
