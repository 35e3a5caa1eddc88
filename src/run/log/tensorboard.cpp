#include "run/log/tensorboard.h"

#include <bit>

#include "io/files/checksums/crc32c.h"

namespace heddle::run {

namespace {

// Numbers stand with the lowest byte first, whatever the machine does.
template <class Unsigned>
std::string fixed(Unsigned value) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof(value); ++i)
    bytes += static_cast<char>(static_cast<unsigned char>(value >> (8 * i)));
  return bytes;
}

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>((value & 0x7F) | 0x80);
  bytes += static_cast<char>(value);
  return bytes;
}

// Protocol Buffers: the number of a field and how its value is written.
enum class Wire : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };
std::string field_key(int number, Wire wire) {
  return varint(static_cast<std::uint64_t>(number) << 3 | static_cast<std::uint64_t>(wire));
}
std::string bytes_field(int number, std::string_view value) {
  std::string out = field_key(number, Wire::bytes) + varint(value.size());
  return out += value;
}

// The fields of an event.
constexpr int kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5;
// Of a summary and of one of its values.
constexpr int kValue = 1, kTag = 1, kSimpleValue = 2;

std::string wall_time_field(double seconds) {
  return field_key(kWallTime, Wire::fixed64) + fixed(std::bit_cast<std::uint64_t>(seconds));
}

// Checksums of data that has checksums in it are poor ones; so they are turned and shifted.
std::string masked_crc(std::string_view bytes) {
  const std::uint32_t crc = io::crc32c(bytes);
  return fixed(((crc >> 15) | (crc << 17)) + 0xA282EAD8U);
}

}  // namespace

std::string tf_record(std::string_view bytes) {
  const std::string length = fixed(static_cast<std::uint64_t>(bytes.size()));
  std::string out = length + masked_crc(length);
  out += bytes;
  return out += masked_crc(bytes);
}

std::string tf_version_event(double wall_time) {
  return wall_time_field(wall_time) + bytes_field(kFileVersion, "brain.Event:2");
}

std::string tf_scalar_event(double wall_time, std::int64_t step,
                            std::span<const TaggedScalar> scalars) {
  std::string summary;
  for (const TaggedScalar& s : scalars)
    summary +=
        bytes_field(kValue, bytes_field(kTag, s.tag) + field_key(kSimpleValue, Wire::fixed32) +
                                fixed(std::bit_cast<std::uint32_t>(s.value)));
  return wall_time_field(wall_time) + field_key(kStep, Wire::varint) +
         varint(static_cast<std::uint64_t>(step)) + bytes_field(kSummary, summary);
}

}  // namespace heddle::run
