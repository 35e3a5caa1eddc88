// Text files one after another, in memory of a fixed size: what read_joined() of load_text.cpp
// gives as one string, as a stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "io/files/byte_stream.h"

namespace heddle::data {

struct StreamedFiles {
  std::vector<std::string> paths;  // as they are on the disk
  bool any_bytes = false;          // otherwise they must be UTF-8, and lose a byte order mark
};

class TextStream {
 public:
  explicit TextStream(StreamedFiles files) : files_(std::move(files)) {}

  // Appends about `bytes` bytes of the file that is its turn, whole characters where the text is
  // UTF-8, and goes on to the next one when it is at its end. False when all are.
  bool read(std::string& out, std::size_t bytes);
  // Goes forward in the joined text; the characters that are passed over are not looked at.
  void skip(std::uint64_t bytes);
  // The next byte, whatever it is part of; -1 at the end.
  int next_byte();

  std::uint64_t position() const { return position_; }  // in the joined text
  // Where the files begin that were opened so far.
  const std::vector<std::uint64_t>& file_begins() const { return begins_; }

  // "file.txt:12", for a place that was read. Reads the file again.
  std::string where(std::uint64_t offset) const;

 private:
  bool open_next();
  void close();
  void check_characters(std::string& out, std::size_t from, bool at_end);

  StreamedFiles files_;
  std::size_t next_ = 0;  // of files_.paths
  std::unique_ptr<io::ByteStream> current_;
  std::string carried_;                // read, and neither checked nor given: part of a character
  std::uint64_t position_ = 0;         // of what was given
  std::uint64_t in_file_ = 0;          // of what was given, with the mark
  std::vector<std::uint64_t> begins_;  // of the files opened so far, in the joined text
  std::vector<std::uint64_t> marks_;   // bytes of their byte order marks
};

// The first place at or behind `offset` where a character begins, as UTF-8 has them.
std::uint64_t character_at(const StreamedFiles& files, std::uint64_t offset);

// The first place at or behind `offset` where a line begins, or the end.
std::uint64_t line_at(const StreamedFiles& files, std::uint64_t offset);

// Of the joined text; Error for a file that is empty. Plain ones are not read for it.
std::uint64_t joined_bytes(const StreamedFiles& files);

}  // namespace heddle::data
