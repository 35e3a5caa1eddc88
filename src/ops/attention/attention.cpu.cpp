// Attention on the CPU: which kernels a call takes, what they pack and sum, and from tensors to the
// plain pointers that they know.
#include <algorithm>
#include <iterator>
#include <span>
#include <vector>

#include "backend/cpu/isa.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/threads.h"
#include "base/divide.h"
#include "ops/attention/attention.call.h"
#include "ops/attention/attention.kernels.h"
#include "ops/reduce/reduce.kernels.h"
#include "ops/support/cpu.h"

namespace heddle::cpu {

namespace {

using ops::AttentionBackwardCall;
using ops::AttentionCall;
using ops::AttentionInputs;

// The layout of a call's workspace. The first entries serve both directions.
enum Place : std::uint8_t {
  kScratch,
  kPackedK,
  kPackedV,
  kPartial,  // forward
  kPackedVt = kPartial,
  kPackedKRows,
  kPackedQ,
  kPackedQRows,
  kPackedDy,
  kPackedDyRows,
  kDqSum,
  kDelta,
  kBiasSums,  // [parts · B, ...]: what is added up at the end
  kWeightSums,
  kSinkSums,
  kBlockSums,  // of that addition
};

AttentionShape shape_of(const AttentionInputs& in) {
  return {.batch = in.q.size(0),
          .queries = in.q.size(1),
          .keys = in.k.size(1),
          .heads = in.q.size(2),
          .key_heads = in.k.size(2),
          .width = in.q.size(3),
          .value_width = in.v.size(3),
          .shift = in.options.apart && in.k.size(1) > 0  // places before no key have no row to take
                       ? in.options.first_position % kDecodeKeys
                       : 0};
}

// Named by routines of the gradient alone, which a program may be linked without.
constexpr BackwardGroupFunction kBackwardGroup = kHasTiles ? amx_backward_group : nullptr;

// The tiles that the CPU has for products of bf16.
AttentionTiles tiles_in_use([[maybe_unused]] BackwardGroupFunction backward_group) {
  const Isa isa = current_isa();
  if (isa >= Isa::avx512_bf16 && planted_attention_tiles != nullptr)
    return *planted_attention_tiles;
  if constexpr (kHasTiles)
    if (isa == Isa::amx) return {amx_small_product, amx_transposed_group, backward_group};
  return {};
}

AttentionFacts facts_of(const AttentionInputs& in, const AttentionTiles& tiles) {
  AttentionFacts f;
  f.shape = shape_of(in);
  f.dtype = in.q.dtype();
  f.relu = in.options.normaliser == ops::Normaliser::relu;
  f.additive = in.additive;
  f.bias = in.bias.defined();
  f.sink = in.sinks.defined();
  f.pairs = in.additive_mask.defined() || in.allowed.defined();
  f.apart = in.options.apart;
  f.scale = in.options.scale;
  f.softcap = in.options.softcap;
  f.dropout = in.options.dropout;
  f.tiles = tiles;
  return f;
}

// Whether the kernels of a level multiply pairs of bf16.
bool multiplies_pairs(Isa isa) { return isa == Isa::neon_bf16 || isa >= Isa::avx512_bf16; }

// Workspace of one call, of the call's device and element type.
class Planner {
 public:
  explicit Planner(const AttentionInputs& in) : in_(in), shape_(shape_of(in)) {}

  Tensor numbers(const Shape& shape) const { return workspace(shape, compute_dtype(in_.q), in_.q); }

  // An operand as the products take it: bf16 stays bf16 where the CPU multiplies it.
  Tensor packed(std::int64_t heads, std::int64_t elements) const {
    const bool pairs = in_.q.dtype() == DType::bf16 && multiplies_pairs(current_isa());
    const DType type = pairs ? DType::bf16 : compute_dtype(in_.q);
    return workspace({heads, elements * static_cast<std::int64_t>(size_of(type))}, DType::u8,
                     in_.q);
  }

  std::int64_t scratch_bytes(BackwardPath path) const {
    const auto size = static_cast<std::int64_t>(size_of(compute_dtype(in_.q)));
    return attention_scratch_bytes(shape_, size, path);
  }
  Tensor scratch(BackwardPath path) const {
    const PurposeScope scope(Purpose::thread_buffers);
    return Tensor::empty({thread_count(), scratch_bytes(path)}, DType::u8, in_.q.device());
  }

  Tensor packed_keys() const {
    const std::int64_t heads = shape_.batch * shape_.key_heads;
    const std::int64_t keys = round_up(shape_.places(), kPad);
    return in_.additive ? numbers({heads, keys * shape_.width})
                        : packed(heads, packed_columns(keys, shape_.width));
  }

 private:
  const AttentionInputs& in_;
  AttentionShape shape_;
};

// All but the scratch of threads.
void plan_operands(AttentionCall& c) {
  const AttentionShape s = shape_of(c.in);
  const Planner plan(c.in);
  if (few_queries(s)) {
    c.workspace[kPartial] = plan.numbers({s.batch, s.heads, partial_size(s)});
    return;
  }
  c.workspace[kPackedK] = plan.packed_keys();
  c.workspace[kPackedV] =
      plan.packed(s.batch * s.key_heads, packed_rows(round_up(s.places(), kPad), s.value_width));
}

void plan_attention(AttentionCall& c) {
  c.workspace[kScratch] = Planner(c.in).scratch(BackwardPath::general);
  plan_operands(c);
}

// One scratch does for all: what a thread has just used is in its cache.
void plan_attention_each(ops::AttentionEachCall& c) {
  Tensor scratch;
  for (AttentionCall& part : c.parts) {
    const Planner plan(part.in);
    if (!scratch.defined() || plan.scratch_bytes(BackwardPath::general) > scratch.size(1))
      scratch = plan.scratch(BackwardPath::general);
    plan_operands(part);
  }
  for (AttentionCall& part : c.parts) part.workspace[kScratch] = scratch;
}

// Room for the sums of the blocks in which partial sums are added up, one addition at a time.
Tensor block_sums(const AttentionBackwardCall& c, const Planner& plan) {
  std::int64_t most = 0;
  for (const Place place : {kBiasSums, kWeightSums, kSinkSums}) {
    const Tensor& sums = c.workspace[place];
    if (!sums.defined() || sums.elements() == 0) continue;
    const std::int64_t length = sums.size(0), inner = sums.elements() / length;
    const std::int64_t blocks = reduce_blocks(length, inner);
    if (blocks > 1) most = std::max(most, blocks * inner);
  }
  return most > 0 ? plan.numbers({most}) : Tensor();
}

// A whole head needs nothing but its scratch; a long one packs its keys there.
void plan_attention_backward(AttentionBackwardCall& c) {
  const AttentionShape s = shape_of(c.in);
  const BackwardPath path = backward_path(facts_of(c.in, tiles_in_use(kBackwardGroup)));
  const Planner plan(c.in);
  auto& w = c.workspace;
  w[kScratch] = plan.scratch(path);
  if (path == BackwardPath::whole_heads) return;
  const std::int64_t parts = backward_parts(s);
  const std::int64_t key_heads = s.batch * s.key_heads, heads = s.batch * s.heads;
  const std::int64_t keys = round_up(s.keys, kPad), rows = round_up(s.queries, kQueryBlock);
  if (path == BackwardPath::general) {
    w[kPackedK] = plan.packed_keys();
    w[kPackedVt] = plan.packed(key_heads, packed_columns(keys, s.value_width));
    if (!c.in.additive) w[kPackedKRows] = plan.packed(key_heads, packed_rows(keys, s.width));
  }
  w[kPackedDy] = plan.packed(heads, packed_columns(rows, s.value_width));
  w[kPackedDyRows] = plan.packed(heads, packed_rows(rows, s.value_width));
  if (!c.in.additive) {
    w[kPackedQ] = plan.packed(heads, packed_columns(rows, s.width));
    w[kPackedQRows] = plan.packed(heads, packed_rows(rows, s.width));
  }
  w[kDqSum] = plan.numbers({parts, heads, rows, round_up(s.width, kPad)});
  w[kDelta] = plan.numbers({heads, s.queries});
  if (c.d_bias.defined()) w[kBiasSums] = plan.numbers({parts * s.batch, s.heads, c.d_bias.size(1)});
  if (c.dw.defined()) w[kWeightSums] = plan.numbers({parts * s.batch, s.heads, s.width});
  if (c.d_sinks.defined()) w[kSinkSums] = plan.numbers({s.batch, s.heads});
  w[kBlockSums] = block_sums(c, plan);
}

RowStrides strides_of(const Tensor& x) { return {x.strides()[0], x.strides()[1], x.strides()[2]}; }

// Of a mask of pairs: sequences or heads that share it do not move on.
RowStrides pair_strides(const Tensor& mask) {  // [B or 1, H or 1, Tq, Tk]
  return {mask.size(0) == 1 ? 0 : mask.strides()[0], mask.strides()[2],
          mask.size(1) == 1 ? 0 : mask.strides()[1]};
}

AttentionArgs args_of(const AttentionInputs& in, const AttentionTiles& tiles,
                      std::span<Tensor> workspace) {
  AttentionArgs a;
  static_cast<AttentionFacts&>(a) = facts_of(in, tiles);
  a.key = in.options.key;
  a.q = in.q.raw();
  a.k = in.k.raw();
  a.v = in.v.raw();
  a.q_strides = strides_of(in.q);
  a.k_strides = strides_of(in.k);
  a.v_strides = strides_of(in.v);
  a.score_weight = raw_or_null(in.w);
  a.relative_bias = raw_or_null(in.bias);
  a.sinks = raw_or_null(in.sinks);
  if (in.additive_mask.defined()) {
    a.additive_mask = in.additive_mask.raw();
    a.additive_strides = pair_strides(in.additive_mask);
  }
  if (in.allowed.defined()) {
    a.allowed = in.allowed.data<std::uint8_t>();
    a.allowed_strides = pair_strides(in.allowed);
  }
  a.first_key = in.keys.intervals.data<std::int32_t>();
  a.last_key = a.first_key + a.shape.batch * a.shape.queries;
  a.end_key = in.keys.ends.data<std::int32_t>();
  a.first_row = in.options.first_row;
  a.packed_k = raw_or_null(workspace[kPackedK]);
  a.scratch = workspace[kScratch].mutable_raw();
  a.scratch_bytes = workspace[kScratch].size(1);
  return a;
}

AttentionArgs forward_args(AttentionCall& c) {
  check_f64("attention", c.in.q.dtype());
  AttentionArgs args = args_of(c.in, tiles_in_use(nullptr), c.workspace);
  args.packed_v = raw_or_null(c.workspace[kPackedV]);
  args.partial = raw_or_null(c.workspace[kPartial]);
  args.y = c.y.mutable_raw();
  args.row_sum = c.row_sums.mutable_raw();
  args.row_parts = raw_or_null(c.row_parts);
  return args;
}

void run_attention(AttentionCall& c) { kernels<AttentionKernels>().forward(forward_args(c)); }

void run_attention_each(ops::AttentionEachCall& c) {
  std::vector<AttentionArgs> all;
  all.reserve(c.parts.size());
  for (AttentionCall& part : c.parts) all.push_back(forward_args(part));
  kernels<AttentionKernels>().forward_each({all.data(), std::ssize(all)});
}

// y = Σ over the first dimension of x.
void add_up(const Tensor& x, Tensor& block_sums, Tensor& y) {
  if (!y.defined()) return;
  const std::int64_t length = x.size(0);
  kernels<ReduceKernels>().forward({.kind = ops::Reduce::sum,
                                    .dtype = x.dtype(),
                                    .outer = 1,
                                    .length = length,
                                    .inner = y.elements(),
                                    .scale = 1,
                                    .x = x.raw(),
                                    .partial = raw_or_null(block_sums),
                                    .y = y.mutable_raw()});
}

void run_attention_backward(AttentionBackwardCall& c) {
  auto& w = c.workspace;
  AttentionBackwardArgs args;
  args.forward = args_of(c.in, tiles_in_use(kBackwardGroup), w);
  // Read only in this direction; the struct serves both.
  args.forward.y = const_cast<void*>(c.y.raw());
  args.forward.row_sum = const_cast<void*>(c.row_sums.raw());
  args.forward.row_parts = const_cast<void*>(raw_or_null(c.row_parts));
  args.dy = c.dy.raw();
  args.packed_vt = raw_or_null(w[kPackedVt]);
  args.packed_k_rows = raw_or_null(w[kPackedKRows]);
  args.packed_q = raw_or_null(w[kPackedQ]);
  args.packed_q_rows = raw_or_null(w[kPackedQRows]);
  args.packed_dy = raw_or_null(w[kPackedDy]);
  args.packed_dy_rows = raw_or_null(w[kPackedDyRows]);
  args.dq_sum = raw_or_null(w[kDqSum]);
  args.delta = raw_or_null(w[kDelta]);
  args.dq = c.dq.mutable_raw();
  args.dk = c.dk.mutable_raw();
  args.dv = c.dv.mutable_raw();
  args.partial_bias = raw_or_null(w[kBiasSums]);
  args.partial_weight = raw_or_null(w[kWeightSums]);
  args.partial_sinks = raw_or_null(w[kSinkSums]);
  if (c.d_additive_mask.defined()) {
    args.d_additive = c.d_additive_mask.mutable_raw();
    args.d_additive_strides = pair_strides(c.d_additive_mask);
  }
  kernels<AttentionGradientKernels>().backward(args);
  add_up(w[kBiasSums], w[kBlockSums], c.d_bias);
  add_up(w[kWeightSums], w[kBlockSums], c.dw);
  add_up(w[kSinkSums], w[kBlockSums], c.d_sinks);
}

}  // namespace

void add_attention_routines() {
  add<AttentionCall>({run_attention, plan_attention});
  add<ops::AttentionEachCall>({run_attention_each, plan_attention_each});
}

void add_attention_gradient_routines() {
  add<AttentionBackwardCall>({run_attention_backward, plan_attention_backward});
}

}  // namespace heddle::cpu
