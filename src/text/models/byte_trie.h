// The tokens that a text begins with, found by going through its bytes once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/bpe/flat_map.h"

namespace heddle::text {

class ByteTrie {
 public:
  static constexpr std::uint32_t kRoot = 0;
  static constexpr std::uint32_t kNowhere = ~std::uint32_t{0};

  ByteTrie() : ids_(1, -1) { first_.fill(kNowhere); }

  // A key that is there already gets the new id.
  void add(std::string_view key, std::int32_t id) {
    std::uint32_t node = kRoot;
    for (const char byte : key) {
      std::uint32_t next = child(node, byte);
      if (next == kNowhere) {
        next = static_cast<std::uint32_t>(ids_.size());
        ids_.push_back(-1);
        if (node == kRoot) {
          first_[static_cast<unsigned char>(byte)] = next;
        } else {
          children_[key_of(node, byte)] = next;
        }
      }
      node = next;
    }
    ids_[node] = id;
  }

  std::uint32_t child(std::uint32_t node, char byte) const noexcept {
    if (node == kRoot) return first_[static_cast<unsigned char>(byte)];
    const std::uint32_t* const found = children_.find(key_of(node, byte));
    return found == nullptr ? kNowhere : *found;
  }

  // Where the bytes lead from a node, or kNowhere.
  std::uint32_t walk(std::uint32_t node, std::string_view bytes) const noexcept {
    for (std::size_t i = 0; i < bytes.size() && node != kNowhere; ++i) node = child(node, bytes[i]);
    return node;
  }

  // The id of the key that ends here, or -1.
  std::int32_t id(std::uint32_t node) const noexcept { return ids_[node]; }

 private:
  static std::uint64_t key_of(std::uint32_t node, char byte) noexcept {
    return (std::uint64_t{node} << 8) | static_cast<unsigned char>(byte);
  }

  std::vector<std::int32_t> ids_;           // of every node
  std::array<std::uint32_t, 256> first_{};  // children of the root
  FlatMap<std::uint64_t, std::uint32_t> children_;
};

}  // namespace heddle::text
