// A stack of Transformer layers with the norm behind it.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "model/block.h"

namespace heddle::model {

// For generation: the caches of all layers.
struct StackCache {
  std::vector<LayerCache> layers;

  std::int64_t position() const { return layers.front().self.next_position(); }
  std::int64_t bytes() const;
  std::int64_t most_bytes() const;  // with as many positions as it was made for
  void reorder(std::span<const std::int64_t> rows);
};

class Stack {
 public:
  struct Options {
    std::int64_t layers = 0;
    bool causal = false;
    bool cross = false;
    std::int64_t first_layer = 0;  // in the numbering of dropout's random streams
  };

  Stack(const ModelConfig& config, const Options& options, const nn::ParamScope& scope);

  // x: [B, T, C] -> [B, T, C], normalised. The pass decides whether layers are recomputed.
  Tensor forward(const Tensor& x, const StackCall& call, const nn::Pass& pass,
                 std::vector<Tensor>& balance) const;
  Tensor forward_cached(const Tensor& x, const StackCall& call, const nn::Pass& pass,
                        StackCache& cache) const;
  StackCache make_cache(const nn::CacheSize& size, DType dtype, Device device) const;

  const std::vector<Block>& blocks() const { return blocks_; }

 private:
  Stream layer(std::size_t i, const Stream& stream, const StackCall& call, const nn::Pass& pass,
               std::vector<Tensor>& balance) const;
  Tensor finish(const Stream& stream) const;

  std::int64_t first_layer_;
  std::vector<Block> blocks_;
  std::optional<nn::Norm> norm_;  // with pre-norm: nothing has normalised the stream yet
};

}  // namespace heddle::model
