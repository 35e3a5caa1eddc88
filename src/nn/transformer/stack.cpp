#include "nn/transformer/stack.h"

#include <memory>
#include <utility>

#include "autograd/record.h"
#include "heddle/tape.h"

namespace heddle::nn {

std::int64_t StackCache::bytes() const {
  std::int64_t sum = 0;
  for (const LayerCache& c : layers) sum += c.self.bytes() + (c.cross ? c.cross->bytes() : 0);
  return sum;
}

std::int64_t StackCache::most_bytes() const {
  std::int64_t sum = 0;
  for (const LayerCache& c : layers)
    sum += c.self.most_bytes() + (c.cross ? c.cross->most_bytes() : 0);
  return sum;
}

void StackCache::reorder(std::span<const std::int64_t> rows) {
  for (LayerCache& c : layers) {
    c.self.reorder(rows);
    if (c.cross) c.cross->reorder(rows);
  }
}

Stack::Stack(const StackConfig& config, const Scope& scope)
    : first_layer_(config.first_layer), balanced_(config.moe && config.moe->balance > 0) {
  validate(config);
  std::shared_ptr<const Rotary> rotary;
  const AttentionConfig attention = self_attention(config);
  if (const auto* rope = std::get_if<RopePosition>(&attention.position))
    rotary = std::make_shared<const Rotary>(*rope, attention.width_of_head());
  for (std::int64_t i = 0; i < config.layers; ++i)
    blocks_.emplace_back(config, scope / "layers" / i, rotary);
  if (config.norm_place == NormPlace::pre) norm_.emplace(norm_config(config), scope / "norm");
}

// Recomputed, a layer keeps its two inputs only. Its balance loss is an output like any other.
Stream Stack::layer(std::size_t i, const Stream& stream, const StackCall& call, const Pass& pass,
                    std::vector<Tensor>& balance) const {
  const Pass own = pass.layer(first_layer_ + static_cast<std::int64_t>(i));
  if (!pass.recompute) return blocks_[i].forward(stream, call, own, balance);
  const bool pending = stream.branch.defined();
  std::vector<Tensor> inputs = {stream.sum};
  if (pending) inputs.push_back(stream.branch);
  if (call.memory.defined()) inputs.push_back(call.memory);
  const bool post = !norm_;
  const Region region = [this, i, pending, post, call, own](std::span<const Tensor> in) {
    StackCall inner = call;
    if (call.memory.defined()) inner.memory = in.back();
    std::vector<Tensor> extra;
    const Stream s = blocks_[i].forward({in[0], pending ? in[1] : Tensor()}, inner, own, extra);
    std::vector<Tensor> out = {s.sum};
    if (!post) out.push_back(s.branch);
    out.insert(out.end(), extra.begin(), extra.end());
    return out;
  };
  const std::vector<Tensor> out = heddle::recompute(region, inputs);
  const std::size_t own_outputs = post ? 1 : 2;
  balance.insert(balance.end(), out.begin() + static_cast<std::ptrdiff_t>(own_outputs), out.end());
  return {out[0], post ? Tensor() : out[1]};
}

Tensor Stack::finish(const Stream& stream) const {
  if (!norm_) return stream.sum;
  if (!stream.branch.defined()) return norm_->forward(stream.sum);
  return norm_->join(stream.branch, stream.sum).y;
}

Tensor Stack::forward(const Tensor& x, const Pass& pass) const {
  if (balanced_ && autograd::recording())
    fail(ErrorCode::invalid_argument, "stack",
         "experts have a load-balancing loss that this call would lose",
         "forward(x, call, pass, balance) under a tape, or moe.balance = 0");
  std::vector<Tensor> balance;
  return forward(x, StackCall{}, pass, balance);
}

Tensor Stack::forward(const Tensor& x, const StackCall& call, const Pass& pass,
                      std::vector<Tensor>& balance) const {
  if (blocks_.empty()) return finish({x, {}});
  const StackCall shared = blocks_.front().with_keys(call, x, nullptr);
  Stream stream{x, {}};
  for (std::size_t i = 0; i < blocks_.size(); ++i) stream = layer(i, stream, shared, pass, balance);
  return finish(stream);
}

Tensor Stack::forward_cached(const Tensor& x, const StackCall& call, const Pass& pass,
                             StackCache& cache) const {
  if (blocks_.empty()) return finish({x, {}});
  const StackCall shared = blocks_.front().with_keys(call, x, cache.layers.data());
  Stream stream{x, {}};
  for (std::size_t i = 0; i < blocks_.size(); ++i)
    stream = blocks_[i].forward_cached(stream, shared, pass, cache.layers[i]);
  return finish(stream);
}

StackCache Stack::make_cache(const CacheSize& size, DType dtype, Device device) const {
  StackCache cache;
  for (const Block& block : blocks_) {
    LayerCache layer{KvCache(block.self_attention().config(), size, dtype, device)};
    if (block.cross_attention())
      layer.cross.emplace(block.cross_attention()->config(), size, dtype, device);
    cache.layers.push_back(std::move(layer));
  }
  return cache;
}

}  // namespace heddle::nn
