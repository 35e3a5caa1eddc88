// The tokens of one split of a text: in memory, or in a token file.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "data/order/tokens.h"
#include "data/token_file/token_file.h"

namespace heddle::data {

struct EncodedText {
  TokenStore tokens;
  std::vector<std::int64_t> documents = {};    // the token each begins with; empty: all are one
  std::int64_t unknown = 0;                    // tokens of words that the tokenizer does not have
  std::shared_ptr<const TokenFile> file = {};  // instead of the tokens and the documents

  explicit EncodedText(TokenStore store) : tokens(std::move(store)) {}
  explicit EncodedText(std::shared_ptr<const TokenFile> from)
      : tokens(from->facts().vocabulary), unknown(from->facts().unknown), file(std::move(from)) {}

  std::int64_t size() const { return file ? file->facts().tokens : tokens.size(); }
  void copy(std::int64_t begin, std::int64_t count, std::int32_t* out) const;
  std::int32_t at(std::int64_t i) const;

  std::int64_t document_count() const;  // 0: not told apart
  // out[i]: whether a document begins with token begin + i.
  void copy_begins(std::int64_t begin, std::int64_t count, std::uint8_t* out) const;

  std::int64_t bytes() const;  // of memory
};

}  // namespace heddle::data
