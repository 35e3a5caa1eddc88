// How options are refused: the key, what it may be, what it was.
#pragma once

#include <string>
#include <string_view>

#include "base/number_text.h"
#include "heddle/error.h"

namespace heddle::nn {

inline void require(bool ok, std::string_view where, std::string_view key,
                    std::string_view expected, std::string_view got) {
  if (!ok) fail(ErrorCode::invalid_argument, where, "key " + std::string(key), expected, got);
}

inline void require(bool ok, std::string_view where, std::string_view key,
                    std::string_view expected, double got) {
  if (!ok) require(false, where, key, expected, number_text(got));
}

}  // namespace heddle::nn
