// GGUF: one file with a model's weights, mostly quantised, and everything else it needs: its sizes,
// its tokenizer, its chat template, as metadata. Versions 2 and 3, little-endian.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/tensor.h"
#include "io/files/descriptor.h"
#include "io/files/mapping.h"
#include "io/gguf/gguf_header.h"
#include "io/gguf/gguf_metadata.h"

namespace heddle::io {

// A file to read from. Opening it checks the whole header: sizes, types, overlaps, names that come
// twice, tensors that the file is too short for. The header is copied, the weights are mapped (see
// mapping.h) and decoded when they are asked for.
class GgufFile {
 public:
  explicit GgufFile(const std::string& path);

  const std::string& path() const noexcept { return path_; }
  std::uint32_t version() const noexcept { return header_.version; }
  const GgufMetadata& metadata() const noexcept { return header_.metadata; }
  const std::vector<GgufTensor>& tensors() const noexcept { return header_.tensors; }
  bool contains(std::string_view name) const { return index_.contains(name); }
  const GgufTensor& tensor(std::string_view name) const;  // throws Error, naming the nearest

  // As the file has them, without a copy. Valid as long as this object.
  std::span<const std::uint8_t> bytes(const GgufTensor& tensor) const;
  // Rows of a tensor as floats: values.size() / row_weights() of them from `first` on. Throws Error
  // for a type that is not decoded and for rows that are not there.
  void read_rows(const GgufTensor& tensor, std::int64_t first, std::span<float> values) const;
  // All of it, as f32 or rounded to bf16. Its pages of the file are given back.
  Tensor load(std::string_view name, DType type = DType::f32) const;

 private:
  void read_rounded(const GgufTensor& tensor, std::span<bf16> values) const;

  std::string path_;
  Descriptor file_;
  std::uint64_t length_ = 0;
  GgufHeader header_;
  std::map<std::string_view, std::size_t, std::less<>> index_;  // names are those of header_
  Mapping mapping_;
};

}  // namespace heddle::io
