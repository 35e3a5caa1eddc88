// Prompt lookup: a text often repeats what it or its prompt has said (names, code, quotations). So
// what followed the last few tokens the last time is worth a guess.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace heddle::generate {

// The tokens, at most `most`, that followed the latest earlier place where the sequence's last
// three tokens were, or else its last two. Empty: there is none. A view of the sequence.
std::span<const std::int32_t> looked_up(std::span<const std::int32_t> sequence, std::size_t most);

}  // namespace heddle::generate
