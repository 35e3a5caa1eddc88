#include "nn/transformer/block.h"

#include <utility>

#include "ops/binary/binary.h"
#include "ops/dropout/dropout.h"

namespace heddle::nn {

namespace {

// Sites of dropout within a layer (Pass::site).
enum Site : std::uint32_t { kSelfWeights, kSelfBranch, kCrossWeights, kCrossBranch, kFfnBranch };

using FeedForwardOfAnyKind = std::variant<FeedForward, MixtureOfExperts>;

FeedForwardOfAnyKind make_ffn(const StackConfig& config, const Scope& scope) {
  if (config.moe) return MixtureOfExperts(moe_config(config), scope);
  return FeedForward(ffn_config(config), scope);
}

AttentionCall self_call(const StackCall& call, LayerCache* cache) {
  AttentionCall c;
  c.key_lengths = call.lengths;
  c.documents = call.documents;
  c.prefix_lengths = call.prefix_lengths;
  c.keys = call.self_keys;
  c.cache = cache != nullptr ? &cache->self : nullptr;
  return c;
}

AttentionCall cross_call(const StackCall& call, LayerCache* cache) {
  AttentionCall c;
  c.key_lengths = call.memory_lengths;
  c.keys = call.cross_keys;
  c.cache = cache != nullptr ? &*cache->cross : nullptr;
  // Once the cache holds the memory's keys and values it is not needed any more.
  if (cache == nullptr || cache->cross->empty()) c.memory = call.memory;
  return c;
}

}  // namespace

// The three branches in turn, on one residual stream.
struct Block::Run {
  const Block& block;
  const StackCall& call;
  const Pass& pass;
  LayerCache* cache = nullptr;
  std::vector<Tensor>* balance = nullptr;

  Tensor dropped(const Tensor& x, Site site) const {
    const auto key = pass.site(site);
    return key && block.dropout_ > 0 ? ops::dropout(x, block.dropout_, *key) : x;
  }

  // pre:  sum += branch;  branch = f(norm(sum))
  // post: sum = norm(sum + f(sum))
  template <class F>
  void branch(Stream& s, const Norm& norm, Site site, F&& f) const {
    if (block.place_ == NormPlace::post) {
      s.sum = norm.join(dropped(f(s.sum), site), s.sum).y;
      return;
    }
    ops::NormResidual joined;
    if (s.branch.defined())
      joined = norm.join(s.branch, s.sum);
    else
      joined = {s.sum, norm.forward(s.sum)};
    s = {joined.sum, dropped(f(joined.y), site)};
  }

  Tensor self_attention(const Tensor& x) const {
    AttentionCall c = self_call(call, cache);
    c.dropout = pass.site(kSelfWeights);
    c.observer = pass.observer;
    c.layer = pass.number;
    return block.self_.forward(x, c);
  }

  Tensor cross_attention(const Tensor& x) const {
    AttentionCall c = cross_call(call, cache);
    c.dropout = pass.site(kCrossWeights);
    c.observer = pass.observer;
    c.layer = pass.number;
    return block.cross_->forward(x, c);
  }

  Tensor feed_forward(const Tensor& x) const {
    if (const auto* dense = std::get_if<FeedForward>(&block.ffn_)) return dense->forward(x);
    // Only training draws random numbers.
    const MoeCall moe{call.lengths, pass.random.has_value()};
    const MoeResult r = std::get<MixtureOfExperts>(block.ffn_).forward(x, moe);
    if (balance != nullptr && r.balance.defined()) balance->push_back(r.balance);
    return r.y;
  }

  Stream operator()(Stream s) const {
    branch(s, block.self_norm_, kSelfBranch, [this](const Tensor& x) { return self_attention(x); });
    if (block.cross_)
      branch(s, *block.cross_norm_, kCrossBranch,
             [this](const Tensor& x) { return cross_attention(x); });
    branch(s, block.ffn_norm_, kFfnBranch, [this](const Tensor& x) { return feed_forward(x); });
    return s;
  }
};

Block::Block(const StackConfig& config, const Scope& scope, std::shared_ptr<const Rotary> rotary)
    : place_(config.norm_place),
      dropout_(config.dropout),
      self_norm_(norm_config(config), scope / "attention_norm"),
      self_(nn::self_attention(config), scope / "attention", std::move(rotary)),
      ffn_norm_(norm_config(config), scope / "ffn_norm"),
      ffn_(make_ffn(config, scope / "ffn")) {
  if (!config.cross) return;
  cross_norm_.emplace(norm_config(config), scope / "cross_norm");
  cross_.emplace(nn::cross_attention(config), scope / "cross");
}

StackCall Block::with_keys(const StackCall& call, const Tensor& x, LayerCache* cache) const {
  StackCall out = call;
  out.self_keys = self_.visible_keys(x, self_call(call, cache));
  if (cross_) out.cross_keys = cross_->visible_keys(x, cross_call(call, cache));
  return out;
}

Stream Block::forward(const Stream& stream, const StackCall& call, const Pass& pass,
                      std::vector<Tensor>& balance) const {
  return Run{*this, call, pass, nullptr, &balance}(stream);
}

Stream Block::forward_cached(const Stream& stream, const StackCall& call, const Pass& pass,
                             LayerCache& cache) const {
  return Run{*this, call, pass, &cache, nullptr}(stream);
}

}  // namespace heddle::nn
