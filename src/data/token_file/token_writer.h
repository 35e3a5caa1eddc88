// Writes a token file: nothing is there until it is whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/token_file/token_file.h"
#include "io/files/unnamed_file.h"

namespace heddle::data {

class TokenWriter {
 public:
  // In a folder that is there. `documents`: whether they are told apart.
  TokenWriter(const std::string& path, std::int64_t vocabulary, bool documents);

  // Each token must be in the vocabulary. With `begins` the first of them begins a document, which
  // may have no tokens.
  void add(std::span<const std::int32_t> tokens, bool begins);
  std::int64_t tokens() const { return tokens_; }
  std::int64_t documents() const { return documents_; }

  // Of the facts it takes those that it cannot know. With documents told apart there must be one.
  void commit(TokenFileFacts facts);

 private:
  void end_block();

  io::UnnamedFile file_;
  std::int64_t vocabulary_;
  bool with_documents_;
  std::size_t width_;
  std::int64_t tokens_ = 0, documents_ = 0;
  std::vector<unsigned char> block_, begins_;  // of the block that is not full yet
  std::vector<unsigned char> hashes_;
};

}  // namespace heddle::data
