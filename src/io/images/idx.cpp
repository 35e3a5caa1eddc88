#include "io/images/idx.h"

#include <cstdint>
#include <cstring>

#include "io/errors.h"
#include "io/files/gzip.h"

namespace heddle::io {
namespace {

std::uint32_t big_endian(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i)
    value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

// Two zeros, the type, the rank.
int checked_rank(std::string_view bytes, const std::string& where) {
  constexpr char kUnsignedByte = 8;
  if (bytes.size() < 4)
    fail_io(where, "is too short for an IDX file", "at least 4 bytes",
            std::to_string(bytes.size()));
  if (bytes[0] != 0 || bytes[1] != 0)
    fail_io(where, "is not an IDX file: offset 0",
            "two zeros, with which files of MNIST's format begin", shown(bytes.substr(0, 4)));
  if (bytes[2] != kUnsignedByte)
    fail_io(where, "type of the elements at offset 2", "8 (unsigned bytes)",
            std::to_string(static_cast<unsigned char>(bytes[2])));
  const int rank = static_cast<unsigned char>(bytes[3]);
  if (rank < 1 || rank > kMaxRank)
    fail_io(where, "number of dimensions at offset 3", "1 to " + std::to_string(kMaxRank),
            std::to_string(rank));
  return rank;
}

}  // namespace

Tensor parse_idx(std::string_view bytes, const std::string& where) {
  const int rank = checked_rank(bytes, where);
  const std::size_t header = 4 + 4 * static_cast<std::size_t>(rank);
  if (bytes.size() < header)
    fail_io(where, "ends inside of its sizes", "at least " + std::to_string(header) + " bytes",
            std::to_string(bytes.size()));
  Shape shape;
  std::uint64_t elements = 1;
  bool overflow = false;
  for (std::size_t at = 4; at < header; at += 4) {
    const std::uint32_t size = big_endian(bytes, at);
    shape.push_back(size);
    overflow |= __builtin_mul_overflow(elements, std::uint64_t{size}, &elements);
  }
  if (overflow || elements != bytes.size() - header)
    fail_io(where, "sizes " + to_string(shape) + " at offset 4 do not fit the file",
            overflow ? "a product that fits into 64 bits"
                     : std::to_string(elements) + " bytes after offset " + std::to_string(header),
            std::to_string(bytes.size() - header));
  Tensor out = Tensor::empty(shape, DType::u8);
  if (elements > 0) std::memcpy(out.mutable_raw(), bytes.data() + header, bytes.size() - header);
  return out;
}

Tensor read_idx(const std::string& path, std::size_t max_bytes) {
  return parse_idx(read_maybe_gzip(path, max_bytes), path);
}

}  // namespace heddle::io
