// Attention of one query of each sequence, as generation has it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "backend/cuda/held.h"
#include "heddle/dtype.h"
#include "ops/attention/cuda/problem.h"

namespace heddle::cuda::attention {

inline constexpr int kOneQueryHeads = 16;  // query heads of a key head, at most

// The keys of one key head in pieces of kPieceKeys, a block for each; the last one that is through
// puts them together. The pieces are those of the other kernels for few queries.
struct OneQuery {
  Problem p;
  float exponent = 0;                 // a product times this is an exponent of two
  std::uint32_t* counters = nullptr;  // [B, G] (counters_of)

  // The work of the same kernel before that (FewStep): where `at` is not null, keys and values of
  // this token go to row at[0] of k and v, the keys and the queries turned if there are pairs.
  const std::int32_t* at = nullptr;
  int pairs = 0, positions = 0;
  bool interleaved = false;
  const float* cos = nullptr;
  const float* sin = nullptr;
  const bf16* new_q = nullptr;  // before they are turned, by their strides
  const bf16* new_k = nullptr;
  const bf16* new_v = nullptr;
  RowStrides new_q_strides, new_k_strides, new_v_strides;
  bf16* turned_q = nullptr;  // dense
  bf16* turned_k = nullptr;
};

bool fits_one_query(const Problem& p);  // bf16, dot products
void set_step(const FewStep& step, OneQuery& q);
// Whether the step and the attention behind it touch different memory where they must.
bool may_be_one(const OneQuery& q, const FewStep& step);
void one_query(const OneQuery& q, cudaStream_t stream);

}  // namespace heddle::cuda::attention
