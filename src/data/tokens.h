// Many tokens in little memory: one text, or sequences one behind the other.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace heddle::data {

// Two bytes a token where the vocabulary allows it.
class TokenStore {
 public:
  explicit TokenStore(std::int64_t vocabulary) : wide_(vocabulary > 65536) {}

  std::int64_t size() const {
    return static_cast<std::int64_t>(wide_ ? wide_tokens_.size() : tokens_.size());
  }
  void reserve(std::int64_t count);
  void append(std::span<const std::int32_t> tokens);
  void append(const TokenStore& other);  // made for the same vocabulary
  void copy(std::int64_t begin, std::int64_t count, std::int32_t* out) const;
  std::int32_t at(std::int64_t i) const;

 private:
  bool wide_;
  std::vector<std::uint16_t> tokens_;
  std::vector<std::int32_t> wide_tokens_;
};

class Sequences {
 public:
  explicit Sequences(std::int64_t vocabulary) : tokens_(vocabulary) {}

  std::int64_t count() const { return static_cast<std::int64_t>(starts_.size()) - 1; }
  std::int64_t length(std::int64_t i) const;
  std::int64_t tokens() const { return tokens_.size(); }
  void add(std::span<const std::int32_t> sequence);
  void copy(std::int64_t i, std::int32_t* out) const;

 private:
  TokenStore tokens_;
  std::vector<std::int64_t> starts_{0};  // of each sequence, and the end
};

}  // namespace heddle::data
