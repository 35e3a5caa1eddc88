#include "text/bpe/junctions.h"

#include <algorithm>
#include <bit>

namespace heddle::text {

namespace {

bool are_ascii(std::uint32_t left, std::uint32_t right) noexcept {
  return left < 128 && right < 128;
}

std::size_t ascii_place(std::uint32_t left, std::uint32_t right) noexcept {
  return left * 128 + right;
}

bool is_continuation(char byte) noexcept {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

}  // namespace

// 16 bits a pair, and a pair a merge: where the two parts of its token touch.
Junctions::Junctions(std::size_t merges)
    : filter_(std::bit_ceil(std::max<std::size_t>(merges / 4, 16))) {}

void Junctions::note(std::uint32_t left, std::uint32_t right) {
  if (are_ascii(left, right)) {
    ascii_.set(ascii_place(left, right));
    return;
  }
  const Place place = place_of(left, right);
  filter_[place.word] |= place.bits;
  if ((left & kPart) != 0) left_parts_[left & 0xFF] = true;
  if ((right & kPart) != 0) right_parts_[right & 0xFF] = true;
}

// A junction is where a character ends: in front of every byte that is no continuation. Inside of
// an incomplete character there is none.
void Junctions::add(std::string_view token) {
  std::uint32_t left = 0;
  bool has_left = false;
  for (std::size_t at = 0; at < token.size();) {
    const CodePoint c = code_point_at(token, at);
    const bool starts = !is_continuation(token[at]);
    if (has_left && starts)
      note(left, c.value < 0 ? byte_side(token[at]) : character_side(c.value));
    at += c.bytes;
    left = c.value < 0 ? byte_side(token[at - 1]) : character_side(c.value);
    has_left = true;
  }
}

bool Junctions::may_cross(std::int32_t left, char last, std::int32_t right,
                          char first) const noexcept {
  if (left < 0 || right < 0) return true;  // not UTF-8: nothing is known
  const std::uint32_t before = character_side(left), behind = character_side(right);
  if (are_ascii(before, behind)) return ascii_.test(ascii_place(before, behind));
  const bool left_part = left_parts_[static_cast<unsigned char>(last)];
  const bool right_part = right_parts_[static_cast<unsigned char>(first)];
  return has(before, behind) || (left_part && has(byte_side(last), behind)) ||
         (right_part && has(before, byte_side(first))) ||
         (left_part && right_part && has(byte_side(last), byte_side(first)));
}

std::size_t Junctions::part_end(std::string_view word, std::size_t at) const noexcept {
  CodePoint left = code_point_at(word, at);
  at += left.bytes;
  while (at < word.size()) {
    const CodePoint right = code_point_at(word, at);
    if (!may_cross(left.value, word[at - 1], right.value, word[at])) break;
    at += right.bytes;
    left = right;
  }
  return at;
}

}  // namespace heddle::text
