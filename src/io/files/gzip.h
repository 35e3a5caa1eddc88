// Files that may be compressed with gzip; this is decided by their first bytes, not by their
// names.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace heddle::io {

bool is_gzip(std::string_view bytes) noexcept;

// All members of a gzip file, one after the other; zeros after the last one are padding, anything
// else there is an Error, as are bytes that are missing or damaged (offsets are those of the
// compressed file). The output is counted before memory is allocated for it: more than `max_bytes`,
// or than file_limit() of memory_limit.h, is an Error.
std::string gunzip(std::string_view bytes, const std::string& where, std::size_t max_bytes);

// The content of a file, plain or gzip; the limit holds for what comes out.
std::string read_maybe_gzip(const std::string& path, std::size_t max_bytes);

}  // namespace heddle::io
