#include "nn/transformer/stack.h"

#include <memory>
#include <utility>

#include "autograd/record.h"
#include "heddle/tape.h"
#include "ops/binary/binary.h"
#include "ops/view/view.h"
#include "tensor/storage.h"

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

bool StackCache::rewind(std::int64_t position) {
  for (const LayerCache& c : layers)
    if (!c.self.can_rewind(position)) return false;
  for (LayerCache& c : layers) c.self.rewind(position);
  return true;
}

namespace {

// Layers with the same angles share their tables.
class SharedRotaries {
 public:
  std::shared_ptr<const Rotary> of(const AttentionConfig& a) {
    const auto* rope = std::get_if<RopePosition>(&a.position);
    if (rope == nullptr) return {};
    for (const auto& [options, rotary] : made_)
      if (options == *rope) return rotary;
    made_.emplace_back(*rope, std::make_shared<const Rotary>(*rope, a.width_of_head()));
    return made_.back().second;
  }

 private:
  std::vector<std::pair<RopePosition, std::shared_ptr<const Rotary>>> made_;
};

bool same_window(const AttentionConfig& a, const AttentionConfig& b) {
  return a.look_back == b.look_back && a.look_ahead == b.look_ahead;
}

bool shares_table(const AttentionConfig& a) {
  const auto* t5 = std::get_if<T5Position>(&a.position);
  return t5 != nullptr && t5->shared;
}

}  // namespace

Stack::Stack(const StackConfig& config, const Scope& scope)
    : first_layer_(config.first_layer), balanced_(config.moe && config.moe->balance > 0) {
  validate(config);
  SharedRotaries rotaries;
  Tensor t5_table;  // of the first layer that has one to share
  for (std::int64_t i = 0; i < config.layers; ++i) {
    const AttentionConfig own = self_attention(config, i);
    const bool shares = shares_table(own);
    blocks_.emplace_back(config, i, scope / "layers" / i, rotaries.of(own),
                         shares ? t5_table : Tensor());
    if (shares) t5_table = blocks_.back().self_attention().parameters().t5_table;
    std::size_t window = 0;
    while (!same_window(blocks_[window].self_attention().config(), own)) ++window;
    windows_.push_back(window);
  }
  if (has_last_norm(config)) norm_.emplace(norm_config(config), scope / "norm");
}

std::vector<StackCall> Stack::calls_of(const StackCall& call, const Tensor& x,
                                       StackCache* cache) const {
  std::vector<StackCall> calls(blocks_.size());
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (windows_[i] != i) continue;
    StackCall own = call;
    own.cross_keys = calls.front().cross_keys;
    calls[i] = blocks_[i].with_keys(own, x, cache != nullptr ? &cache->layers[i] : nullptr);
  }
  return calls;
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
  const bool leaves_branch = blocks_[i].leaves_branch();
  const Region region = [this, i, pending, leaves_branch, call, own](std::span<const Tensor> in) {
    StackCall inner = call;
    if (call.memory.defined()) inner.memory = in.back();
    std::vector<Tensor> extra;
    const Stream s = blocks_[i].forward({in[0], pending ? in[1] : Tensor()}, inner, own, extra);
    std::vector<Tensor> out = {s.sum};
    if (leaves_branch) out.push_back(s.branch);
    out.insert(out.end(), extra.begin(), extra.end());
    return out;
  };
  const std::vector<Tensor> out = heddle::recompute(region, inputs);
  const std::ptrdiff_t own_outputs = leaves_branch ? 2 : 1;
  balance.insert(balance.end(), out.begin() + own_outputs, out.end());
  return {out[0], leaves_branch ? out[1] : Tensor()};
}

Tensor Stack::finish(const Stream& stream) const {
  if (!norm_ && stream.branch.defined()) return ops::add(stream.sum, stream.branch);
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
  const std::vector<StackCall> calls = calls_of(call, x, nullptr);
  Stream stream{x, {}};
  for (std::size_t i = 0; i < blocks_.size(); ++i)
    stream = layer(i, stream, calls[windows_[i]], pass, balance);
  return finish(stream);
}

Tensor Stack::forward_cached(const Tensor& x, const StackCall& call, const Pass& pass,
                             StackCache& cache) const {
  if (blocks_.empty()) return finish({x, {}});
  const std::vector<StackCall> calls = calls_of(call, x, &cache);
  Stream stream{x, {}};
  for (std::size_t i = 0; i < blocks_.size(); ++i)
    stream = blocks_[i].forward_cached(stream, calls[windows_[i]], pass, cache.layers[i]);
  return finish(stream);
}

Tensor Stack::forward_each(const Tensor& x, std::span<const StackRows> sequences,
                           const Pass& pass) const {
  if (blocks_.empty()) return finish({x, {}});
  std::vector<LayerRows> rows(blocks_.size());
  std::vector<std::int64_t> positions;
  positions.reserve(static_cast<std::size_t>(x.size(1)));
  for (const StackRows& s : sequences)
    for (std::int64_t t = 0; t < s.count; ++t) positions.push_back(s.cache->position() + t);
  const Tensor places = Tensor::from<std::int64_t>({x.size(1)}, positions);
  std::int64_t begin = 0;
  for (const StackRows& s : sequences) {
    StackCall call;
    call.prefix_lengths = s.prefix_lengths;
    const Tensor own = ops::slice(x, 1, begin, begin + s.count);
    const std::vector<StackCall> calls = calls_of(call, own, s.cache);
    for (std::size_t i = 0; i < blocks_.size(); ++i)
      rows[i].sequences.push_back(
          {&s.cache->layers[i].self, s.count, s.prefix_lengths, calls[windows_[i]].self_keys});
    begin += s.count;
  }
  Stream stream{x, {}};
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    rows[i].positions = places;
    stream = blocks_[i].forward_each(stream, pass, rows[i]);
  }
  return finish(stream);
}

void StackCache::advance(std::int64_t tokens) {
  for (LayerCache& c : layers) c.self.advance(tokens);
}

bool Stack::can_step(const StackCache& cache) const {
  for (std::size_t i = 0; i < blocks_.size(); ++i)
    if (!blocks_[i].can_step() || !cache.layers[i].self.can_step()) return false;
  return !blocks_.empty();
}

void Stack::reserve_step(StackCache& cache, DType precision,
                         std::vector<std::uint64_t>& key) const {
  const auto lies_at = [&](const Tensor& t) {
    key.push_back(reinterpret_cast<std::uintptr_t>(device_address(t)));
  };
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    KvCache& own = cache.layers[i].self;
    own.reserve(1);
    lies_at(own.keys());
    lies_at(own.values());
    key.push_back(static_cast<std::uint64_t>(own.rows_taken()));
    const auto& rotary = blocks_[i].self_attention().rotary();
    if (rotary) lies_at(rotary->reserve(own.rows_taken(), precision, own.keys().device()).cos);
  }
}

std::vector<std::int32_t> Stack::step_numbers(const StackCache& cache, std::int64_t batch) const {
  std::vector<std::int32_t> numbers = {static_cast<std::int32_t>(cache.position())};
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (windows_[i] != i) continue;
    const ops::VisibleKeys keys =
        blocks_[i].self_attention().step_keys(batch, cache.layers[i].self);
    for (const Tensor& t : {keys.intervals, keys.ends}) {
      const auto* const first = t.data<std::int32_t>();
      numbers.insert(numbers.end(), first, first + t.elements());
    }
  }
  return numbers;
}

Tensor Stack::forward_step(const Tensor& x, const Tensor& numbers, const Pass& pass,
                           StackCache& cache) const {
  const std::int64_t batch = x.size(0);
  std::int64_t at = 0;
  const auto next = [&](const Shape& shape, std::int64_t count) {
    at += count;
    return views::reshape(views::slice(numbers, 0, at - count, at), shape);
  };
  StackCall call;
  call.at = next({1}, 1);
  std::vector<StackCall> calls(blocks_.size(), call);
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (windows_[i] != i) continue;
    const std::int64_t rows = cache.layers[i].self.rows_taken();
    ops::VisibleKeys& keys = calls[i].self_keys;
    keys.intervals = next({2, batch, 1}, 2 * batch);
    keys.ends = next({batch}, batch);
    keys.keys = rows;
    keys.pairs = static_cast<double>(batch * rows);
  }
  Stream stream{x, {}};
  for (std::size_t i = 0; i < blocks_.size(); ++i)
    stream = blocks_[i].forward_cached(stream, calls[windows_[i]], pass, cache.layers[i]);
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
