#include "io/files/checksums/xxh64.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace heddle::io {
namespace {

constexpr std::uint64_t kPrime1 = 0x9E3779B185EBCA87u, kPrime2 = 0xC2B2AE3D27D4EB4Fu,
                        kPrime3 = 0x165667B19E3779F9u, kPrime4 = 0x85EBCA77C2B2AE63u,
                        kPrime5 = 0x27D4EB2F165667C5u;
constexpr std::size_t kStripe = 32;

// Little-endian, on any machine.
template <class T>
T word_at(const unsigned char* at) noexcept {
  T word = 0;
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(&word, at, sizeof word);
  } else {
    for (std::size_t i = 0; i < sizeof word; ++i)
      word = static_cast<T>(word | (static_cast<T>(at[i]) << (8 * i)));
  }
  return word;
}

std::uint64_t round_of(std::uint64_t lane, std::uint64_t word) noexcept {
  return std::rotl(lane + word * kPrime2, 31) * kPrime1;
}

std::uint64_t merged(std::uint64_t hash, std::uint64_t lane) noexcept {
  return (hash ^ round_of(0, lane)) * kPrime1 + kPrime4;
}

}  // namespace

Xxh64::Xxh64(std::uint64_t seed) noexcept
    : seed_(seed), lanes_{seed + kPrime1 + kPrime2, seed + kPrime2, seed, seed - kPrime1} {}

void Xxh64::take_stripe(const unsigned char* stripe) noexcept {
  for (std::size_t i = 0; i < lanes_.size(); ++i)
    lanes_[i] = round_of(lanes_[i], word_at<std::uint64_t>(stripe + 8 * i));
}

void Xxh64::add(const void* data, std::size_t bytes) noexcept {
  const auto* at = static_cast<const unsigned char*>(data);
  total_ += bytes;
  if (in_rest_ > 0) {
    const std::size_t taken = std::min(bytes, kStripe - in_rest_);
    if (taken > 0) std::memcpy(rest_.data() + in_rest_, at, taken);
    in_rest_ += taken;
    at += taken;
    bytes -= taken;
    if (in_rest_ < kStripe) return;
    take_stripe(rest_.data());
    in_rest_ = 0;
  }
  for (; bytes >= kStripe; at += kStripe, bytes -= kStripe) take_stripe(at);
  if (bytes > 0) std::memcpy(rest_.data(), at, bytes);
  in_rest_ = bytes;
}

void Xxh64::add_number(std::uint64_t number) noexcept {
  std::array<unsigned char, 8> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<unsigned char>(number >> (8 * i));
  add(bytes.data(), bytes.size());
}

void Xxh64::add_field(std::string_view text) noexcept {
  add_number(text.size());
  add(text);
}

std::uint64_t Xxh64::value() const noexcept {
  std::uint64_t hash = seed_ + kPrime5;
  if (total_ >= kStripe) {
    hash = std::rotl(lanes_[0], 1) + std::rotl(lanes_[1], 7) + std::rotl(lanes_[2], 12) +
           std::rotl(lanes_[3], 18);
    for (const std::uint64_t lane : lanes_) hash = merged(hash, lane);
  }
  hash += total_;
  const unsigned char* at = rest_.data();
  std::size_t left = in_rest_;
  for (; left >= 8; at += 8, left -= 8)
    hash = std::rotl(hash ^ round_of(0, word_at<std::uint64_t>(at)), 27) * kPrime1 + kPrime4;
  if (left >= 4) {
    hash = std::rotl(hash ^ (word_at<std::uint32_t>(at) * kPrime1), 23) * kPrime2 + kPrime3;
    at += 4;
    left -= 4;
  }
  for (; left > 0; ++at, --left) hash = std::rotl(hash ^ (*at * kPrime5), 11) * kPrime1;
  hash = (hash ^ (hash >> 33)) * kPrime2;
  hash = (hash ^ (hash >> 29)) * kPrime3;
  return hash ^ (hash >> 32);
}

std::uint64_t xxh64(std::string_view bytes) noexcept {
  Xxh64 hash;
  hash.add(bytes);
  return hash.value();
}

std::string hex_text(std::uint64_t number) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[(number >> shift) & 15];
  return text;
}

}  // namespace heddle::io
