// The format of model weights: 8 bytes with the length of a JSON header, the header (name -> dtype,
// shape, offsets), then the bytes of all tensors without gaps.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/tensor.h"
#include "io/files/descriptor.h"
#include "io/files/file.h"

namespace heddle::io {

class Json;
using Metadata = std::map<std::string, std::string>;

struct TensorEntry {
  std::string name;
  std::string dtype;  // as the file has it: "BF16"; it may be one Heddle does not know
  std::vector<std::int64_t> shape;  // its rank may be above kMaxRank
  std::uint64_t offset = 0;         // of its first byte in the file
  std::uint64_t bytes = 0;

  std::optional<DType> known_dtype() const noexcept;
};

// A file to read from. Opening it checks the whole header: sizes, types, overlaps, gaps, duplicate
// names, missing or left-over bytes, and the checksum of headers that have one. Tensors are read on
// request, straight into their own memory; there is no mapping, because a file that shrinks under a
// mapping kills the process.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path);

  const std::string& path() const noexcept { return path_; }
  const Metadata& metadata() const noexcept { return metadata_; }
  // Whether Heddle wrote the header with a checksum: then it is as it was written.
  bool sealed() const { return metadata_.contains("heddle.header_crc32"); }
  const std::vector<TensorEntry>& entries() const noexcept { return entries_; }  // in file order
  bool contains(std::string_view name) const;
  const TensorEntry& entry(std::string_view name) const;  // throws Error, naming the nearest

  // A copy in the file's type. Throws Error for a type or a rank that Heddle does not have.
  Tensor load(std::string_view name) const;
  // One of those that a tensor holds along its first dimension: its bytes alone are read. Throws
  // Error where there is none at this place.
  Tensor load_part(std::string_view name, std::int64_t place) const;
  // The same into a tensor that exists: contiguous, of that type and shape.
  void load_into(std::string_view name, Tensor& destination) const;

 private:
  void read_header();
  void read_metadata(const Json& value);
  DType checked_dtype(const TensorEntry& entry) const;
  Shape checked_shape(const TensorEntry& entry) const;
  // As many bytes of the entry as the destination has, from `first` of them on.
  void read_bytes(const TensorEntry& entry, Tensor& destination, std::uint64_t first = 0) const;

  std::string path_;
  Descriptor file_;
  Metadata metadata_;
  std::vector<TensorEntry> entries_;
  std::map<std::string, std::size_t, std::less<>> index_;
};

struct TensorPlan {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
};

// Writes one tensor at a time, so that what is written need never be in memory as a whole. The same
// plan, metadata and values give the same bytes. Nothing is at `path` before commit(). With
// "format": "heddle" in the metadata the header gets a checksum (safetensors_seal.h).
class SafetensorsWriter {
 public:
  SafetensorsWriter(const std::string& path, std::vector<TensorPlan> plan,
                    const Metadata& metadata = {});

  void write(const Tensor& tensor);  // the next one of the plan; any strides
  void commit();                     // throws Error unless all were written

 private:
  std::string path_;
  std::vector<TensorPlan> plan_;
  std::size_t next_ = 0;
  AtomicFile file_;
};

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

void write_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                       const Metadata& metadata = {});

}  // namespace heddle::io
