// Parts of tensors as files have them: several matrices in one, transposed, or with 1 taken off.
#pragma once

#include "heddle/tensor.h"
#include "model/config.h"

namespace heddle::pretrained {

// source: [rows, C]; the last rows, as many as the model has positions. RoBERTa's and BART's tables
// begin with rows that no position has.
Tensor last_positions(const Tensor& source, const model::ModelConfig& config);
// table: [rows, C], others: [.., C]; rows of the first with the first of the others added to each.
Tensor plus_first_row(const Tensor& table, const Tensor& others);

// One of the three matrices that a product to queries, keys and values is made of.
enum class Part { query, key, value };

Tensor transposed(const Tensor& source, const model::ModelConfig& config);
// A gain that the file has as its difference from 1.
Tensor plus_one(const Tensor& source, const model::ModelConfig& config);

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
