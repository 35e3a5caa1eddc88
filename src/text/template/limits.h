// How much a template may cost. Templates come with models, from anybody: none may loop for ever,
// fill the memory or overflow the stack, however it is written.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heddle::text::chat {

struct Limits {
  std::size_t source_bytes = std::size_t{1} << 20;
  std::size_t depth = 200;                            // of the source: blocks, brackets, chains
  std::size_t run_depth = 600;                        // of the evaluation: macros that call macros
  std::uint64_t steps = 5'000'000;                    // nodes evaluated and items of lists made
  std::uint64_t work_bytes = std::uint64_t{1} << 29;  // of all strings made or searched
  std::size_t string_bytes = std::size_t{16} << 20;   // of one string
  std::size_t output_bytes = std::size_t{16} << 20;
  std::size_t list_items = 1'000'000;  // of one list
  std::size_t namespaces = 100'000;
};

// Levels of lists and maps within each other; no document that people write comes near.
inline constexpr std::size_t kMaxValueDepth = 100;

}  // namespace heddle::text::chat
