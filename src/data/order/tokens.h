// Many tokens in little memory: one text, or sequences one after another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace heddle::data {

// One, two or four bytes a token, as the vocabulary needs. Tokens are in blocks that never move, so
// that a growing store is never in memory twice.
class TokenStore {
 public:
  explicit TokenStore(std::int64_t vocabulary)
      : width_(vocabulary <= 256     ? 1
               : vocabulary <= 65536 ? 2
                                     : 4) {}

  std::int64_t size() const { return size_; }
  // Each must be in the vocabulary; the last bytes of others would be kept.
  void append(std::span<const std::int32_t> tokens);
  void append(const TokenStore& other);  // made for the same vocabulary
  void copy(std::int64_t begin, std::int64_t count, std::int32_t* out) const;
  std::int32_t at(std::int64_t i) const;

  std::int64_t bytes() const;  // of memory

  static constexpr std::int64_t kBlock = std::int64_t{1} << 20;  // tokens

 private:
  using Block = std::vector<std::byte>;

  std::byte* make_room(std::int64_t count);  // for this many in the last block, after its end

  std::size_t width_;  // bytes of a token
  std::int64_t size_ = 0;
  std::vector<Block> blocks_;  // kBlock tokens each, the last one perhaps fewer
};

class Sequences {
 public:
  explicit Sequences(std::int64_t vocabulary) : tokens_(vocabulary) {}

  std::int64_t count() const { return static_cast<std::int64_t>(starts_.size()) - 1; }
  std::int64_t length(std::int64_t i) const;
  std::int64_t tokens() const { return tokens_.size(); }
  void add(std::span<const std::int32_t> sequence);
  void copy(std::int64_t i, std::int32_t* out) const;
  std::int64_t bytes() const;  // of memory

 private:
  TokenStore tokens_;
  std::vector<std::int64_t> starts_{0};  // of each sequence, and the end
};

}  // namespace heddle::data
