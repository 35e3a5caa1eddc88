// Model inputs: a batch of sequences, pairs or images, with the targets to predict for them.
#pragma once

#include <array>
#include <cstdint>

#include "heddle/tensor.h"

namespace heddle::model {

inline constexpr std::int32_t kIgnore = -100;  // a target that counts for nothing

// Undefined where the task has no use for it. Sequences are padded at their end; what the padding
// holds does not matter, but it must be a valid token. On whatever device the model computes,
// lengths and documents stay on the CPU: the host makes masks from them.
struct Batch {
  Tensor tokens = {};     // [B, T] i32: what is read
  Tensor lengths = {};    // [B] i64: tokens of each; undefined: all T
  Tensor documents = {};  // [B, T] i64: tokens see those of the same number; undefined: all
  // [B] i64: of the prompts that attention.prefix sees both ways. It must be there with
  // attention.prefix and not without (see prompt.h).
  Tensor prefix_lengths = {};
  Tensor images = {};          // [B, channels, height, width] f32
  Tensor target_tokens = {};   // translate: [B, U] i32, begin y1 y2 …: what the decoder reads
  Tensor target_lengths = {};  // [B] i64
  // i32: [B, T] (language, tag, masked), [B, U] (translate: y1 y2 … end) or [B] (classify).
  Tensor targets = {};
  std::int64_t counted = 0;  // targets that are not kIgnore
};

// All tensors of a batch, for code that slices, moves or compares batches. Rows are sequences.
inline constexpr std::array kBatchTensors = {
    &Batch::tokens, &Batch::lengths,       &Batch::documents,      &Batch::prefix_lengths,
    &Batch::images, &Batch::target_tokens, &Batch::target_lengths, &Batch::targets};
static_assert(sizeof(Batch) == kBatchTensors.size() * sizeof(Tensor) + sizeof(Batch::counted),
              "a tensor is missing in kBatchTensors");

}  // namespace heddle::model
