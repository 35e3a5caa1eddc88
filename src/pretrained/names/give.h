// The way back of take.h: tensors as files have them, out of those that were taken from them.
#pragma once

#include <span>
#include <string_view>

#include "pretrained/family.h"

namespace heddle::pretrained {

// A tensor that a rule took, as the model has it.
struct Taken {
  Take take = nullptr;
  Tensor tensor;
};

// `parts` are all that the table takes from the tensor `name`. Throws Error where one is missing:
// no file has keys without queries.
Tensor given(std::string_view name, std::span<const Taken> parts, const model::ModelConfig& config);

// Rows of queries or keys in the order of the other pairing of rotary positions; or the gains of
// their norm. source: [H D, C] or [H D], or [D].
Tensor paired_otherwise(const Tensor& source, const nn::AttentionConfig& attention,
                        ops::Pairing from);

}  // namespace heddle::pretrained
