// How options are refused: the key, what it may be, what it was.
#pragma once

#include <string>
#include <string_view>

#include "heddle/error.h"

namespace heddle::nn {

inline void require(bool ok, std::string_view where, std::string_view key,
                    std::string_view expected, std::string_view got) {
  if (!ok) fail(ErrorCode::invalid_argument, where, "key " + std::string(key), expected, got);
}

inline void require(bool ok, std::string_view where, std::string_view key,
                    std::string_view expected, double got) {
  // Whole numbers without ".000000".
  const auto whole = static_cast<long long>(got > -1e15 && got < 1e15 ? got : 0);
  const bool is_whole = static_cast<double>(whole) == got;
  require(ok, where, key, expected, is_whole ? std::to_string(whole) : std::to_string(got));
}

}  // namespace heddle::nn
