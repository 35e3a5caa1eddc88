#include "data/order/tokens.h"

#include <algorithm>
#include <cstring>

#include "data/memory_of.h"

namespace heddle::data {

namespace {

// Calls body(T{}) with the type that tokens of so many bytes are kept in.
template <class Body>
void with_type(std::size_t width, const Body& body) {
  if (width == 1)
    body(std::uint8_t{});
  else if (width == 2)
    body(std::uint16_t{});
  else
    body(std::int32_t{});
}

// Calls body(block, first, count) for the parts of [begin, begin + count) that lie in one block.
template <class Body>
void for_each_part(std::int64_t begin, std::int64_t count, const Body& body) {
  while (count > 0) {
    const std::int64_t first = begin % TokenStore::kBlock;
    const std::int64_t part = std::min(count, TokenStore::kBlock - first);
    body(static_cast<std::size_t>(begin / TokenStore::kBlock), first, part);
    begin += part;
    count -= part;
  }
}

}  // namespace

// A block grows by doubling, up to its full size: a short text takes what it needs.
std::byte* TokenStore::make_room(std::int64_t count) {
  if (size_ % kBlock == 0) blocks_.emplace_back();
  Block& block = blocks_.back();
  const std::size_t before = block.size();
  const std::size_t after = before + static_cast<std::size_t>(count) * width_;
  if (after > block.capacity()) {
    const std::size_t whole = static_cast<std::size_t>(kBlock) * width_;
    block.reserve(std::min(whole, std::max(after, 2 * before)));
  }
  block.resize(after);
  size_ += count;
  return block.data() + before;
}

void TokenStore::append(std::span<const std::int32_t> tokens) {
  for_each_part(size_, static_cast<std::int64_t>(tokens.size()),
                [&](std::size_t, std::int64_t, std::int64_t count) {
                  std::byte* out = make_room(count);
                  with_type(width_, [&]<class T>(T) {
                    for (std::int64_t i = 0; i < count; ++i) {
                      const T token = static_cast<T>(tokens[static_cast<std::size_t>(i)]);
                      std::memcpy(out + static_cast<std::size_t>(i) * sizeof(T), &token, sizeof(T));
                    }
                  });
                  tokens = tokens.subspan(static_cast<std::size_t>(count));
                });
}

void TokenStore::append(const TokenStore& other) {
  std::vector<std::int32_t> tokens;
  for_each_part(0, other.size_, [&](std::size_t block, std::int64_t, std::int64_t count) {
    tokens.resize(static_cast<std::size_t>(count));
    other.copy(static_cast<std::int64_t>(block) * kBlock, count, tokens.data());
    append(tokens);
  });
}

void TokenStore::copy(std::int64_t begin, std::int64_t count, std::int32_t* out) const {
  for_each_part(begin, count, [&](std::size_t block, std::int64_t first, std::int64_t part) {
    const std::byte* from = blocks_[block].data() + static_cast<std::size_t>(first) * width_;
    with_type(width_, [&]<class T>(T) {
      for (std::int64_t i = 0; i < part; ++i) {
        T token{};
        std::memcpy(&token, from + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
        out[i] = static_cast<std::int32_t>(token);
      }
    });
    out += part;
  });
}

std::int32_t TokenStore::at(std::int64_t i) const {
  std::int32_t token = 0;
  copy(i, 1, &token);
  return token;
}

std::int64_t TokenStore::bytes() const {
  std::int64_t sum = memory_of(blocks_);
  for (const Block& block : blocks_) sum += memory_of(block);
  return sum;
}

std::int64_t Sequences::length(std::int64_t i) const {
  const auto place = static_cast<std::size_t>(i);
  return starts_[place + 1] - starts_[place];
}

void Sequences::add(std::span<const std::int32_t> sequence) {
  tokens_.append(sequence);
  starts_.push_back(tokens_.size());
}

void Sequences::copy(std::int64_t i, std::int32_t* out) const {
  tokens_.copy(starts_[static_cast<std::size_t>(i)], length(i), out);
}

std::int64_t Sequences::bytes() const { return tokens_.bytes() + memory_of(starts_); }

}  // namespace heddle::data
