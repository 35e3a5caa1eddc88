#include "nn/transformer/block.h"

#include <string>
#include <utility>

#include "ops/binary/binary.h"
#include "ops/copy/copy.h"
#include "ops/dropout/dropout.h"
#include "ops/unary/unary.h"

namespace heddle::nn {

namespace {

// Sites of dropout within a layer (Pass::site).
enum Site : std::uint32_t { kSelfWeights, kSelfBranch, kCrossWeights, kCrossBranch, kFfnBranch };

using FeedForwardOfAnyKind = std::variant<std::monostate, FeedForward, MixtureOfExperts>;

FeedForwardOfAnyKind make_ffn(const StackConfig& config, std::int64_t layer, const Scope& scope) {
  if (config.ffn == FfnKind::none) return {};
  if (has_experts(config, layer)) return MixtureOfExperts(moe_config(config), scope);
  return FeedForward(dense_ffn_config(config), scope);
}

AttentionCall self_call(const StackCall& call, LayerCache* cache) {
  AttentionCall c;
  c.key_lengths = call.lengths;
  c.documents = call.documents;
  c.prefix_lengths = call.prefix_lengths;
  c.keys = call.self_keys;
  c.at = call.at;
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
  const LayerRows* rows = nullptr;  // several sequences, instead of one cache

  // A branch as it joins the stream.
  Tensor joining(const Tensor& y, const Joint& joint, Site site) const {
    Tensor x = joint.behind ? joint.behind->forward(y) : y;
    if (joint.gain.defined()) x = ops::mul(x, ops::cast(joint.gain, x.dtype()));
    if (block.residual_scale_ != 1) x = ops::scale(x, block.residual_scale_);
    const auto key = pass.site(site);
    return key && block.dropout_ > 0 ? ops::dropout(x, block.dropout_, *key) : x;
  }

  // sum += branch, and its norm; without a norm the sum itself.
  static ops::NormResidual joined(const Stream& s, const std::optional<Norm>& norm) {
    if (!norm) {
      const Tensor sum = s.branch.defined() ? ops::add(s.sum, s.branch) : s.sum;
      return {sum, sum};
    }
    if (s.branch.defined()) return norm->join(s.branch, s.sum);
    return {s.sum, norm->forward(s.sum)};
  }

  // pre:       sum += branch;  branch = f(norm(sum))
  // sandwich:  sum += branch;  branch = norm(f(norm(sum)))
  // post:      sum = norm(sum + f(sum))
  // branch:    sum = sum + norm(f(sum))
  template <class F>
  void branch(Stream& s, const Joint& joint, Site site, F&& f) const {
    if (block.place_ == NormPlace::post) {
      s.sum = joint.own->join(joining(f(s.sum), joint, site), s.sum).y;
      return;
    }
    if (block.place_ == NormPlace::branch) {
      s.sum = ops::add(s.sum, joining(f(s.sum), joint, site));
      return;
    }
    const ops::NormResidual in = joined(s, joint.own);
    s = {in.sum, joining(f(in.y), joint, site)};
  }

  Tensor self_attention(const Tensor& x) const {
    AttentionCall c = self_call(call, cache);
    if (rows != nullptr) {
      c.sequences = rows->sequences;
      c.positions = rows->positions;
      return block.self_.forward(x, c);
    }
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

  // sum += branch;  branch = attention(norm(sum)) + ffn(norm(sum))
  Stream side_by_side(const Stream& s) const {
    const ops::NormResidual in = joined(s, block.self_joint_.own);
    const Tensor attended = joining(self_attention(in.y), block.self_joint_, kSelfBranch);
    const std::optional<Norm>& norm = block.ffn_joint_.own;
    const Tensor fed = feed_forward(norm ? norm->forward(in.sum) : in.y);
    return {in.sum, ops::add(attended, joining(fed, block.ffn_joint_, kFfnBranch))};
  }

  Stream operator()(Stream s) const {
    if (block.parallel_ != ParallelResidual::none) return side_by_side(s);
    branch(s, block.self_joint_, kSelfBranch,
           [this](const Tensor& x) { return self_attention(x); });
    if (block.cross_)
      branch(s, block.cross_joint_, kCrossBranch,
             [this](const Tensor& x) { return cross_attention(x); });
    if (!std::holds_alternative<std::monostate>(block.ffn_))
      branch(s, block.ffn_joint_, kFfnBranch, [this](const Tensor& x) { return feed_forward(x); });
    return s;
  }
};

Block::Joint Block::make_joint(const StackConfig& config, const Scope& scope, const char* name,
                               bool normed) {
  Joint joint;
  const NormPlace place = config.norm_place;
  const bool shares = config.parallel == ParallelResidual::one_norm && std::string(name) == "ffn";
  if (place != NormPlace::branch && !shares && normed)
    joint.own.emplace(norm_config(config), scope / (std::string(name) + "_norm"));
  if (place == NormPlace::branch || place == NormPlace::sandwich)
    joint.behind.emplace(norm_config(config), scope / (std::string(name) + "_post_norm"));
  if (config.layer_scale)
    joint.gain = scope.constant(std::string(name) + "_scale", {config.width}, *config.layer_scale);
  return joint;
}

Block::Block(const StackConfig& config, std::int64_t layer, const Scope& scope,
             std::shared_ptr<const Rotary> rotary, const Tensor& t5_table)
    : place_(config.norm_place),
      parallel_(config.parallel),
      dropout_(config.dropout),
      residual_scale_(config.residual_scale),
      self_joint_(make_joint(config, scope, "attention", config.first_norm || layer > 0)),
      self_(nn::self_attention(config, layer), scope / "attention", std::move(rotary), t5_table),
      ffn_joint_(config.ffn == FfnKind::none ? Joint{} : make_joint(config, scope, "ffn")),
      ffn_(make_ffn(config, layer, scope / "ffn")) {
  if (!config.cross) return;
  cross_joint_ = make_joint(config, scope, "cross");
  cross_.emplace(nn::cross_attention(config), scope / "cross");
}

// Biases by distance are made for each step, and experts are chosen by the host.
bool Block::can_step() const {
  const AttentionConfig& c = self_.config();
  const bool by_distance = std::holds_alternative<T5Position>(c.position) ||
                           std::holds_alternative<AlibiPosition>(c.position);
  return !by_distance && !c.prefix && !cross_ && !std::holds_alternative<MixtureOfExperts>(ffn_);
}

StackCall Block::with_keys(const StackCall& call, const Tensor& x, LayerCache* cache) const {
  StackCall out = call;
  out.self_keys = self_.visible_keys(x, self_call(call, cache));
  if (cross_ && !call.cross_keys.intervals.defined())
    out.cross_keys = cross_->visible_keys(x, cross_call(call, cache));
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

Stream Block::forward_each(const Stream& stream, const Pass& pass, const LayerRows& rows) const {
  const StackCall none;
  return Run{*this, none, pass, nullptr, nullptr, &rows}(stream);
}

}  // namespace heddle::nn
