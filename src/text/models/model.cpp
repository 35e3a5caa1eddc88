#include "text/models/model.h"

#include <string>

#include "heddle/error.h"
#include "text/unicode.h"

namespace heddle::text {

std::size_t Model::part_end(std::string_view word, std::size_t /*at*/) const { return word.size(); }

void fail_unknown(std::string_view text, std::size_t offset) {
  constexpr std::size_t shown = 64;
  fail(ErrorCode::invalid_argument, "text",
       "the text at byte " + std::to_string(offset) +
           " is not in the vocabulary, which has no unknown token",
       {}, readable(text.substr(0, shown)));
}

}  // namespace heddle::text
