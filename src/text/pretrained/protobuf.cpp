#include "text/pretrained/protobuf.h"

#include <string>

#include "io/errors.h"

namespace heddle::text {

void ProtoReader::fail_field(std::string_view expected) const {
  io::fail_io(where_, "not a protobuf message", expected,
              "at byte " + std::to_string(at_) + " of " + std::to_string(message_.size()));
}

// Seven bits a byte, the lowest first; the eighth says that more follow.
std::uint64_t ProtoReader::varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (at_ == message_.size()) fail_field("a whole number");
    const auto byte = static_cast<unsigned char>(message_[at_++]);
    value |= std::uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) return value;
  }
  fail_field("a number of at most ten bytes");
}

std::uint64_t ProtoReader::fixed(std::size_t bytes) {
  if (message_.size() - at_ < bytes) fail_field("a whole number");
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i)
    value |= std::uint64_t{static_cast<unsigned char>(message_[at_ + i])} << (8 * i);
  at_ += bytes;
  return value;
}

std::optional<ProtoField> ProtoReader::next() {
  if (at_ == message_.size()) return std::nullopt;
  const std::uint64_t key = varint();
  constexpr std::uint64_t most_fields = (1U << 29) - 1;
  if (key >> 3 == 0 || key >> 3 > most_fields) fail_field("the number of a field");
  ProtoField field;
  field.number = static_cast<std::uint32_t>(key >> 3);
  field.wire = static_cast<ProtoField::Wire>(key & 7);
  switch (field.wire) {
    case ProtoField::Wire::integer: field.value = varint(); break;
    case ProtoField::Wire::eight_bytes: field.value = fixed(8); break;
    case ProtoField::Wire::four_bytes: field.value = fixed(4); break;
    case ProtoField::Wire::bytes: {
      const std::uint64_t length = varint();
      if (length > message_.size() - at_) fail_field("a field that ends in the file");
      field.bytes = message_.substr(at_, static_cast<std::size_t>(length));
      at_ += static_cast<std::size_t>(length);
      break;
    }
    default: fail_field("a type of field that is in use");
  }
  return field;
}

}  // namespace heddle::text
