#include "nn/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "autograd/record.h"
#include "heddle/tape.h"
#include "nn/attention/scores.h"
#include "nn/position/alibi.h"
#include "nn/position/t5.h"
#include "nn/require.h"
#include "ops/copy/copy.h"
#include "ops/linear/linear.h"
#include "ops/norm/norm.h"
#include "ops/support/check.h"
#include "ops/view/view.h"

namespace heddle::nn {

namespace {

constexpr const char* kWhere = "attention";

// [B, T, heads · D] -> [B, T, heads, D]
Tensor heads_of(const Tensor& x, std::int64_t heads) {
  return ops::reshape(x, {x.size(0), x.size(1), heads, x.size(2) / heads});
}

void expect(bool ok, std::string_view what, std::string_view expected, std::string_view got) {
  if (!ok) fail(ErrorCode::invalid_argument, kWhere, what, expected, got);
}

// Lengths that count from the first token, for keys that begin at position `first`.
Tensor from_position(const char* name, const Tensor& lengths, std::int64_t first,
                     std::int64_t keys) {
  if (!lengths.defined() || lengths.device().is_meta()) return lengths;
  ops::check_index({kWhere, name, lengths});
  std::vector<std::int64_t> v = ops::cast(lengths, DType::i64).to_vector<std::int64_t>();
  for (std::int64_t& n : v) {
    if (n < 0) expect(false, std::string("argument ") + name, "0 or more", std::to_string(n));
    n = std::clamp<std::int64_t>(n - first, 0, keys);
  }
  return Tensor::from<std::int64_t>(lengths.shape(), std::span<const std::int64_t>(v));
}

// Of tokens that follow those of a cache, whose keys begin at position `first`.
void place_behind_cache(ops::AttentionMask& mask, const KvCache& cache, std::int64_t first,
                        std::int64_t keys) {
  mask.first_query = cache.next_position() - first;
  mask.key_lengths = from_position("key_lengths", mask.key_lengths, first, keys);
  mask.prefix_lengths = from_position("prefix_lengths", mask.prefix_lengths, first, keys);
}

}  // namespace

// Arguments of the fused op.
struct Attention::Inputs {
  Tensor q, k, v;  // [B, Tq, H, .], [B, Tk, G, .], [B, Tk, G, D]
  ops::AttentionOptions options;
};

namespace {

// Numbers that attention reads in f32 next to activations of any type.
Tensor read_wide(const Tensor& weight) {
  return weight.dtype() == DType::bf16 ? ops::cast(weight, DType::f32) : weight;
}

}  // namespace

Attention::Attention(const AttentionConfig& config, const Scope& scope,
                     std::shared_ptr<const Rotary> rotary, const Tensor& t5_table)
    : config_(config), rotary_(std::move(rotary)) {
  validate(config);
  p_.t5_table = t5_table;
  expect(std::holds_alternative<T5Position>(config.position) || !t5_table.defined(),
         "argument t5_table", "none without position = t5", to_string(config.position));
  const auto* const rope = std::get_if<RopePosition>(&config.position);
  expect(rope != nullptr || !rotary_, "argument rotary", "none without position = rope",
         to_string(config.position));
  if (rope != nullptr && !rotary_)
    rotary_ = std::make_shared<const Rotary>(*rope, config.width_of_head());
  make_parameters(scope);
}

void Attention::make_parameters(const Scope& scope) {
  const AttentionConfig& c = config_;
  const std::int64_t width = c.width, d = c.width_of_head(), s = c.width_of_score();
  const std::int64_t heads = c.heads, groups = c.key_heads();
  p_.q = scope.weight("q.weight", {heads * d, width});
  p_.k = scope.weight("k.weight", {groups * d, width});
  p_.v = scope.weight("v.weight", {groups * d, width});
  p_.out = scope.branch_weight("out.weight", {width, heads * d});
  if (c.bias) p_.q_bias = scope.zeros("q.bias", {heads * d});
  if (c.has_key_bias()) p_.k_bias = scope.zeros("k.bias", {groups * d});
  if (c.bias) p_.v_bias = scope.zeros("v.bias", {groups * d});
  if (c.out_bias) p_.out_bias = scope.zeros("out.bias", {width});
  if (c.score == Score::multiplicative)
    p_.score = scope.weight("score.weight", {heads, d, d}, {d, d});
  if (c.score == Score::concat)
    p_.score = read_wide(scope.weight("score.weight", {heads, 2 * d}, {2 * d, 1}));
  if (c.score == Score::additive) {
    p_.score = read_wide(scope.weight("score.weight", {heads, s}, {s, 1}));
    p_.score_query = scope.weight("score.query", {heads, s, d}, {2 * d, s});
    p_.score_key = scope.weight("score.key", {groups, s, d}, {2 * d, s});
  }
  make_norms(scope);
  if (const auto* t5 = std::get_if<T5Position>(&c.position);
      t5 != nullptr && !p_.t5_table.defined())
    p_.t5_table = read_wide(scope.weight("t5.table", {t5->buckets, heads}, {width, heads}));
  if (c.sinks) p_.sinks = scope.zeros("sinks", {heads});
}

void Attention::make_norms(const Scope& scope) {
  const AttentionConfig& c = config_;
  if (c.qk_norm == QkNorm::none) return;
  const std::int64_t d = c.width_of_head();
  const bool full = c.qk_norm == QkNorm::full;
  p_.q_norm = scope.constant("q_norm.weight", {full ? c.heads * d : d}, 1);
  p_.k_norm = scope.constant("k_norm.weight", {full ? c.key_heads() * d : d}, 1);
}

// x: [B, T, heads, D]
Tensor Attention::normalised(const Tensor& x, const Tensor& gain) const {
  if (!gain.defined()) return x;
  const auto norm = [&](const Tensor& rows) {
    return config_.norm == NormKind::rms
               ? ops::rms_norm(rows, gain, config_.norm_epsilon)
               : ops::layer_norm(rows, gain, Tensor(), config_.norm_epsilon);
  };
  if (config_.qk_norm == QkNorm::head) return norm(x);
  const Tensor rows = ops::reshape(x, {x.size(0), x.size(1), x.size(2) * x.size(3)});
  return ops::reshape(norm(rows), x.shape());
}

void Attention::check_call(const Tensor& x, const AttentionCall& call) const {
  const AttentionConfig& c = config_;
  ops::check_compute({kWhere, "x", x});
  ops::check_rank({kWhere, "x", x}, 3);
  ops::check_shape({kWhere, "x", x}, {x.size(0), x.size(1), c.width});
  const bool held = call.cache != nullptr && !call.cache->empty();
  expect(call.memory.defined() || !c.cross || held, "argument memory",
         "a memory, or a cache that holds it", "neither");
  expect(!call.memory.defined() || c.cross, "argument memory", "cross = true", "self-attention");
  expect(!call.memory_documents.defined() || c.cross, "argument memory_documents", "cross = true",
         "self-attention");
  const char* const kept = "none: the cache holds what the first call brought";
  expect(!(c.cross && held && call.memory.defined()), "argument memory", kept, "a memory");
  expect(!(c.cross && held && call.memory_documents.defined()), "argument memory_documents", kept,
         "documents");
  if (call.memory.defined()) {
    ops::check_rank({kWhere, "memory", call.memory}, 3);
    ops::check_dtype({kWhere, "memory", call.memory}, x.dtype());
    ops::check_shape({kWhere, "memory", call.memory}, {x.size(0), call.memory.size(1), c.width});
  }
  expect(call.prefix_lengths.defined() == c.prefix, "argument prefix_lengths",
         c.prefix ? "a length per sequence, because prefix = true" : "none, because prefix = false",
         call.prefix_lengths.describe());
  if (call.cache == nullptr) return;
  expect(call.observer == nullptr, "argument observer",
         "none beside a cache, whose keys are overwritten", "an observer");
  expect(!(call.dropout && c.dropout > 0), "argument dropout", "none beside a cache", "a key");
  if (!c.prefix || call.prefix_lengths.device().is_meta()) return;
  // Tokens that are in the cache have seen what they will ever see.
  const std::int64_t end = held ? call.cache->next_position() : x.size(1);
  for (const std::int64_t n : ops::cast(call.prefix_lengths, DType::i64).to_vector<std::int64_t>())
    expect(n <= end, "argument prefix_lengths",
           "prefixes of at most " + std::to_string(end) +
               ": the first tokens put into a cache must hold the whole prefix",
           std::to_string(n));
}

// Projections that read the same source run together.
void Attention::project(Inputs& in, const Tensor& x, const Tensor& source) const {
  const bool self = !config_.cross;
  if (!self) in.q = heads_of(ops::linear(x, p_.q, p_.q_bias), config_.heads);
  if (!source.defined()) return;  // a cache holds the memory's keys and values
  std::vector<ops::LinearWeights> weights;
  if (self) weights.push_back({p_.q, p_.q_bias});
  weights.push_back({p_.k, p_.k_bias});
  weights.push_back({p_.v, p_.v_bias});
  const std::vector<Tensor> made = ops::linear_many(source, weights);
  if (self) in.q = heads_of(made[0], config_.heads);
  in.k = heads_of(made[made.size() - 2], config_.key_heads());
  in.v = heads_of(made[made.size() - 1], config_.key_heads());
}

void Attention::finish_queries(Inputs& in, const RotaryPlaces& places) const {
  in.q = normalised(in.q, p_.q_norm);
  // W first: k·R(W q) depends on the distance, k·W(R q) would not.
  if (config_.score == Score::multiplicative) in.q = per_head(in.q, p_.score);
  if (rotary_) in.q = rotary_->rotate(in.q, places);
  if (config_.score == Score::concat) in.q = concat_query(in.q, p_.score, config_.key_heads());
  if (config_.score == Score::additive) in.q = per_head(in.q, p_.score_query);
}

void Attention::finish_keys(Inputs& in, const RotaryPlaces& places) const {
  in.k = normalised(in.k, p_.k_norm);
  if (rotary_) in.k = rotary_->rotate(in.k, places);
  if (config_.score == Score::concat) in.k = concat_key(in.k, p_.score);
  if (config_.score == Score::additive) in.k = per_head(in.k, p_.score_key);
}

ops::AttentionOptions Attention::options(const AttentionCall& call) const {
  ops::AttentionOptions o;
  // The kernel's own default is by the width of its vectors, which for concat are not heads.
  o.scale = config_.scale == 0 && config_.score == Score::concat ? 1 : config_.scale;
  o.softcap = config_.softcap;
  o.normaliser = config_.normaliser;
  o.sinks = p_.sinks;
  if (call.dropout) {
    o.dropout = config_.dropout;
    o.key = *call.dropout;
  }
  o.apart = o.dropout == 0 && (call.cache != nullptr || !autograd::taping());
  o.keys = call.keys;
  o.mask.causal = config_.causal;
  o.mask.look_back = config_.look_back;
  o.mask.look_ahead = config_.look_ahead;
  o.mask.key_lengths = call.key_lengths;
  o.mask.prefix_lengths = call.prefix_lengths;
  o.mask.query_documents = call.documents;
  o.mask.key_documents = config_.cross ? call.memory_documents : call.documents;
  return o;
}

void Attention::add_positions(Inputs& in) const {
  const Distances distances{in.q.size(1), in.k.size(1), in.options.mask.first_query};
  if (const auto* t5 = std::get_if<T5Position>(&config_.position))
    in.options.relative_bias =
        t5_bias(p_.t5_table, {t5->buckets, t5->max_distance, config_.both_directions()}, distances);
  if (std::holds_alternative<AlibiPosition>(config_.position))
    in.options.relative_bias =
        alibi_bias(config_.heads, distances, ops::parameter_dtype(in.q), in.q.device());
}

// Keys and values of the earlier tokens and these. They count only when the call has succeeded.
void Attention::use_cache(Inputs& in, const AttentionCall& call) const {
  KvCache& cache = *call.cache;
  ops::AttentionMask& mask = in.options.mask;
  if (config_.cross && cache.empty()) return;  // holds them afterwards
  if (call.at.defined()) {
    const CachedRows rows = cache.put(in.k, in.v, call.at);
    in.k = rows.keys;
    in.v = rows.values;
    return;
  }
  const CachedRows rows = config_.cross ? cache.rows() : cache.stage(in.k, in.v, call.documents);
  in.k = rows.keys;
  in.v = rows.values;
  mask.key_documents = rows.documents;
  if (config_.cross) return;
  in.options.first_row = rows.first_row;
  in.options.first_position = rows.first_position;
  place_behind_cache(mask, cache, rows.first_position, in.k.size(1));
}

ops::VisibleKeys Attention::visible_keys(const Tensor& x, const AttentionCall& call) const {
  check_call(x, call);
  ops::AttentionMask mask = options(call).mask;
  std::int64_t keys = x.size(1);
  if (config_.cross && !call.memory.defined()) {
    const CachedRows held = call.cache->rows();
    keys = held.keys.size(1);
    mask.key_documents = held.documents;
  } else if (config_.cross) {
    keys = call.memory.size(1);
  } else if (call.cache != nullptr) {
    if (call.documents.defined()) return {};
    const std::int64_t end = call.cache->next_position() + x.size(1);
    keys = std::min(end, call.cache->capacity());
    place_behind_cache(mask, *call.cache, end - keys, keys);
  }
  return ops::prepared_keys(mask, {x.size(0), x.size(1), keys}, x.device());
}

ops::VisibleKeys Attention::step_keys(std::int64_t batch, const KvCache& cache) const {
  ops::AttentionMask mask = options({}).mask;
  mask.first_query = cache.next_position();
  return ops::prepared_keys(mask, {batch, 1, cache.rows_taken()}, Device::cpu);
}

Attention::Inputs Attention::inputs(const Tensor& x, const AttentionCall& call) const {
  check_call(x, call);
  KvCache* const cache = call.cache;
  const bool self = !config_.cross;
  const std::int64_t first = self && cache != nullptr ? cache->next_position() : 0;
  Inputs in;
  in.options = options(call);
  const bool new_keys = self || cache == nullptr || cache->empty();
  project(in, x, !new_keys ? Tensor() : self ? x : call.memory);
  // A position that is a number of the device is below what the step reserved tables for.
  const RotaryPlaces places = call.at.defined() ? RotaryPlaces{.positions = call.at, .end = 1}
                                                : RotaryPlaces{.first = first};
  finish_queries(in, places);
  if (new_keys) finish_keys(in, places);
  if (cache != nullptr) use_cache(in, call);
  add_positions(in);
  return in;
}

// One sequence's part of a call's queries, keys and values: its tokens begin at row `begin`.
Attention::Inputs Attention::part_of(const Inputs& all, std::int64_t begin,
                                     const AttentionRows& sequence) const {
  const std::int64_t end = begin + sequence.count;
  AttentionCall call;
  call.cache = sequence.cache;
  call.prefix_lengths = sequence.prefix_lengths;
  call.keys = sequence.keys;
  Inputs in{views::slice(all.q, 1, begin, end), views::slice(all.k, 1, begin, end),
            views::slice(all.v, 1, begin, end), options(call)};
  use_cache(in, call);
  add_positions(in);
  return in;
}

// All that knows no other row is computed for all sequences together.
Tensor Attention::forward_each(const Tensor& x, const AttentionCall& call) const {
  ops::check_compute({kWhere, "x", x});
  expect(!config_.cross && call.cache == nullptr && call.observer == nullptr, "argument sequences",
         "self-attention, and neither a cache nor an observer beside them", "another call");
  std::int64_t rows = 0, end = 0;
  for (const AttentionRows& s : call.sequences) {
    rows += s.count;
    end = std::max(end, s.cache->next_position() + s.count);
  }
  ops::check_shape({kWhere, "x", x}, {1, rows, config_.width});
  ops::check_shape({kWhere, "positions", call.positions}, {rows});
  const RotaryPlaces places{.positions = call.positions, .end = end};
  Inputs all;
  project(all, x, x);
  finish_queries(all, places);
  finish_keys(all, places);
  std::vector<ops::AttentionPart> parts;
  parts.reserve(call.sequences.size());
  std::int64_t begin = 0;
  for (const AttentionRows& s : call.sequences) {
    Inputs in = part_of(all, begin, s);
    parts.push_back({in.q, in.k, in.v, std::move(in.options)});
    begin += s.count;
  }
  const bool additive = config_.score == Score::additive;
  const Tensor y = ops::attention_each(parts, additive ? p_.score : Tensor());  // [1, N, H, D]
  for (const AttentionRows& s : call.sequences) s.cache->commit();
  return ops::linear(ops::reshape(y, {1, rows, y.size(2) * y.size(3)}), p_.out, p_.out_bias);
}

Tensor Attention::forward(const Tensor& x, const AttentionCall& call) const {
  if (!call.sequences.empty()) return forward_each(x, call);
  const Inputs in = inputs(x, call);
  const bool additive = config_.score == Score::additive;
  const ops::AttentionWithSums made =
      additive ? ops::additive_attention_with_sums(in.q, in.k, p_.score, in.v, in.options)
               : ops::attention_with_sums(in.q, in.k, in.v, in.options);
  const Tensor& y = made.y;  // [B, T, H, D]
  if (call.observer != nullptr)
    call.observer->see(call.layer, config_.cross,
                       {in.q, in.k, additive ? p_.score : Tensor(), in.options, made.row_sums});
  if (call.at.defined()) {
    // counted by the caller
  } else if (call.cache != nullptr && !config_.cross)
    call.cache->commit();
  else if (call.cache != nullptr && call.cache->empty())
    call.cache->hold(in.k, in.v, call.memory_documents);
  const Tensor joined = ops::reshape(y, {y.size(0), y.size(1), y.size(2) * y.size(3)});
  return ops::linear(joined, p_.out, p_.out_bias);
}

Tensor Attention::weights(const Tensor& x, const ops::MapRows& rows,
                          const AttentionCall& call) const {
  expect(call.cache == nullptr, "argument cache", "none: a map needs the whole sequence",
         "a cache");
  const NoGrad no_grad;
  const Inputs in = inputs(x, call);
  return AttentionTrace{
      in.q, in.k, config_.score == Score::additive ? p_.score : Tensor(), in.options, {}}
      .weights(rows);
}

Tensor AttentionTrace::weights(const ops::MapRows& rows) const {
  return score.defined() ? ops::additive_attention_weights(q, k, score, options, rows, row_sums)
                         : ops::attention_weights(q, k, options, rows, row_sums);
}

}  // namespace heddle::nn
