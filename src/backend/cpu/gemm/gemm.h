// Matrix products on plain pointers: C = epilogue(A · B). A B that is used more than once is packed
// beforehand; any other is passed in its own layout.
//
// A path is one way to compute them: an instruction set and an operand type. f32 and bf16 operands
// accumulate in f32, f64 operands in f64. The order in which an element of C is summed depends on
// the shape, on the epilogue and on whether B is packed, so results are the same bits for any
// number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/cpu/isa.h"
#include "backend/cpu/threads.h"
#include "heddle/activation.h"
#include "heddle/dtype.h"

namespace heddle::cpu {

// A matrix of `rows` × `cols` whose element (r, c) is data[r * row_stride + c * col_stride],
// strides in elements. One of the strides is usually 1; any value is legal, also for views.
struct MatrixRef {
  const void* data = nullptr;
  DType dtype = DType::f32;
  std::int64_t row_stride = 0;
  std::int64_t col_stride = 1;
};

// Operations on the sums on their way to memory, in this order:
//   sum -> + bias[n] -> activation -> · factor -> + residual -> C or C +=
// The derivative of the activation can be stored too: it shares the exponential with the
// activation, and is all that a backward pass needs. Where C is bf16, gelu, gelu_tanh, silu and the
// derivatives of the latter two may be off by 2^-13 of themselves, derivatives near their zeros by
// 2^-13 of their parts (narrow_math.h).
struct Epilogue {
  const void* bias = nullptr;  // [N] in f32 (f64 when C is f64), or null
  Activation activation = Activation::none;
  void* derivative = nullptr;      // activation'(sum + bias), laid out as C, or null
  const void* factor = nullptr;    // like C and laid out as C, or null
  const void* residual = nullptr;  // same type as C, or null
  std::int64_t residual_stride = 0;
  bool accumulate = false;  // C += instead of C =; C in f32 or f64 only
};

// `batch` independent products of one shape. Batch strides are in elements for A and C, in bytes
// for the packed B (0: the same B for all).
struct GemmJob {
  std::int64_t m = 0, n = 0, k = 0;
  MatrixRef a;                     // [M, K], the path's operand type
  const void* packed_b = nullptr;  // what pack_b() wrote for [K, N]; or null, and then:
  MatrixRef b;                     // [K, N] with its own strides, one for all batches
  void* room_for_b = nullptr;      // packed_bytes(k, n) aligned to 64, where run() may pack it
  void* c = nullptr;               // [M, N], row-major with unit column stride
  DType c_dtype = DType::f32;      // f32 or bf16; f64 on f64 paths
  std::int64_t c_row_stride = 0;
  std::int64_t batch = 1, a_batch_stride = 0, b_batch_stride = 0, c_batch_stride = 0;
  Epilogue epilogue;  // pointers are for batch 0 and advance as C does; bias does not
};

// Other work that runs alongside products in the same section, such as sums of their operands.
struct OtherWork {
  std::int64_t chunks;
  FunctionRef<void(std::int64_t)> run;  // one chunk
};

struct GemmPath {
  // Bytes of a packed [K, N] matrix; a multiple of 64.
  std::size_t (*packed_bytes)(std::int64_t k, std::int64_t n);
  // B is [K, N] in f32, bf16 or f64 and is converted to the operand type (rounded to nearest even);
  // dst is aligned to 64 bytes. Runs on all threads.
  void (*pack_b)(std::int64_t k, std::int64_t n, const MatrixRef& b, void* dst);
  // m, n or k may be 0: with k = 0 the sums are zero and the epilogue still runs.
  void (*run)(const GemmJob& job);
  // Products that do not depend on each other, each as run() computes it, in one piece of work:
  // threads meet once at the end. A B that is not packed is packed first, once where neighbouring
  // jobs have the same one and the same room for it. A job may add to the C of an earlier one (its
  // residual is that C): if both are cut alike, a thread that has computed a part of one goes on
  // with that part of the other; else threads meet once more in between. `other` may be null.
  void (*run_all)(std::span<const GemmJob> jobs, const OtherWork* other);
};

// operand: f32, bf16 or f64. Every Isa has a path for each of them: a level without special
// instructions for a type uses the best lower one (the same for both pack_b and run).
const GemmPath& gemm_path(Isa isa, DType operand);

}  // namespace heddle::cpu
