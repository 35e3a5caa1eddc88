// A token file: the tokens of one split of a text, written once and read by the runs that need
// them, a window at a time. Of a file of any size there are eight bytes for each 262,144 tokens in
// memory.
//
//   header     128 bytes: what it is of, how much of it, a hash of the header
//   blocks     262,144 tokens each, the last one perhaps fewer, of 1, 2 or 4 bytes, as the
//   vocabulary
//              needs; where documents are told apart followed by a bit a token: whether one begins
//   hashes     XXH64 of each block
//
// Numbers are little-endian. Every byte of it is checked before it is believed: header, length and
// hashes when the file is opened, a block and the range of its tokens when it is first read.
//
// Windows are copied by pread() and not out of a mapping: pages of a mapping that were touched
// count as memory of the process, a file that another program cuts would end it, and so would a
// disk that fails. As with a mapping, what is read again comes from the system's cache.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "io/files/descriptor.h"

namespace heddle::data {

struct TokenFileFacts {
  std::int64_t tokens = 0;
  std::int64_t vocabulary = 1;
  std::int64_t documents = 0;     // 0: not told apart
  std::int64_t unknown = 0;       // tokens of words that the tokenizer does not have
  std::uint64_t recipe = 0;       // hash of how it was made: tokenizer, files by name, part
  std::uint64_t content = 0;      // hash of the bytes of these files
  std::uint64_t stamp = 0;        // of their lengths and times; 0: they were too young to tell
  std::int64_t source_bytes = 0;  // of text, unpacked

  bool operator==(const TokenFileFacts&) const = default;
};

class TokenFile {
 public:
  // Throws Error (io) for a file that is not a whole token file.
  explicit TokenFile(const std::string& path);
  TokenFile(const TokenFile&) = delete;
  TokenFile& operator=(const TokenFile&) = delete;

  const std::string& path() const { return path_; }
  const TokenFileFacts& facts() const { return facts_; }
  std::uint64_t file_bytes() const { return length_; }
  bool has_documents() const { return facts_.documents > 0; }

  // From any thread. Error where the file is not what was written.
  void copy(std::int64_t begin, std::int64_t count, std::int32_t* out) const;
  // out[i]: whether a document begins with token begin + i. Behind the last token none does.
  void copy_begins(std::int64_t begin, std::int64_t count, std::uint8_t* out) const;

  std::int64_t bytes() const;  // of memory

 private:
  void read_header();
  void read_hashes();
  [[noreturn]] void fail_damaged(const std::string& problem) const;
  std::int64_t tokens_of(std::int64_t block) const;
  std::uint64_t offset_of(std::int64_t block) const;
  void check(std::int64_t block) const;  // once
  void read(std::uint64_t offset, void* out, std::size_t bytes) const;

  std::string path_;
  io::Descriptor file_;
  std::uint64_t length_ = 0;
  TokenFileFacts facts_;
  std::size_t width_ = 1;  // bytes of a token
  std::vector<std::uint64_t> hashes_;
  mutable std::vector<std::atomic<bool>> checked_;  // of each block
};

}  // namespace heddle::data
