// Where the operands of attention lie and what its rows see, for the kernels.
#pragma once

#include "backend/cpu/activations.h"
#include "ops/attention/attention.kernels.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace attention_detail {

inline constexpr std::int64_t kLd = kKeyBlock;  // row stride of tiles

inline std::int64_t smaller(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
inline std::int64_t larger(std::int64_t a, std::int64_t b) { return a > b ? a : b; }

template <class S>
inline constexpr DType kStorage = dtype_of<S>;
template <class S>
inline constexpr DType kCompute = dtype_of<Compute<S>>;

// Hands out pieces of a thread's scratch, each aligned to 64 bytes.
class Scratch {
 public:
  explicit Scratch(const AttentionArgs& a)
      : next_(static_cast<char*>(a.scratch) + thread_index() * a.scratch_bytes) {}
  template <class T>
  T* take(std::int64_t count) {
    char* piece = next_;
    next_ += (count * static_cast<std::int64_t>(sizeof(T)) + 63) / 64 * 64;
    return reinterpret_cast<T*>(piece);
  }

 private:
  char* next_;
};

// A block of queries of one head, and where its rows lie.
struct Rows {
  std::int64_t batch, head, first, count;
};

template <class S>
class Problem {
 public:
  using C = Compute<S>;

  explicit Problem(const AttentionArgs& args)
      : a(args),
        s(args.shape),
        k_bytes_(static_cast<std::int64_t>(a.gemm->packed_bytes(s.width, kKeyBlock))),
        v_bytes_(static_cast<std::int64_t>(a.gemm->packed_bytes(kKeyBlock, s.value_width))) {}

  const AttentionArgs& a;
  const AttentionShape& s;

  std::int64_t key_head(std::int64_t head) const { return head / (s.heads / s.key_heads); }
  std::int64_t key_count(std::int64_t block) const {
    return smaller(kKeyBlock, s.keys - block * kKeyBlock);
  }
  Rows rows(std::int64_t batch, std::int64_t head, std::int64_t block) const {
    const std::int64_t first = block * kQueryBlock;
    return {batch, head, first, smaller(kQueryBlock, s.queries - first)};
  }

  // ---- where things lie ----
  const S* q(const Rows& r) const { return at<S>(a.q, r, s.width); }
  S* y(const Rows& r) const { return const_cast<S*>(at<S>(a.y, r, s.value_width)); }
  const S* k(std::int64_t batch, std::int64_t head, std::int64_t key) const {
    return static_cast<const S*>(a.k) + ((batch * s.keys + key) * s.key_heads + head) * s.width;
  }
  const S* v(std::int64_t batch, std::int64_t head, std::int64_t key) const {
    return static_cast<const S*>(a.v) +
           ((batch * s.keys + key) * s.key_heads + head) * s.value_width;
  }
  std::int64_t row_number(const Rows& r) const {
    return (r.batch * s.heads + r.head) * s.queries + r.first;
  }
  C* row_sum(const Rows& r) const { return static_cast<C*>(a.row_sum) + row_number(r); }
  char* key_block(void* base, std::int64_t bytes, std::int64_t batch, std::int64_t head,
                  std::int64_t block) const {
    const std::int64_t number = (batch * s.key_heads + head) * key_blocks(s.keys) + block;
    return static_cast<char*>(base) + number * bytes;
  }
  char* packed_k(std::int64_t batch, std::int64_t head, std::int64_t block) const {
    return key_block(a.packed_k, k_bytes_, batch, head, block);
  }
  char* packed_v(std::int64_t batch, std::int64_t head, std::int64_t block) const {
    return key_block(a.packed_v, v_bytes_, batch, head, block);
  }
  // Entry of the bias for (query row r of the block, key 0).
  const C* bias_row(const Rows& r, std::int64_t row) const {
    if (a.relative_bias == nullptr) return nullptr;
    const std::int64_t length = s.queries + s.keys - 1;
    return static_cast<const C*>(a.relative_bias) + r.head * length + s.queries - 1 -
           (r.first + row);
  }

  // ---- what a row sees ----
  std::int64_t first_key(const Rows& r, std::int64_t row) const {
    return a.first_key[r.batch * s.queries + r.first + row];
  }
  std::int64_t last_key(const Rows& r, std::int64_t row) const {
    return a.last_key[r.batch * s.queries + r.first + row];
  }
  // The keys that any row of the block sees; empty when first >= last.
  void span(const Rows& r, std::int64_t& first, std::int64_t& last) const {
    first = s.keys;
    last = 0;
    for (std::int64_t i = 0; i < r.count; ++i)
      if (first_key(r, i) < last_key(r, i)) {
        first = smaller(first, first_key(r, i));
        last = larger(last, last_key(r, i));
      }
  }
  // Columns [begin, end) of key block `block` that a row sees.
  void columns(const Rows& r, std::int64_t row, std::int64_t block, std::int64_t& begin,
               std::int64_t& end) const {
    const std::int64_t origin = block * kKeyBlock;
    begin = larger(first_key(r, row) - origin, 0);
    end = smaller(last_key(r, row) - origin, key_count(block));
  }

 private:
  template <class T>
  const T* at(const void* base, const Rows& r, std::int64_t width) const {
    return static_cast<const T*>(base) +
           ((r.batch * s.queries + r.first) * s.heads + r.head) * width;
  }

  std::int64_t k_bytes_, v_bytes_;
};

// C[m, n] (+)= A · packed B, on this thread.
template <class S>
void product(const GemmPath& gemm, std::int64_t m, std::int64_t n, std::int64_t k,
             const MatrixRef& left, const void* packed, Compute<S>* out, std::int64_t stride,
             bool accumulate) {
  GemmJob job;
  job.m = m;
  job.n = n;
  job.k = k;
  job.a = left;
  job.packed_b = packed;
  job.c = out;
  job.c_dtype = kCompute<S>;
  job.c_row_stride = stride;
  job.epilogue.accumulate = accumulate;
  gemm.run(job);
}

}  // namespace attention_detail
}  // namespace heddle::cpu::HEDDLE_ISA
