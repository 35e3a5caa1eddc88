#include "io/safetensors/safetensors.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "heddle/error.h"
#include "io/errors.h"
#include "io/json/json.h"
#include "io/safetensors/safetensors_seal.h"

namespace heddle::io {
namespace {

constexpr std::uint64_t kMaxHeader = 100'000'000;  // the format's own limit
constexpr const char* kMetadataKey = "__metadata__";

struct FileType {
  std::string_view name;
  std::uint64_t bits;
  std::optional<DType> dtype;
};

// All types the format defines: the sizes of those that Heddle does not compute with are checked
// too, and a file may hold them as long as they are not requested.
constexpr std::array<FileType, 20> kFileTypes = {{
    {"F32", 32, DType::f32},      {"BF16", 16, DType::bf16},    {"F16", 16, DType::f16},
    {"F64", 64, DType::f64},      {"I32", 32, DType::i32},      {"I64", 64, DType::i64},
    {"U8", 8, DType::u8},         {"BOOL", 8, std::nullopt},    {"I8", 8, std::nullopt},
    {"I16", 16, std::nullopt},    {"U16", 16, std::nullopt},    {"U32", 32, std::nullopt},
    {"U64", 64, std::nullopt},    {"C64", 64, std::nullopt},    {"F4", 4, std::nullopt},
    {"F6_E2M3", 6, std::nullopt}, {"F6_E3M2", 6, std::nullopt}, {"F8_E5M2", 8, std::nullopt},
    {"F8_E4M3", 8, std::nullopt}, {"F8_E8M0", 8, std::nullopt},
}};

const FileType* find_type(std::string_view name) {
  const auto* found = std::ranges::find(kFileTypes, name, &FileType::name);
  return found == kFileTypes.end() ? nullptr : found;
}

std::uint64_t little_endian(const std::array<unsigned char, 8>& bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 8; i-- > 0;) value = value << 8 | bytes[i];
  return value;
}

// Bytes of a tensor by its type and shape; refuses what does not fit into 63 bits.
std::uint64_t expected_bytes(const Json& value, const FileType& type,
                             const std::vector<std::int64_t>& shape) {
  std::uint64_t bits = type.bits;
  for (const std::int64_t size : shape)
    if (__builtin_mul_overflow(bits, static_cast<std::uint64_t>(size), &bits))
      value.at("shape").refuse("a product of sizes that fits into 64 bits");
  if (bits % 8 != 0) value.at("shape").refuse("a whole number of bytes");
  return bits / 8;
}

// One entry of the header, except for where it lies among the others. `data` is the offset of the
// first tensor in the file, `end` the file's length.
TensorEntry parse_entry(const std::string& name, const Json& value, std::uint64_t data,
                        std::uint64_t end) {
  for (const std::string& key : value.keys())
    if (key != "dtype" && key != "shape" && key != "data_offsets")
      value.at(key).refuse("dtype, shape and data_offsets only");
  TensorEntry entry;
  entry.name = name;
  entry.dtype = value.at("dtype").string();
  const FileType* type = find_type(entry.dtype);
  if (type == nullptr) value.at("dtype").refuse("a type of the safetensors format");
  const Json shape = value.at("shape");
  if (shape.is_array() && shape.size() > 64) shape.refuse("at most 64 sizes");
  entry.shape = shape.integers();
  for (std::size_t i = 0; i < entry.shape.size(); ++i)
    shape.at(i).integer(0, std::numeric_limits<std::int64_t>::max());

  const Json offsets = value.at("data_offsets");
  if (!offsets.is_array() || offsets.size() != 2) offsets.refuse("an array [begin, end]");
  const auto last = static_cast<std::int64_t>(end - data);
  const std::int64_t from = offsets.at(std::size_t{0}).integer(0);
  const std::int64_t to = offsets.at(std::size_t{1}).integer(from);
  if (to > last)
    fail_io(value.file(),
            "ends before its tensor " + shown(name) + " does: it is cut short, or damaged",
            std::to_string(data + static_cast<std::uint64_t>(to)) + " bytes or more",
            std::to_string(end));
  entry.offset = data + static_cast<std::uint64_t>(from);
  entry.bytes = static_cast<std::uint64_t>(to - from);
  const std::uint64_t expected = expected_bytes(value, *type, entry.shape);
  if (entry.bytes != expected)
    fail_io(value.file(), "tensor " + shown(name) + " at offset " + std::to_string(entry.offset),
            std::to_string(expected) + " bytes by its type and shape",
            std::to_string(entry.bytes) + " by its offsets");
  return entry;
}

// The format allows neither gaps nor overlaps, so that every byte of a file is accounted for.
void check_gapless(const std::string& path, const std::vector<TensorEntry>& sorted,
                   std::uint64_t data, std::uint64_t end) {
  std::uint64_t at = data;
  for (const TensorEntry& entry : sorted) {
    if (entry.offset != at)
      fail_io(path,
              "tensor " + shown(entry.name) +
                  (entry.offset > at ? " leaves a gap before it" : " overlaps the one before it"),
              "offset " + std::to_string(at), std::to_string(entry.offset));
    at += entry.bytes;
  }
  if (at != end)
    fail_io(path, "bytes are left over after the last tensor",
            "the end at offset " + std::to_string(at), std::to_string(end));
}

}  // namespace

std::optional<DType> TensorEntry::known_dtype() const noexcept {
  const FileType* type = find_type(dtype);
  return type == nullptr ? std::nullopt : type->dtype;
}

SafetensorsFile::SafetensorsFile(const std::string& path)
    : path_(path), file_(open_regular(path, O_RDONLY)) {
  read_header();
}

void SafetensorsFile::read_header() {
  const std::uint64_t end = length_of(file_, path_);
  std::array<unsigned char, 8> prefix{};
  if (read_at(file_, path_, prefix.data(), prefix.size(), 0) < prefix.size())
    fail_io(path_, "is too short for a safetensors file", "at least 8 bytes", std::to_string(end));
  const std::uint64_t length = little_endian(prefix);
  const std::uint64_t most = std::min(kMaxHeader, end < 8 ? 0 : end - 8);
  if (length < 2 || length > most)
    fail_io(path_, "length of the header at offset 0", "2 to " + std::to_string(most) + " bytes",
            std::to_string(length));
  std::string header(static_cast<std::size_t>(length), '\0');
  if (read_at(file_, path_, header.data(), header.size(), 8) < header.size())
    fail_io(path_, "ends inside of its header");
  if (header[0] != '{') fail_io(path_, "header at offset 8", "a JSON object", shown(header, 16));

  const Json root = Json::parse(header, path_ + ": header", {kMaxHeader, 4});
  if (root.raw().contains(kMetadataKey)) read_metadata(root.at(kMetadataKey));
  check_header_seal(path_, std::move(header), metadata_);
  const std::uint64_t data = 8 + length;
  for (const std::string& name : root.keys())
    if (name != kMetadataKey) entries_.push_back(parse_entry(name, root.at(name), data, end));
  // Tensors without bytes come before the one that begins where they lie.
  std::ranges::sort(entries_, {},
                    [](const TensorEntry& e) { return std::tie(e.offset, e.bytes, e.name); });
  check_gapless(path_, entries_, data, end);
  for (std::size_t i = 0; i < entries_.size(); ++i) index_[entries_[i].name] = i;
}

void SafetensorsFile::read_metadata(const Json& value) {
  for (const std::string& key : value.keys()) metadata_[key] = value.at(key).string();
}

bool SafetensorsFile::contains(std::string_view name) const { return index_.contains(name); }

const TensorEntry& SafetensorsFile::entry(std::string_view name) const {
  const auto found = index_.find(name);
  if (found != index_.end()) return entries_[found->second];
  constexpr std::size_t kSearched = 4000;  // enough for any model, and quick
  std::string near;
  if (entries_.size() <= kSearched) {
    std::vector<std::string_view> names;
    names.reserve(entries_.size());
    for (const TensorEntry& e : entries_) names.emplace_back(e.name);
    near = nearest_name(name, names);
  }
  fail_io(path_, "has no tensor " + shown(name), {},
          near.empty() ? std::to_string(entries_.size()) + " others"
                       : "a tensor " + shown(near) + " among " + std::to_string(entries_.size()));
}

DType SafetensorsFile::checked_dtype(const TensorEntry& entry) const {
  const std::optional<DType> dtype = entry.known_dtype();
  if (!dtype)
    fail_io(path_, "tensor " + shown(entry.name) + " has a type that Heddle does not have",
            "F32, BF16, F16, F64, I32, I64 or U8", entry.dtype);
  return *dtype;
}

Shape SafetensorsFile::checked_shape(const TensorEntry& entry) const {
  if (entry.shape.size() > kMaxRank)
    fail_io(path_, "tensor " + shown(entry.name) + " has too many dimensions",
            "at most " + std::to_string(kMaxRank), std::to_string(entry.shape.size()));
  return Shape(entry.shape);
}

Tensor SafetensorsFile::load(std::string_view name) const {
  const TensorEntry& found = entry(name);
  const DType dtype = checked_dtype(found);
  Tensor tensor = Tensor::empty(checked_shape(found), dtype);
  read_bytes(found, tensor);
  return tensor;
}

void SafetensorsFile::load_into(std::string_view name, Tensor& destination) const {
  const TensorEntry& found = entry(name);
  const DType dtype = checked_dtype(found);
  const Shape shape = checked_shape(found);
  if (destination.dtype() != dtype || destination.shape() != shape || !destination.contiguous())
    fail_io(path_, "tensor " + shown(name) + " does not fit",
            "a contiguous " + destination.describe(),
            std::string(to_string(dtype)) + " " + to_string(shape));
  if (destination.device().is_cpu()) return read_bytes(found, destination);
  Tensor here = Tensor::empty(shape, dtype);
  read_bytes(found, here);
  overwrite(destination, here);
}

Tensor SafetensorsFile::load_part(std::string_view name, std::int64_t place) const {
  const TensorEntry& found = entry(name);
  const DType dtype = checked_dtype(found);
  Shape shape = checked_shape(found);
  if (shape.rank() < 2 || place < 0 || place >= shape[0])
    fail_io(path_, "tensor " + shown(name) + " holds no part " + std::to_string(place),
            "parts along its first dimension", to_string(shape));
  shape.erase(0);
  Tensor part = Tensor::empty(shape, dtype);
  read_bytes(found, part, static_cast<std::uint64_t>(place) * part.bytes());
  return part;
}

void SafetensorsFile::read_bytes(const TensorEntry& entry, Tensor& destination,
                                 std::uint64_t first) const {
  const auto bytes = static_cast<std::size_t>(destination.bytes());
  if (bytes == 0) return;
  const std::uint64_t offset = entry.offset + first;
  const std::size_t got = read_at(file_, path_, destination.mutable_raw(), bytes, offset);
  if (got < bytes)
    fail_io(path_, "tensor " + shown(entry.name) + ": the file became shorter while it was read",
            std::to_string(bytes) + " bytes at offset " + std::to_string(offset),
            std::to_string(got));
}

}  // namespace heddle::io
