// Writing GGUF files, version 3.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "heddle/shape.h"
#include "heddle/tensor.h"
#include "io/files/file.h"
#include "io/gguf/blocks.h"
#include "io/gguf/gguf_metadata.h"

namespace heddle::io {

struct GgufTensorPlan {
  std::string name;
  BlockType type = BlockType::f32;  // one that quantize() takes
  Shape shape;                      // at most 4 sizes; rows of whole blocks
};

// Writes one tensor at a time, so that what is written need never be in memory as a whole. The same
// plan, metadata and values give the same bytes. Nothing is at `path` before commit(). Tensors are
// aligned as general.alignment says, 32 bytes without it. Where a plan has blocks,
// general.quantization_version is added unless it is there: the format demands it.
class GgufWriter {
 public:
  GgufWriter(const std::string& path, std::vector<GgufTensorPlan> plan, GgufMetadata metadata = {});

  // The next one of the plan; f32, bf16, f16 or f64, any strides, converted to the planned type.
  // Throws Error for a weight that this type cannot hold, naming the tensor; part of it may be
  // written by then, so that the writer is of no more use.
  void write(const Tensor& tensor);
  void commit();  // throws Error unless all were written

 private:
  void pad();

  std::string path_;
  std::vector<GgufTensorPlan> plan_;
  std::size_t next_ = 0;
  bool failed_ = false;  // in the middle of a tensor
  std::uint64_t alignment_ = 0;
  AtomicFile file_;
};

}  // namespace heddle::io
