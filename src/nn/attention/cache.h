// Keys and values of tokens that were already seen, for generation. No gradients.
#pragma once

#include <algorithm>
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

// The contents of a cache, for the fused op: token t, counted from first_position, is in row
// (first_row + t) mod rows of keys and values.
struct CachedRows {
  Tensor keys;       // [B, rows, G, ...]
  Tensor values;     // [B, rows, G, ...]
  Tensor documents;  // [B, rows] i64 in the order of the tokens, or undefined
  std::int64_t first_row = 0;
  std::int64_t first_position = 0;
};

// Self-attention: one row per token. With look_back the rows are a ring of look_back + block: a new
// token takes the place of the oldest one, nothing moves, and memory does not grow with the
// sequence. Rows are taken as tokens come, each time at least twice as many as there were: so
// memory follows what is used, not what could be, and moving them costs no more than writing them
// did. Cross-attention: the keys and values of the memory, kept as they are.
class KvCache {
 public:
  // Throws Error when the configuration cannot use a cache.
  KvCache(const AttentionConfig& config, const CacheSize& size, DType dtype = DType::f32,
          Device device = Device::cpu);

  // k, v: [B, n, G, ...] as the fused op takes them (rotated); documents: [B, n], or undefined in
  // every call.
  void append(const Tensor& k, const Tensor& v, const Tensor& documents = {});
  // The same in two steps, for callers that may still fail: the rows are written and shown, but the
  // tokens count only with commit(). Without it the cache is as before.
  CachedRows stage(const Tensor& k, const Tensor& v, const Tensor& documents = {});
  void commit();
  // The same for a step that a device repeats (backend/repeat.h): the place of its one token is a
  // number of the device, [1] i32, and all rows that were taken are shown. Between reserve() and
  // advance(), which are the host's part, it changes nothing but memory.
  bool can_step() const;  // the token comes behind all others: no ring has to turn
  void reserve(std::int64_t tokens) { take_rows(std::min(next_ + tokens, capacity_)); }
  CachedRows put(const Tensor& k, const Tensor& v, const Tensor& at);
  void advance(std::int64_t tokens) { counted(next_ + tokens); }
  // For cross-attention: all keys and values at once.
  void hold(const Tensor& k, const Tensor& v, const Tensor& documents = {});
  void clear();
  // Tokens from `position` on are forgotten, as if they had never come. A ring that has turned can
  // go back by one block from the furthest token that it ever held: what a window showed before
  // that is overwritten.
  bool can_rewind(std::int64_t position) const;
  void rewind(std::int64_t position);
  // Sequence i goes on as the former sequence rows[i]; the batch becomes as large as there are
  // rows. Throws Error for a row that is not there.
  void reorder(std::span<const std::int64_t> rows);

  // A memory may have no tokens: it is held all the same.
  bool empty() const { return cross_ ? !held_ : next_ == 0; }
  std::int64_t next_position() const { return next_; }  // of the token to come
  std::int64_t first_position() const { return next_ - std::min(next_, capacity_); }
  std::int64_t capacity() const { return capacity_; }
  std::int64_t rows_taken() const { return k_.size(1); }
  // Where keys and values lie, for whoever repeats work on them.
  const Tensor& keys() const { return k_; }
  const Tensor& values() const { return v_; }
  std::int64_t bytes() const;       // held now
  std::int64_t most_bytes() const;  // held when all rows are taken

  CachedRows rows() const { return rows_until(next_); }

 private:
  CachedRows rows_until(std::int64_t end) const;
  void take_rows(std::int64_t needed);
  void check_block(const Tensor& k, const Tensor& v, const Tensor& documents) const;
  void counted(std::int64_t next) {
    next_ = next;
    written_ = std::max(written_, next);
  }

  CacheSize size_;
  bool cross_ = false;
  bool held_ = false;            // cross-attention: whether there was a hold()
  std::int64_t look_back_ = -1;  // -1: all
  std::int64_t capacity_ = 0;    // rows of the whole ring; in cross-attention those of the memory
  std::int64_t next_ = 0;
  std::int64_t written_ = 0;  // tokens up to the furthest row that was ever written
  std::int64_t staged_ = 0;   // tokens after next_ that do not count yet
  Tensor k_, v_, documents_;  // of the rows taken so far, [B, rows, ...]
};

}  // namespace heddle::nn
