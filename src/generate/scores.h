// A model's raw scores for one sequence, as generation reads it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "model/model.h"

namespace heddle::generate {

struct ScoreRequest {
  std::span<const std::int32_t> tokens;       // what the model reads
  std::span<const std::int32_t> target = {};  // translate: what its decoder reads, begin first
  // With attention.prefix: the first so many tokens are the prompt. Absent: all, as in generation.
  std::optional<std::int64_t> prompt = {};
  Tensor images = {};  // [1, C, H, W] f32: what a model of images reads, and no tokens
  DType precision = DType::f32;
};

// [rows, scores] f32, or f64 with that precision: one row after each token (of the target, where
// there is one), or one row for a label of the whole. The tokens must be of the model's vocabulary.
// Throws Error, naming `where`, for parameters and scores that are not finite, and for a prompt
// that the model cannot use.
Tensor scores(const model::Model& model, const ScoreRequest& request, std::string_view where);

// Throws Error, in the name of `where`, when one of the values is NaN or infinite.
void check_finite(const Tensor& values, std::string_view where, std::string_view what);

}  // namespace heddle::generate
