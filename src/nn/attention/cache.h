// Keys and values of tokens that were already seen, for generation. No gradients.
#pragma once

#include <cstdint>
#include <span>

#include "heddle/tensor.h"
#include "nn/attention/config.h"

namespace heddle::nn {

struct CacheSize {
  std::int64_t batch = 1;
  std::int64_t positions = 0;  // tokens of a sequence, at most
  std::int64_t block = 1;      // tokens of one call, at most; matters with look_back only
};

// Self-attention: one row per token, in the order of the tokens. With look_back there is room for
// look_back + block rows, and when it is used up the last look_back rows move to the front: memory
// does not grow with the sequence, rows stay side by side, and with blocks of B tokens a token
// costs look_back / B moved rows. Cross-attention: the keys and values of the memory, kept as they
// are.
class KvCache {
 public:
  // Throws Error when the configuration cannot use a cache.
  KvCache(const AttentionConfig& config, const CacheSize& size, DType dtype = DType::f32,
          Device device = Device::cpu);

  // k, v: [B, n, G, ...] as the fused op takes them (rotated); documents: [B, n], or undefined in
  // every call.
  void append(const Tensor& k, const Tensor& v, const Tensor& documents = {});
  // For cross-attention: all keys and values at once.
  void hold(const Tensor& k, const Tensor& v, const Tensor& documents = {});
  void clear();
  // Sequence i goes on as the former sequence rows[i]; the batch becomes as large as there are
  // rows. Throws Error for a row that is not there.
  void reorder(std::span<const std::int64_t> rows);

  bool empty() const { return next_ == 0; }
  std::int64_t next_position() const { return next_; }             // of the token to come
  std::int64_t first_position() const { return next_ - stored_; }  // of the first row
  std::int64_t capacity() const { return capacity_; }
  std::int64_t bytes() const;

  Tensor keys() const;       // [B, rows, G, ...]
  Tensor values() const;     // [B, rows, G, ...]
  Tensor documents() const;  // [B, rows] i64, or undefined

 private:
  void make_room(std::int64_t tokens);
  void check_block(const Tensor& k, const Tensor& v, const Tensor& documents) const;

  CacheSize size_;
  std::int64_t look_back_ = -1;  // -1: all
  std::int64_t capacity_ = 0;
  std::int64_t stored_ = 0;  // rows in use
  std::int64_t next_ = 0;
  Tensor k_, v_, documents_;
};

}  // namespace heddle::nn
