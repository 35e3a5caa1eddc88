#include "generate/decode/lookup.h"

#include <algorithm>

namespace heddle::generate {

std::span<const std::int32_t> looked_up(std::span<const std::int32_t> sequence, std::size_t most) {
  for (const std::size_t length : {std::size_t{3}, std::size_t{2}}) {
    if (sequence.size() <= length) continue;
    const std::span<const std::int32_t> last = sequence.last(length);
    for (std::size_t end = sequence.size() - 1; end >= length; --end)
      if (std::ranges::equal(sequence.subspan(end - length, length), last))
        return sequence.subspan(end, std::min(most, sequence.size() - end));
  }
  return {};
}

}  // namespace heddle::generate
