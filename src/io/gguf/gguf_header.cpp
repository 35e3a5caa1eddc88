#include "io/gguf/gguf_header.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/divide.h"
#include "base/memory_error.h"
#include "io/errors.h"
#include "io/gguf/gguf_header_reader.h"

namespace heddle::io {
namespace {

// About what an entry takes in memory besides its text: itself, and its place in an index.
constexpr std::uint64_t kKeyMemory = 256;
constexpr std::uint64_t kTensorMemory = 320;

constexpr std::uint64_t kSmallestKey = 8 + 1 + 4 + 1;         // length, name, type, value
constexpr std::uint64_t kSmallestTensor = 8 + 1 + 4 + 4 + 8;  // length, name, sizes, type, offset

void check_magic(GgufHeaderReader& in) {
  std::array<char, 4> magic{};
  in.bytes(magic.data(), magic.size(), "the first four bytes");
  const std::string_view found(magic.data(), magic.size());
  if (found == "GGUF") return;
  const bool older = found == "lmgg" || found == "fmgg" || found == "tjgg" || found == "algg";
  in.refuse(
      0, "is not a GGUF file: its first four bytes", "\"GGUF\"",
      shown(found) + (older ? ", a format that came before GGUF: convert the model anew" : ""));
}

std::uint32_t read_version(GgufHeaderReader& in) {
  const auto version = in.number<std::uint32_t>("the version");
  if (version == 2 || version == 3) return version;
  std::string got = std::to_string(version);
  if (version == 1) got += ", whose sizes have 32 bits: convert the model anew";
  // A small number whose bytes stand the other way round.
  if (version != 0 && (version & 0xffff) == 0)
    got = "a big-endian file: convert the model for little-endian machines";
  in.refuse(4, "the version of GGUF", "2 or 3", got);
}

// The `number`-th type of a variant, as read(std::type_identity<type>) gives it.
template <class Variant, class Read>
Variant read_alternative(std::size_t number, const Read& read) {
  Variant value;
  const auto attempt = [&]<std::size_t I>() {
    using T = std::variant_alternative_t<I, Variant>;
    if (I == number) value.template emplace<I>(read(std::type_identity<T>{}));
  };
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (attempt.template operator()<I>(), ...);
  }(std::make_index_sequence<std::variant_size_v<Variant>>{});
  return value;
}

std::size_t read_value_type(GgufHeaderReader& in, const std::string& what) {
  const std::uint64_t from = in.at();
  const auto number = in.number<std::uint32_t>(what);
  if (number >= std::variant_size_v<GgufValue>)
    in.refuse(from, "the type of " + what, "0 to 12", std::to_string(number));
  return number;
}

template <class T>
std::vector<T> read_elements(GgufHeaderReader& in, const std::string& what) {
  std::vector<T> values;
  if constexpr (std::is_same_v<T, std::string>) {
    const std::size_t count = in.count(what, sizeof(std::uint64_t), sizeof(std::string));
    values.reserve(count);
    for (std::size_t i = 0; i < count; ++i)
      values.push_back(in.string(what + "[" + std::to_string(i) + "]"));
  } else if constexpr (std::is_same_v<T, bool>) {
    const std::size_t count = in.count(what, 1, 1);
    values.reserve(count);
    for (std::size_t i = 0; i < count; ++i) values.push_back(in.boolean(what));
  } else {
    values.resize(in.count(what, sizeof(T), sizeof(T)));
    if (!values.empty()) in.bytes(values.data(), values.size() * sizeof(T), what);
  }
  return values;
}

GgufArray read_array(GgufHeaderReader& in, const std::string& what) {
  const std::uint64_t from = in.at();
  const std::size_t type = read_value_type(in, "the elements of " + what);
  if (type == kGgufArray) in.refuse(from, what, "no array of arrays", "one");
  return read_alternative<GgufArray>(type, [&]<class V>(std::type_identity<V>) {
    if constexpr (std::is_same_v<V, NoArray>)
      return NoArray{};
    else
      return read_elements<typename V::value_type>(in, what);
  });
}

GgufValue read_value(GgufHeaderReader& in, const std::string& what) {
  const std::size_t type = read_value_type(in, what);
  return read_alternative<GgufValue>(type, [&]<class V>(std::type_identity<V>) {
    if constexpr (std::is_same_v<V, std::string>)
      return in.string(what);
    else if constexpr (std::is_same_v<V, bool>)
      return in.boolean(what);
    else if constexpr (std::is_same_v<V, GgufArray>)
      return read_array(in, what);
    else
      return in.number<V>(what);
  });
}

std::vector<std::int64_t> read_shape(GgufHeaderReader& in, const std::string& what) {
  const std::uint64_t from = in.at();
  const auto rank = in.number<std::uint32_t>(what);
  if (rank > kGgufDimensions)
    in.refuse(from, "the number of dimensions of " + what,
              "at most " + std::to_string(kGgufDimensions), std::to_string(rank));
  std::vector<std::int64_t> shape(rank);
  for (std::int64_t& size : shape) {
    const std::uint64_t at = in.at();
    size = in.number<std::int64_t>(what);
    if (size < 0) in.refuse(at, "a size of " + what, "0 or more", std::to_string(size));
  }
  std::ranges::reverse(shape);
  return shape;
}

// Bytes of a tensor by its type and shape.
std::uint64_t tensor_bytes(const GgufHeaderReader& in, std::uint64_t from, const GgufTensor& tensor,
                           const std::string& what) {
  const BlockFormat& format = format_of(tensor.type);
  if (tensor.row_weights() % format.weights != 0)
    in.refuse(from, "the rows of " + what,
              "a multiple of " + std::to_string(format.weights) + " weights for " +
                  std::string(format.name),
              std::to_string(tensor.row_weights()));
  // A size of 0 does not excuse the others: strides are products of them.
  std::int64_t most = 8;  // bytes of a float64, the largest weight there is
  bool fits = true;
  for (const std::int64_t size : tensor.shape)
    fits = fits && !__builtin_mul_overflow(most, std::max<std::int64_t>(size, 1), &most);
  if (!fits) in.refuse(from, "the shape of " + what, "fewer than 2^60 weights", "more");
  return static_cast<std::uint64_t>(tensor.elements() / format.weights) * format.bytes;
}

// One entry; its offset still counts from where the tensors begin.
GgufTensor read_tensor(GgufHeaderReader& in, std::uint64_t alignment) {
  const std::uint64_t from = in.at();
  GgufTensor tensor;
  tensor.name = in.name("the name of a tensor");
  const std::string what = "tensor " + shown(tensor.name);
  tensor.shape = read_shape(in, what);
  const std::uint64_t type_at = in.at();
  const auto number = in.number<std::uint32_t>(what);
  const BlockFormat* format = find_block_format(number);
  if (format == nullptr)
    in.refuse(type_at, "the type of " + what, "a type of the GGUF format that Heddle knows",
              block_type_text(number));
  tensor.type = format->type;
  tensor.bytes = tensor_bytes(in, from, tensor, what);
  const std::uint64_t offset_at = in.at();
  tensor.offset = in.number<std::uint64_t>(what);
  if (tensor.offset % alignment != 0)
    in.refuse(offset_at, "the offset of " + what, "a multiple of " + std::to_string(alignment),
              std::to_string(tensor.offset));
  return tensor;
}

// Turns offsets into places in the file. `end` is its length, `data` where tensors may begin.
void place_tensors(const std::string& path, std::vector<GgufTensor>& tensors, std::uint64_t data,
                   std::uint64_t end) {
  for (GgufTensor& tensor : tensors) {
    std::uint64_t begins = 0, ends = 0;
    if (__builtin_add_overflow(data, tensor.offset, &begins) ||
        __builtin_add_overflow(begins, tensor.bytes, &ends) || ends > end)
      fail_io(path,
              "ends before its tensor " + shown(tensor.name) + " does: it is cut short, or damaged",
              std::to_string(tensor.bytes) + " bytes at offset " + std::to_string(data) + " + " +
                  std::to_string(tensor.offset),
              std::to_string(end) + " bytes");
    tensor.offset = begins;
  }
}

void check_overlaps(const std::string& path, const std::vector<GgufTensor>& tensors) {
  std::vector<const GgufTensor*> sorted;
  sorted.reserve(tensors.size());
  for (const GgufTensor& tensor : tensors)
    if (tensor.bytes > 0) sorted.push_back(&tensor);
  std::ranges::sort(sorted, {}, [](const GgufTensor* t) { return t->offset; });
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    const GgufTensor& before = *sorted[i - 1];
    if (sorted[i]->offset < before.offset + before.bytes)
      fail_io(path, "tensor " + shown(sorted[i]->name) + " overlaps tensor " + shown(before.name),
              "offset " + std::to_string(before.offset + before.bytes) + " or more",
              std::to_string(sorted[i]->offset));
  }
}

void check_names(const std::string& path, const std::vector<GgufTensor>& tensors) {
  std::set<std::string_view> names;
  for (const GgufTensor& tensor : tensors)
    if (!names.insert(tensor.name).second)
      fail_io(path, "the tensor " + shown(tensor.name) + " comes twice");
}

void refuse_parts(const std::string& path, const GgufMetadata& metadata) {
  const std::int64_t parts = metadata.integer_or("split.count", 0);
  if (parts > 1)
    fail_io(path, "is one part of a model that was split",
            "the whole model in one file: llama-gguf-split --merge FIRST-PART WHOLE joins them",
            "one of " + std::to_string(parts) + " parts");
}

GgufHeader parse_gguf_header(GgufHeaderReader& in, std::uint64_t length) {
  GgufHeader header;
  header.metadata = GgufMetadata(in.path());
  check_magic(in);
  header.version = read_version(in);
  const std::size_t tensors = in.count("the list of tensors", kSmallestTensor, kTensorMemory);
  const std::size_t keys = in.count("the list of keys", kSmallestKey, kKeyMemory);
  for (std::size_t i = 0; i < keys; ++i) {
    std::string key = in.name("a key");
    GgufValue value = read_value(in, "the value of key " + shown(key));
    header.metadata.add(std::move(key), std::move(value));
  }
  refuse_parts(in.path(), header.metadata);
  const std::uint64_t alignment = gguf_alignment(header.metadata);
  header.tensors.reserve(tensors);
  for (std::size_t i = 0; i < tensors; ++i) header.tensors.push_back(read_tensor(in, alignment));
  const std::uint64_t data = round_up(in.at(), alignment);
  place_tensors(in.path(), header.tensors, data, length);
  check_names(in.path(), header.tensors);
  check_overlaps(in.path(), header.tensors);
  return header;
}

}  // namespace

std::int64_t GgufTensor::elements() const noexcept {
  std::int64_t product = 1;
  for (const std::int64_t size : shape) product *= size;
  return product;
}

std::uint64_t gguf_alignment(const GgufMetadata& metadata) {
  constexpr const char* kKey = "general.alignment";
  constexpr std::int64_t kLargest = std::int64_t{1} << 31;
  const std::int64_t alignment = metadata.integer_or(kKey, kGgufAlignment);
  if (alignment < 1 || alignment > kLargest || (alignment & (alignment - 1)) != 0)
    metadata.refuse(kKey, "a power of two from 1 to 2^31");
  return static_cast<std::uint64_t>(alignment);
}

GgufHeader read_gguf_header(const Descriptor& file, const std::string& path, std::uint64_t length) {
  return with_stage("reading " + path, [&] {
    GgufHeaderReader in(file, path, length);
    return parse_gguf_header(in, length);
  });
}

}  // namespace heddle::io
