// Whether this program runs under a sanitizer: g++ defines a macro of its own for each, clang
// answers
// __has_feature.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define HEDDLE_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HEDDLE_ADDRESS_SANITIZER 1
#endif
#endif
#ifndef HEDDLE_ADDRESS_SANITIZER
#define HEDDLE_ADDRESS_SANITIZER 0
#endif

#if defined(__SANITIZE_THREAD__)
#define HEDDLE_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HEDDLE_THREAD_SANITIZER 1
#endif
#endif
#ifndef HEDDLE_THREAD_SANITIZER
#define HEDDLE_THREAD_SANITIZER 0
#endif

// Both keep what was freed and have memory of their own, so that what a process takes says nothing.
#define HEDDLE_SANITIZED_MEMORY (HEDDLE_ADDRESS_SANITIZER || HEDDLE_THREAD_SANITIZER)

namespace heddle {

// The address sanitizer sees a use after free only if freed blocks are really freed.
inline constexpr bool kRecycles = HEDDLE_ADDRESS_SANITIZER == 0;

}  // namespace heddle
