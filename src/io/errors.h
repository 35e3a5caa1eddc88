// How files are refused. Every error of this room has ErrorCode::io; its `where` is the path of the
// file, for text followed by the line ("recipe.toml:12"), its problem names the offset in a binary
// one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace heddle::io {

[[noreturn]] void fail_io(std::string_view where, std::string_view problem,
                          std::string_view expected = {}, std::string_view got = {});

// For a system call that failed: `doing` is what was tried ("cannot open"), `error` its errno.
[[noreturn]] void fail_system(std::string_view path, std::string_view doing, int error);

// Text out of a file, fit to be shown: in quotes, control bytes and what is not UTF-8 escaped, cut
// after `max_bytes`.
std::string shown(std::string_view text, std::size_t max_bytes = 80);

// Of two places in a text: the line and the column (in bytes) of an offset, both from 1.
struct LineColumn {
  std::size_t line = 1;
  std::size_t column = 1;
};
LineColumn line_column(std::string_view text, std::size_t offset);

// The name nearest to `wanted` by edit distance, or empty when none is near enough to be what was
// meant.
template <class Names>
std::string nearest_name(std::string_view wanted, const Names& names);

// Insertions, deletions, replacements and swaps of neighbours that turn one name into the other.
// Names over 256 bytes are cut, so that hostile ones cost nothing.
std::size_t edit_distance(std::string_view a, std::string_view b);

template <class Names>
std::string nearest_name(std::string_view wanted, const Names& names) {
  std::string best;
  std::size_t best_distance = 1 + (wanted.size() + 1) / 3;  // a third of the letters may be wrong
  for (const auto& name : names) {
    const std::size_t distance = edit_distance(wanted, name);
    if (distance >= best_distance) continue;
    best_distance = distance;
    best = name;
  }
  return best;
}

}  // namespace heddle::io
