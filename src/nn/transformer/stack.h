// A stack of Transformer layers, with the norm that follows it.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "nn/transformer/block.h"

namespace heddle::nn {

// For generation: the caches of all layers.
struct StackCache {
  std::vector<LayerCache> layers;

  std::int64_t position() const { return layers.front().self.next_position(); }
  std::int64_t bytes() const;
  std::int64_t most_bytes() const;  // with as many positions as it was made for
  void reorder(std::span<const std::int64_t> rows);
  // Forgets tokens from `position` on; false, and nothing changes, where a layer cannot.
  bool rewind(std::int64_t position);
  void advance(std::int64_t tokens);  // behind Stack::forward_step()
};

// One of several sequences that go through a stack together.
struct StackRows {
  StackCache* cache = nullptr;
  std::int64_t count = 0;      // of its tokens
  Tensor prefix_lengths = {};  // [1], with attention.prefix
};

class Stack {
 public:
  // "layers.<i>.…" and, unless the configuration has no last norm, "norm.…"
  Stack(const StackConfig& config, const Scope& scope);

  // x: [B, T, C] -> [B, T, C], where all tokens of x count and nothing but x is looked at. Error
  // for experts with a load-balancing loss, which would be lost: the other form has a place for it.
  Tensor forward(const Tensor& x, const Pass& pass = {}) const;

  // x: [B, T, C] -> [B, T, C], after the last norm. The pass decides whether layers are recomputed.
  Tensor forward(const Tensor& x, const StackCall& call, const Pass& pass,
                 std::vector<Tensor>& balance) const;
  Tensor forward_cached(const Tensor& x, const StackCall& call, const Pass& pass,
                        StackCache& cache) const;
  // x: [1, Σ count, C], the tokens of one sequence after the other; each follows those of its cache
  // and has the bits that it has alone.
  Tensor forward_each(const Tensor& x, std::span<const StackRows> sequences,
                      const Pass& pass) const;
  // A step of one token whose numbers are in the device's memory, so that the device can repeat it
  // (backend/repeat.h). The host's part comes before: reserve_step(), and step_numbers(), which are
  // uploaded to `numbers`; and advance() behind it.
  bool can_step(const StackCache& cache) const;
  // Rows and tables for the token. Appends where everything lies to `key`.
  void reserve_step(StackCache& cache, DType precision, std::vector<std::uint64_t>& key) const;
  // The position, and for each window what `batch` sequences see through it.
  std::vector<std::int32_t> step_numbers(const StackCache& cache, std::int64_t batch) const;
  // x: [B, 1, C]; numbers: those, i32.
  Tensor forward_step(const Tensor& x, const Tensor& numbers, const Pass& pass,
                      StackCache& cache) const;
  StackCache make_cache(const CacheSize& size, DType dtype, Device device) const;

  const std::vector<Block>& blocks() const { return blocks_; }

 private:
  Stream layer(std::size_t i, const Stream& stream, const StackCall& call, const Pass& pass,
               std::vector<Tensor>& balance) const;
  Tensor finish(const Stream& stream) const;
  // The call of each window, with the keys that tokens see through it. cache: or nullptr.
  std::vector<StackCall> calls_of(const StackCall& call, const Tensor& x, StackCache* cache) const;

  std::int64_t first_layer_;
  bool balanced_;  // layers have a load-balancing loss
  std::vector<Block> blocks_;
  std::vector<std::size_t> windows_;  // of each layer: the first one with the same window
  std::optional<Norm> norm_;          // where nothing has normalised the stream yet
};

}  // namespace heddle::nn
