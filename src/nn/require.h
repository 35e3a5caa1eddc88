// How options are refused: the key, what it may be, what it was.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/key_error.h"
#include "base/number_text.h"
#include "heddle/error.h"

namespace heddle::nn {

// The key that is refused. Where it is judged by other keys they follow it, so that an error can
// show all of them.
using Keys = std::initializer_list<std::string_view>;

[[noreturn]] inline void refuse(std::string_view where, std::vector<std::string> keys,
                                std::string_view expected, std::string_view got,
                                std::string_view remark = {}) {
  throw KeyError(std::string(where), std::move(keys), std::string(remark), std::string(expected),
                 std::string(got));
}

inline void require(bool ok, std::string_view where, Keys keys, std::string_view expected,
                    std::string_view got) {
  if (!ok) refuse(where, {keys.begin(), keys.end()}, expected, got);
}

inline void require(bool ok, std::string_view where, Keys keys, std::string_view expected,
                    double got) {
  if (!ok) require(false, where, keys, expected, number_text(got));
}

inline void require(bool ok, std::string_view where, std::string_view key,
                    std::string_view expected, std::string_view got) {
  if (!ok) require(false, where, Keys{key}, expected, got);
}

inline void require(bool ok, std::string_view where, std::string_view key,
                    std::string_view expected, double got) {
  if (!ok) require(false, where, Keys{key}, expected, number_text(got));
}

}  // namespace heddle::nn
