// Remembers the tokens of words: texts repeat their words, and following the merges costs more than
// looking here. A fixed size, no allocation after the first: a word that falls on the place of
// another takes it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "text/bpe/flat_map.h"

namespace heddle::text {

class WordCache {
 public:
  WordCache() : slots_(kSlots) {}

  // Ids of the word; empty when they are not here.
  std::span<const std::int32_t> find(std::string_view word) const noexcept {
    if (word.size() > kMaxBytes) return {};
    const Key key = make_key(word);
    const Slot& slot = slots_[place(key)];
    if (slot.key != key) return {};
    return {slot.ids.data(), slot.count};
  }

  void add(std::string_view word, std::span<const std::int32_t> ids) noexcept {
    if (word.size() > kMaxBytes || ids.size() > kMaxIds) return;
    const Key key = make_key(word);
    Slot& slot = slots_[place(key)];
    slot.key = key;
    slot.count = static_cast<std::uint32_t>(ids.size());
    std::memcpy(slot.ids.data(), ids.data(), ids.size_bytes());
  }

 private:
  static constexpr std::size_t kSlots = std::size_t{1} << 15;  // 2 MiB: the second-level cache
  static constexpr std::size_t kMaxBytes = 23;
  static constexpr std::size_t kMaxIds = 9;

  // The word's bytes, then zeros, then its length: different words, different keys, and never all
  // zeros.
  using Key = std::array<std::uint64_t, 3>;
  struct alignas(64) Slot {
    Key key{};
    std::uint32_t count = 0;
    std::array<std::int32_t, kMaxIds> ids{};
  };

  static Key make_key(std::string_view word) noexcept {
    const std::size_t size = word.size();
    const char* const bytes = word.data();
    Key key{};
    key[0] = up_to_eight(bytes, size);
    if (size > 8) key[1] = up_to_eight(bytes + 8, size - 8);
    if (size > 16) key[2] = up_to_eight(bytes + 16, size - 16);
    key[2] |= std::uint64_t{size} << 56;
    return key;
  }
  // The first bytes, at most eight, and zeros: by loads that may overlap, since a copy of any size
  // is a call.
  static std::uint64_t up_to_eight(const char* bytes, std::size_t size) noexcept {
    const auto load = [&]<class Number>(Number, std::size_t at) {
      Number number{};
      std::memcpy(&number, bytes + at, sizeof number);
      return std::uint64_t{number} << (8 * at);
    };
    if (size >= 8) return load(std::uint64_t{}, 0);
    if (size >= 4) return load(std::uint32_t{}, 0) | load(std::uint32_t{}, size - 4);
    if (size >= 2) return load(std::uint16_t{}, 0) | load(std::uint16_t{}, size - 2);
    return size == 0 ? 0 : load(std::uint8_t{}, 0);
  }
  static std::size_t place(const Key& key) noexcept {
    const std::uint64_t hash =
        mix(key[0] ^ kHashStart, kHashFactor) ^ mix(key[1] ^ key[2], kHashStart | 1);
    return mix(hash, kHashFactor) % kSlots;
  }

  std::vector<Slot> slots_;
};

}  // namespace heddle::text
