// How much of a file may come into memory. A text of four bytes a word takes several times its size
// before it is tokens, and a gzip file of 5 MB may hold 5 GB: what would not fit is refused before
// memory is taken, by a limit that follows from the machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace heddle::io {

// Bytes that this process may take: the smallest of the machine's memory with its swap, the limits
// of its control groups, and of ulimit -v and -d.
std::uint64_t process_memory();

// As if the process might take so much only: for tests.
class PretendMemory {
 public:
  explicit PretendMemory(std::uint64_t bytes);
  ~PretendMemory();
  PretendMemory(const PretendMemory&) = delete;
  PretendMemory& operator=(const PretendMemory&) = delete;
};

// For one file once it is unpacked: a quarter of it.
std::size_t file_limit();
// "5.75 GB, a quarter of the memory that this process may use", for errors.
std::string file_limit_text();

// Lines or values of a file, each of which takes some memory whatever is in it.
std::size_t item_limit(std::size_t bytes_each);

}  // namespace heddle::io
