// The names of special tokens in files that Heddle writes, and that it looks for in others.
#pragma once

#include <string_view>

namespace heddle::text {

inline constexpr std::string_view kPadName = "<pad>";
inline constexpr std::string_view kBeginName = "<s>";
inline constexpr std::string_view kEndName = "</s>";
inline constexpr std::string_view kUnknownName = "<unk>";
inline constexpr std::string_view kMaskName = "<mask>";

}  // namespace heddle::text
