// The fields of a protobuf message, one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace heddle::text {

struct ProtoField {
  std::uint32_t number = 0;
  std::uint64_t value = 0;  // of an integer; the bits of a float
  std::string_view bytes;   // of a string or message
  enum class Wire : std::uint8_t { integer = 0, eight_bytes = 1, bytes = 2, four_bytes = 5 };
  Wire wire = Wire::integer;
};

class ProtoReader {
 public:
  // `where` is what errors name.
  ProtoReader(std::string_view message, std::string_view where)
      : message_(message), where_(where) {}

  // The next field; nothing at the end. Throws Error where the bytes are no field.
  std::optional<ProtoField> next();

 private:
  std::uint64_t varint();
  std::uint64_t fixed(std::size_t bytes);
  [[noreturn]] void fail_field(std::string_view expected) const;

  std::string_view message_;
  std::string_view where_;
  std::size_t at_ = 0;
};

}  // namespace heddle::text
