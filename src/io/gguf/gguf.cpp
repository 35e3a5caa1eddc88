#include "io/gguf/gguf.h"

#include <fcntl.h>

#include <algorithm>
#include <vector>

#include "base/parallel.h"
#include "heddle/error.h"
#include "io/errors.h"

namespace heddle::io {
namespace {

constexpr std::int64_t kDecodedAtOnce = 1 << 16;  // weights, on one thread

const BlockFormat& decoded_format(const std::string& path, const GgufTensor& tensor) {
  const BlockFormat& format = format_of(tensor.type);
  if (!format.decoded)
    fail_io(path, "tensor " + shown(tensor.name) + " has a type that Heddle does not decode",
            decoded_types_text(), block_type_text(static_cast<std::uint32_t>(tensor.type)));
  return format;
}

}  // namespace

GgufFile::GgufFile(const std::string& path)
    : path_(path),
      file_(open_regular(path, O_RDONLY)),
      length_(length_of(file_, path_)),
      header_(read_gguf_header(file_, path_, length_)),
      mapping_(file_, path_, length_) {
  for (std::size_t i = 0; i < header_.tensors.size(); ++i) index_[header_.tensors[i].name] = i;
}

const GgufTensor& GgufFile::tensor(std::string_view name) const {
  const auto found = index_.find(name);
  if (found != index_.end()) return header_.tensors[found->second];
  constexpr std::size_t kSearched = 4000;  // enough for any model, and quick
  std::string near;
  if (index_.size() <= kSearched) {
    std::vector<std::string_view> names;
    names.reserve(index_.size());
    for (const GgufTensor& t : header_.tensors) names.emplace_back(t.name);
    near = nearest_name(name, names);
  }
  fail_io(path_, "has no tensor " + shown(name), {},
          near.empty() ? std::to_string(index_.size()) + " others"
                       : "a tensor " + shown(near) + " among " + std::to_string(index_.size()));
}

std::span<const std::uint8_t> GgufFile::bytes(const GgufTensor& tensor) const {
  check_length(file_, path_, length_);
  return mapping_.bytes().subspan(static_cast<std::size_t>(tensor.offset),
                                  static_cast<std::size_t>(tensor.bytes));
}

void GgufFile::read_rows(const GgufTensor& tensor, std::int64_t first,
                         std::span<float> values) const {
  const BlockFormat& format = decoded_format(path_, tensor);
  const std::int64_t elements = tensor.elements(), row = tensor.row_weights();
  const auto wanted = static_cast<std::int64_t>(values.size());
  if (wanted == 0) return;
  if (row == 0 || wanted % row != 0 || first < 0 || first > elements / row ||
      wanted > elements - first * row)
    fail_io(path_, "tensor " + shown(tensor.name) + ": rows that it does not have",
            "whole rows of " + std::to_string(row) + " among " +
                std::to_string(row == 0 ? 0 : elements / row),
            std::to_string(wanted) + " weights from row " + std::to_string(first));

  // Rows hold whole blocks, so that a run of rows is a run of blocks.
  const std::span<const std::uint8_t> all = bytes(tensor);
  const std::int64_t blocks = wanted / format.weights, from = first * row / format.weights;
  const std::int64_t grain = std::max<std::int64_t>(1, kDecodedAtOnce / format.weights);
  parallel_ranges(blocks, grain, [&](std::int64_t begin, std::int64_t end) {
    const auto count = static_cast<std::size_t>(end - begin);
    dequantize(
        tensor.type,
        all.subspan(static_cast<std::size_t>(from + begin) * format.bytes, count * format.bytes),
        values.subspan(static_cast<std::size_t>(begin) * format.weights, count * format.weights));
  });
}

// Some rows at a time, so that no copy in f32 is as large as the tensor.
void GgufFile::read_rounded(const GgufTensor& tensor, std::span<bf16> values) const {
  const std::int64_t row = tensor.row_weights(), rows = tensor.elements() / row;
  const std::int64_t step = std::max<std::int64_t>(1, (std::int64_t{1} << 19) / row);
  std::vector<float> wide(static_cast<std::size_t>(std::min(step, rows) * row));
  for (std::int64_t first = 0; first < rows; first += step) {
    const std::int64_t count = std::min(step, rows - first) * row;
    read_rows(tensor, first, std::span(wide).first(static_cast<std::size_t>(count)));
    bf16* const to = values.data() + first * row;
    parallel_ranges(count, kDecodedAtOnce, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        to[i] = bf16::from_float(wide[static_cast<std::size_t>(i)]);
    });
  }
}

Tensor GgufFile::load(std::string_view name, DType type) const {
  if (type != DType::f32 && type != DType::bf16)
    fail(ErrorCode::dtype_mismatch, path_, "type to load weights in", "f32 or bf16",
         to_string(type));
  const GgufTensor& found = tensor(name);
  decoded_format(path_, found);  // before memory is taken
  Tensor values = Tensor::empty(Shape(found.shape), type);
  const auto elements = static_cast<std::size_t>(values.elements());
  if (elements == 0) return values;
  if (type == DType::bf16)
    read_rounded(found, {values.mutable_data<bf16>(), elements});
  else
    read_rows(found, 0, {values.mutable_data<float>(), elements});
  Mapping::forget(bytes(found));
  return values;
}

}  // namespace heddle::io
