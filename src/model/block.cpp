#include "model/block.h"

#include <utility>

#include "ops/binary/binary.h"
#include "ops/dropout/dropout.h"

namespace heddle::model {

namespace {

// Sites of dropout within a layer (nn::Pass::site).
enum Site : std::uint32_t { kSelfWeights, kSelfBranch, kCrossWeights, kCrossBranch, kFfnBranch };

using FeedForwardOfAnyKind = std::variant<nn::FeedForward, nn::MixtureOfExperts>;

FeedForwardOfAnyKind make_ffn(const ModelConfig& config, const nn::ParamScope& scope) {
  if (config.moe) return nn::MixtureOfExperts(moe_config(config), scope);
  return nn::FeedForward(ffn_config(config), scope);
}

}  // namespace

// The three branches in turn, on one residual stream.
struct Block::Run {
  const Block& block;
  const StackCall& call;
  const nn::Pass& pass;
  LayerCache* cache = nullptr;
  std::vector<Tensor>* balance = nullptr;

  Tensor dropped(const Tensor& x, Site site) const {
    const auto key = pass.site(site);
    return key && block.dropout_ > 0 ? ops::dropout(x, block.dropout_, *key) : x;
  }

  // pre:  sum += branch;  branch = f(norm(sum))
  // post: sum = norm(sum + f(sum))
  template <class F>
  void branch(Stream& s, const nn::Norm& norm, Site site, F&& f) const {
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
    nn::AttentionCall c;
    c.key_lengths = call.lengths;
    c.documents = call.documents;
    c.prefix_lengths = call.prefix_lengths;
    c.dropout = pass.site(kSelfWeights);
    c.observer = pass.observer;
    c.layer = pass.number;
    c.cache = cache != nullptr ? &cache->self : nullptr;
    return block.self_.forward(x, c);
  }

  Tensor cross_attention(const Tensor& x) const {
    nn::AttentionCall c;
    c.key_lengths = call.memory_lengths;
    c.dropout = pass.site(kCrossWeights);
    c.observer = pass.observer;
    c.layer = pass.number;
    c.cache = cache != nullptr ? &*cache->cross : nullptr;
    // Once the cache holds the memory's keys and values it is not needed any more.
    if (cache == nullptr || cache->cross->empty()) c.memory = call.memory;
    return block.cross_->forward(x, c);
  }

  Tensor feed_forward(const Tensor& x) const {
    if (const auto* dense = std::get_if<nn::FeedForward>(&block.ffn_)) return dense->forward(x);
    // Only training draws random numbers.
    const nn::MoeCall moe{call.lengths, pass.random.has_value()};
    const nn::MoeResult r = std::get<nn::MixtureOfExperts>(block.ffn_).forward(x, moe);
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

Block::Block(const ModelConfig& config, const Options& options, const nn::ParamScope& scope)
    : place_(config.norm_place),
      dropout_(config.dropout),
      self_norm_(norm_config(config), scope / "attention_norm"),
      self_(model::self_attention(config, options.causal), scope / "attention", options.rotary),
      ffn_norm_(norm_config(config), scope / "ffn_norm"),
      ffn_(make_ffn(config, scope / "ffn")) {
  if (!options.cross) return;
  cross_norm_.emplace(norm_config(config), scope / "cross_norm");
  cross_.emplace(model::cross_attention(config), scope / "cross");
}

Stream Block::forward(const Stream& stream, const StackCall& call, const nn::Pass& pass,
                      std::vector<Tensor>& balance) const {
  return Run{*this, call, pass, nullptr, &balance}(stream);
}

Stream Block::forward_cached(const Stream& stream, const StackCall& call, const nn::Pass& pass,
                             LayerCache& cache) const {
  return Run{*this, call, pass, &cache, nullptr}(stream);
}

}  // namespace heddle::model
