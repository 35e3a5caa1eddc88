#include "data/order/draw.h"

#include <numeric>
#include <string>
#include <utility>

#include "heddle/error.h"

namespace heddle::data {

RandomKey stream_key(std::uint64_t seed, std::int64_t step, Stream stream) {
  if (step < 0 || step > std::int64_t{0xffffffff})
    fail(ErrorCode::out_of_range, "data", "step or epoch", "0 to 4294967295", std::to_string(step));
  return {seed, static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(stream)};
}

std::uint64_t draw(const RandomKey& key, std::uint64_t index, std::uint64_t below) {
  const PhiloxBlock block = philox(key, index / 2);
  const std::size_t half = 2 * (index % 2);
  const std::uint64_t bits = (std::uint64_t{block[half + 1]} << 32) | block[half];
  // The upper half of bits · below: uniform to one part in 2^64 / below.
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((Wide{bits} * below) >> 64);
}

std::vector<std::int64_t> permutation(std::int64_t count, const RandomKey& key) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), std::int64_t{0});
  for (std::size_t last = numbers.size(); last > 1; --last)
    std::swap(numbers[last - 1], numbers[draw(key, last, last)]);
  return numbers;
}

}  // namespace heddle::data
