#include "base/number_text.h"

#include <array>
#include <charconv>

namespace heddle {

std::string number_text(double value) {
  std::array<char, 32> digits{};  // 24 at most
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  return {digits.data(), end};
}

}  // namespace heddle
