// Everything that decoding needs besides the model and the caller's options.
#pragma once

#include <cstdint>
#include <vector>

#include "heddle/dtype.h"
#include "text/tokenizer.h"

namespace heddle::generate {

inline constexpr std::int64_t kDefaultTokens = 256;
inline constexpr std::int64_t kMostTokens = std::int64_t{1} << 24;

struct Decoding {
  const text::Tokenizer* tokenizer = nullptr;  // without one there is no text
  std::vector<std::int32_t> ends = {};         // each of these tokens ends a text
  DType precision = DType::f32;                // of activations
};

}  // namespace heddle::generate
