#include "io/gguf/gguf_write.h"

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/divide.h"
#include "base/parallel_each.h"
#include "heddle/error.h"
#include "heddle/ops/copy.h"
#include "io/errors.h"
#include "io/gguf/gguf_header.h"
#include "io/gguf/quantize.h"
#include "io/utf8.h"

namespace heddle::io {
namespace {

constexpr std::string_view kQuantVersionKey = "general.quantization_version";
constexpr std::uint32_t kQuantVersion = 2;
constexpr std::size_t kLongestTensorName = 63;  // of the programs that read these files
// A piece of a tensor on its way to the file, and what one thread takes of it at a time. Both are
// multiples of every block.
constexpr std::int64_t kPieceWeights = 1 << 20;
constexpr std::int64_t kThreadWeights = 1 << 14;

// The bytes of a header, in the order in which they are added.
class HeaderBytes {
 public:
  template <class T>
    requires std::is_arithmetic_v<T>
  void add(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void add(const std::string& text) {
    add(static_cast<std::uint64_t>(text.size()));
    bytes_ += text;
  }
  void add(const GgufArray& array) {
    add(static_cast<std::uint32_t>(array.index()));
    std::visit(
        [&](const auto& values) {
          if constexpr (requires { values.size(); }) {
            add(static_cast<std::uint64_t>(values.size()));
            for (const auto& value : values) add(value);
          }
        },
        array);
  }

  const std::string& bytes() const noexcept { return bytes_; }

 private:
  std::string bytes_;
};

void check_name(const std::string& path, const std::string& what, const std::string& name,
                std::size_t longest) {
  if (name.empty() || name.size() > longest || first_invalid_utf8(name) != std::string::npos)
    fail_io(path, "cannot hold the name of " + what,
            "UTF-8, 1 to " + std::to_string(longest) + " bytes", shown(name));
}

// Bytes of a tensor in the file.
std::uint64_t planned_bytes(const std::string& path, const GgufTensorPlan& tensor) {
  const std::string what = "tensor " + shown(tensor.name);
  const auto number = static_cast<std::uint32_t>(tensor.type);
  if (!can_quantize(tensor.type))
    fail_io(path, what + " has a type that Heddle does not write", writable_types_text(),
            block_type_text(number));
  if (tensor.shape.rank() > static_cast<int>(kGgufDimensions))
    fail_io(path, what + " has too many dimensions", "at most " + std::to_string(kGgufDimensions),
            to_string(tensor.shape));
  const BlockFormat& format = format_of(tensor.type);
  const std::int64_t elements = elements_of(tensor.shape);
  const std::int64_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
  if (row % format.weights != 0)
    fail_io(path, what + " has rows that are no whole blocks",
            "a multiple of " + std::to_string(format.weights) + " weights for " +
                std::string(format.name),
            std::to_string(row));
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(elements / format.weights, std::int64_t{format.bytes}, &bytes))
    fail_io(path, what + " is too large", "less than 2^63 bytes", to_string(tensor.shape));
  return static_cast<std::uint64_t>(bytes);
}

std::string gguf_header_bytes(const std::string& path, const std::vector<GgufTensorPlan>& plan,
                              const GgufMetadata& metadata, std::uint64_t alignment) {
  HeaderBytes out;
  for (const char c : std::string_view("GGUF")) out.add(c);
  out.add(std::uint32_t{3});
  out.add(static_cast<std::uint64_t>(plan.size()));
  out.add(static_cast<std::uint64_t>(metadata.entries().size()));
  for (const auto& [key, value] : metadata.entries()) {
    check_name(path, "key " + shown(key), key, kGgufLongestName);
    if (const auto* array = std::get_if<GgufArray>(&value); array && array->index() == kGgufArray)
      fail_io(path, "cannot hold the value of key " + shown(key), "no array of arrays");
    out.add(key);
    out.add(static_cast<std::uint32_t>(value.index()));
    std::visit([&](const auto& v) { out.add(v); }, value);
  }
  std::set<std::string_view> names;
  std::uint64_t at = 0;
  for (const GgufTensorPlan& tensor : plan) {
    check_name(path, "tensor " + shown(tensor.name), tensor.name, kLongestTensorName);
    if (!names.insert(tensor.name).second)
      fail_io(path, "cannot hold the tensor " + shown(tensor.name) + " twice");
    const std::uint64_t bytes = planned_bytes(path, tensor);
    out.add(tensor.name);
    out.add(static_cast<std::uint32_t>(tensor.shape.rank()));
    for (int i = tensor.shape.rank(); i-- > 0;) out.add(tensor.shape[i]);
    out.add(static_cast<std::uint32_t>(tensor.type));
    out.add(at);
    if (__builtin_add_overflow(at, bytes, &at) || at > std::uint64_t{1} << 62)
      fail_io(path, "cannot hold tensors of more than 2^62 bytes");
    at = round_up(at, alignment);
  }
  return out.bytes();
}

// The block type whose blocks are single numbers of that type.
std::optional<BlockType> plain_type(DType dtype) {
  switch (dtype) {
    case DType::f32: return BlockType::f32;
    case DType::bf16: return BlockType::bf16;
    case DType::f16: return BlockType::f16;
    case DType::f64: return BlockType::f64;
    default: return std::nullopt;
  }
}

// Weights [first, first + count) of a tensor as the file holds them.
std::vector<std::uint8_t> converted(std::span<const std::uint8_t> raw, BlockType from, BlockType to,
                                    std::int64_t first, std::int64_t count) {
  const BlockFormat& format = format_of(to);
  const std::size_t wide = format_of(from).bytes;
  const auto sized = [](std::int64_t n) { return static_cast<std::size_t>(n); };
  std::vector<std::uint8_t> out(sized(count) / format.weights * format.bytes);
  const std::int64_t chunks = ceil_div(count, kThreadWeights);
  parallel_each(chunks, 1, [&](std::int64_t chunk) {
    const std::int64_t begin = chunk * kThreadWeights;
    const std::int64_t n = std::min(kThreadWeights, count - begin);
    std::vector<float> values(sized(n));
    dequantize(from, raw.subspan(sized(first + begin) * wide, sized(n) * wide), values);
    quantize(to, values,
             std::span(out).subspan(sized(begin) / format.weights * format.bytes,
                                    sized(n) / format.weights * format.bytes),
             first + begin);
  });
  return out;
}

}  // namespace

GgufWriter::GgufWriter(const std::string& path, std::vector<GgufTensorPlan> plan,
                       GgufMetadata metadata)
    : path_(path), plan_(std::move(plan)), alignment_(gguf_alignment(metadata)), file_(path) {
  const auto blocks = [](const GgufTensorPlan& tensor) {
    const BlockFormat* format = find_block_format(static_cast<std::uint32_t>(tensor.type));
    return format != nullptr && format->weights > 1;
  };
  if (std::ranges::any_of(plan_, blocks) && !metadata.has(kQuantVersionKey))
    metadata.add(std::string(kQuantVersionKey), kQuantVersion);
  file_.write(gguf_header_bytes(path_, plan_, metadata, alignment_));
  if (!plan_.empty()) pad();
}

void GgufWriter::pad() {
  constexpr std::uint64_t kStep = 4096;
  const std::string zeros(kStep, '\0');
  std::uint64_t left = (alignment_ - file_.bytes_written() % alignment_) % alignment_;
  for (; left > 0; left -= std::min(left, kStep))
    file_.write(zeros.data(), static_cast<std::size_t>(std::min(left, kStep)));
}

void GgufWriter::write(const Tensor& tensor) {
  if (failed_) fail_io(path_, "cannot go on after a tensor that could not be written");
  if (next_ == plan_.size()) fail_io(path_, "was given more tensors than were planned");
  const GgufTensorPlan& planned = plan_[next_];
  const auto from = tensor.defined() ? plain_type(tensor.dtype()) : std::nullopt;
  if (!from || tensor.shape() != planned.shape || tensor.device().is_meta())
    fail_io(path_, "tensor " + shown(planned.name) + " is not as planned",
            "f32, bf16, f16 or f64 " + to_string(planned.shape), tensor.describe());
  const Tensor plain = ops::contiguous(tensor.detach().to(Device::cpu));
  const std::int64_t elements = plain.elements();
  failed_ = true;
  if (elements > 0) {
    const std::span raw(static_cast<const std::uint8_t*>(plain.raw()), plain.bytes());
    for (std::int64_t first = 0; first < elements; first += kPieceWeights) {
      try {
        const auto bytes =
            converted(raw, *from, planned.type, first, std::min(kPieceWeights, elements - first));
        file_.write(bytes.data(), bytes.size());
      } catch (const Error& e) {
        if (e.code() != ErrorCode::invalid_argument) throw;
        fail_io(path_, "tensor " + shown(planned.name) + ": " + e.problem(), e.expected(), e.got());
      }
    }
  }
  pad();
  failed_ = false;
  ++next_;
}

void GgufWriter::commit() {
  if (next_ != plan_.size())
    fail_io(path_, "was given too few tensors", std::to_string(plan_.size()),
            std::to_string(next_));
  file_.commit();
}

}  // namespace heddle::io
