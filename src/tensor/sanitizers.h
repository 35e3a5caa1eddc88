// Annotations for the address sanitizer, needed by code that keeps freed memory for reuse.
#pragma once

namespace heddle {

// It sees a use after free only if freed blocks are really freed.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kRecycles = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool kRecycles = false;
#else
inline constexpr bool kRecycles = true;
#endif
#else
inline constexpr bool kRecycles = true;
#endif

}  // namespace heddle
