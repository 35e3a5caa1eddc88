// Parts of tensors as files have them: several matrices in one, transposed, or with 1 taken off.
#pragma once

#include "heddle/tensor.h"
#include "model/config.h"
#include "pretrained/family.h"

namespace heddle::pretrained {

// source: [rows, C]; the last rows, as many as the model has positions. RoBERTa's and BART's tables
// begin with rows that no position has.
Tensor last_positions(const Tensor& source, const model::ModelConfig& config);
// Two tensors of a file as one of the model's, in any way but Join::first_row.
Tensor joined(const Tensor& first, const Tensor& second, Join join);
// table: [rows, C], others: [.., C]; rows of the first with the first of the others added to each.
Tensor plus_first_row(const Tensor& table, const Tensor& others);

// source: [1, rows, C] or [rows, C]; the same as [rows, C].
Tensor as_rows(const Tensor& source, const model::ModelConfig& config);
// Times ½: of two classifiers whose mean counts.
Tensor halved(const Tensor& source, const model::ModelConfig& config);
// source: [1, rows, C], positions of the tokens before an image's patches and of a square of
// patches. Where the model's image has more or fewer of them, they are interpolated (bicubic).
Tensor image_positions(const Tensor& source, const model::ModelConfig& config);

// One of the three matrices that a product to queries, keys and values is made of.
enum class Part { query, key, value };

Tensor transposed(const Tensor& source, const model::ModelConfig& config);
// A gain that the file has as its difference from 1.
Tensor plus_one(const Tensor& source, const model::ModelConfig& config);

// source: [2 F, C] or [2 F], rows of gate and up in turns; gate's rows first, then up's.
Tensor rows_in_turns(const Tensor& source, const model::ModelConfig& config);
// The same of a matrix that lies transposed, [C, 2 F].
Tensor transposed_in_turns(const Tensor& source, const model::ModelConfig& config);

// A vector that the file has as a matrix of one row.
Tensor as_vector(const Tensor& source, const model::ModelConfig& config);
// The rows from `first` on: tables of positions whose first rows nothing reads.
Tensor rows_from(std::int64_t first, const Tensor& source);

template <std::int64_t first>
Tensor from_row(const Tensor& source, const model::ModelConfig&) {
  return rows_from(first, source);
}

// source: [(H + 2 G) D, C] or [(H + 2 G) D], rows of all queries, all keys, all values.
Tensor rows_of(Part part, const Tensor& source, const model::ModelConfig& config);
// source: [G (H/G + 2) D, C] or without C: for each of G key heads its queries, its key, its value.
// With as many key heads as heads that is [H, 3, D].
Tensor rows_of_groups(Part part, const Tensor& source, const model::ModelConfig& config);

template <Part part>
Tensor fused(const Tensor& source, const model::ModelConfig& config) {
  return rows_of(part, source, config);
}
template <Part part>
Tensor fused_transposed(const Tensor& source, const model::ModelConfig& config) {
  return rows_of(part, source.rank() == 2 ? transposed(source, config) : source, config);
}
template <Part part>
Tensor fused_by_group(const Tensor& source, const model::ModelConfig& config) {
  return rows_of_groups(part, source, config);
}

}  // namespace heddle::pretrained
