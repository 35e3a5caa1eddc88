#include "ops/attention/attention.h"

#include <cmath>
#include <string>

#include "backend/cpu/isa.h"
#include "backend/cpu/threads.h"
#include "ops/attention/attention.kernels.h"
#include "ops/attention/mask.h"
#include "ops/copy/copy.h"
#include "ops/reduce/reduce.h"
#include "ops/support/op.h"

namespace heddle::ops {

namespace {

using cpu::AttentionShape;

// Everything a call needs, checked and dense.
struct Call {
  const char* op = "";
  AttentionShape shape;
  AttentionOptions options;  // with its default scale filled in
  bool additive = false;
  Tensor q, k, v, w;  // w: weight of the additive score
  Tensor bias, sinks;
  Tensor additive_mask, allowed;  // masks of pairs; their rows' elements lie side by side
  Tensor intervals;               // visible keys of each query, [2, B, Tq]
  Tensor ends;                    // of the keys that any query sees, [B]
  bool bias_gradient = true;      // false: nobody asks for it (ALiBi's is a constant)
  bool mask_gradient = true;      // of the additive mask
};

DType compute_dtype(const Tensor& x) { return parameter_dtype(x); }

AttentionShape checked_shape(const char* op, const Tensor& q, const Tensor& k, const Tensor& v) {
  check_compute({op, "q", q});
  check_rank({op, "q", q}, 4);
  for (const auto& [name, t] : {std::pair<const char*, const Tensor&>{"k", k}, {"v", v}}) {
    check_dtype({op, name, t}, q.dtype());
    check_rank({op, name, t}, 4);
    check_same_device({op, name, t}, q);
  }
  AttentionShape s{q.size(0), q.size(1), k.size(1), q.size(2), k.size(2), q.size(3), v.size(3)};
  check_shape({op, "k", k}, {s.batch, s.keys, s.key_heads, s.width});
  check_shape({op, "v", v}, {s.batch, s.keys, s.key_heads, s.value_width});
  check_condition(
      s.key_heads > 0 && s.heads % s.key_heads == 0, op, "k",
      "a number of key heads that divides the " + std::to_string(s.heads) + " query heads",
      std::to_string(s.key_heads));
  return s;
}

AttentionSizes sizes_of(const AttentionShape& s) { return {s.batch, s.queries, s.keys}; }

Tensor workspace(const Shape& shape, DType dtype, Device device) {
  const PurposeScope scope(Purpose::workspace);
  return Tensor::empty(shape, dtype, device);
}

Tensor thread_buffers(std::int64_t bytes_each, Device device) {
  const PurposeScope scope(Purpose::thread_buffers);
  return Tensor::empty({cpu::thread_count(), bytes_each}, DType::u8, device);
}

// Bytes of an element as the products take it: bf16 stays bf16 where the CPU multiplies it.
std::int64_t element_bytes(const Tensor& x) {
  const bool pairs = x.dtype() == DType::bf16 && cpu::current_isa() >= cpu::Isa::avx512_bf16;
  return static_cast<std::int64_t>(size_of(pairs ? DType::bf16 : compute_dtype(x)));
}

Tensor packed(std::int64_t heads, std::int64_t elements, const Tensor& like) {
  return workspace({heads, elements * element_bytes(like)}, DType::u8, like.device());
}

void* pointer(Tensor& t) { return t.defined() ? t.mutable_raw() : nullptr; }
const void* pointer_to(const Tensor& t) { return t.defined() ? t.raw() : nullptr; }

// Rows are read where they lie, as long as their elements lie side by side.
Tensor in_rows(const Tensor& x) { return x.size(3) <= 1 || x.strides()[3] == 1 ? x : dense(x); }

cpu::RowStrides strides_of(const Tensor& x) {
  return {x.strides()[0], x.strides()[1], x.strides()[2]};
}

// Of a mask of pairs: sequences or heads that share it do not move on.
cpu::RowStrides pair_strides(const Tensor& mask) {  // [B or 1, H or 1, Tq, Tk]
  return {mask.size(0) == 1 ? 0 : mask.strides()[0], mask.strides()[2],
          mask.size(1) == 1 ? 0 : mask.strides()[1]};
}

// The tiles that the CPU has for products of bf16.
cpu::AttentionTiles tiles_in_use() {
  const cpu::Isa isa = cpu::current_isa();
  if (isa >= cpu::Isa::avx512_bf16 && cpu::planted_attention_tiles != nullptr)
    return *cpu::planted_attention_tiles;
  if (isa != cpu::Isa::amx) return {};
  return {cpu::amx_small_product, cpu::amx_turned_group, cpu::amx_backward_group};
}

cpu::AttentionFacts facts_of(const Call& c) {
  cpu::AttentionFacts f;
  f.shape = c.shape;
  f.dtype = c.q.dtype();
  f.relu = c.options.normaliser == Normaliser::relu;
  f.additive = c.additive;
  f.bias = c.bias.defined();
  f.sink = c.sinks.defined();
  f.pairs = c.additive_mask.defined() || c.allowed.defined();
  f.scale = c.options.scale;
  f.softcap = c.options.softcap;
  f.dropout = c.options.dropout;
  f.tiles = tiles_in_use();
  return f;
}

// Buffers of one kernel call. They are made on every device alike; args() fills in the pointers.
class Buffers {
 public:
  Buffers(const Call& c, bool backward) : call_(c) {
    const AttentionShape& s = c.shape;
    const auto path = backward ? cpu::backward_path(facts_of(c)) : cpu::BackwardPath::general;
    scratch_bytes_ = cpu::attention_scratch_bytes(
        s, static_cast<std::int64_t>(size_of(compute_dtype(c.q))), path);
    scratch = thread_buffers(scratch_bytes_, c.q.device());
    if (path != cpu::BackwardPath::general) return;  // keys are packed where they are used
    const std::int64_t heads = s.batch * s.key_heads, keys = cpu::padded(s.keys, cpu::kPad);
    if (!backward && cpu::few_queries(s))
      partial =
          workspace({s.batch, s.heads, cpu::partial_size(s)}, compute_dtype(c.q), c.q.device());
    else if (c.additive)
      k = workspace({heads, keys * s.width}, compute_dtype(c.q), c.q.device());
    else
      k = packed(heads, cpu::packed_columns(keys, s.width), c.q);
    if (!backward && !cpu::few_queries(s))
      v = packed(heads, cpu::packed_rows(keys, s.value_width), c.q);
  }

  cpu::AttentionArgs args() {
    const Call& c = call_;
    cpu::AttentionArgs a;
    static_cast<cpu::AttentionFacts&>(a) = facts_of(c);
    a.key = c.options.key;
    a.q = c.q.raw();
    a.k = c.k.raw();
    a.v = c.v.raw();
    a.q_strides = strides_of(c.q);
    a.k_strides = strides_of(c.k);
    a.v_strides = strides_of(c.v);
    a.score_weight = pointer_to(c.w);
    a.relative_bias = pointer_to(c.bias);
    a.sinks = pointer_to(c.sinks);
    if (c.additive_mask.defined()) {
      a.additive_mask = c.additive_mask.raw();
      a.additive_strides = pair_strides(c.additive_mask);
    }
    if (c.allowed.defined()) {
      a.allowed = c.allowed.data<std::uint8_t>();
      a.allowed_strides = pair_strides(c.allowed);
    }
    a.first_key = c.intervals.data<std::int32_t>();
    a.last_key = a.first_key + c.shape.batch * c.shape.queries;
    a.end_key = c.ends.data<std::int32_t>();
    a.packed_k = pointer(k);
    a.packed_v = pointer(v);
    a.partial = pointer(partial);
    a.first_row = c.options.first_row;
    a.scratch = pointer(scratch);
    a.scratch_bytes = scratch_bytes_;
    return a;
  }

  Tensor k, v, partial, scratch;

 private:
  const Call& call_;
  std::int64_t scratch_bytes_ = 0;
};

// Per visible pair and head: two products forward (D and E multiply-adds) and about ten operations
// of the softmax; five products backward.
Cost cost_of(const Call& c, bool backward) {
  const AttentionShape& s = c.shape;
  const double pairs =
      visible_pairs(c.options.mask, sizes_of(s), c.intervals) * static_cast<double>(s.heads);
  const auto width = static_cast<double>(s.width);
  const auto value = static_cast<double>(s.value_width);
  const double score = c.additive ? 20 * width : 2 * width;
  const double tensors = bytes_of(c.q) + bytes_of(c.k) + bytes_of(c.v);
  if (backward) return {pairs * (3 * score + 4 * value + 20), 3 * tensors};
  return {pairs * (score + 2 * value + 10), 2 * tensors};
}

struct Result {
  Tensor y, row_sums;
  Tensor row_parts;  // [2, B, H, Tq], of a softmax beside an additive mask
};

Result forward(const Call& c) {
  const AttentionShape& s = c.shape;
  const Device device = c.q.device();
  Result r{Tensor::empty({s.batch, s.queries, s.heads, s.value_width}, c.q.dtype(), device),
           Tensor::empty({s.batch, s.heads, s.queries}, compute_dtype(c.q), device),
           {}};
  if (c.additive_mask.defined() && c.options.normaliser == Normaliser::softmax)
    r.row_parts = Tensor::empty({2, s.batch, s.heads, s.queries}, compute_dtype(c.q), device);
  Buffers buffers(c, false);
  if (!launch(r.y, cost_of(c, false))) return r;
  cpu::AttentionArgs args = buffers.args();
  args.y = r.y.mutable_raw();
  args.row_sum = r.row_sums.mutable_raw();
  args.row_parts = pointer(r.row_parts);
  kernels<cpu::AttentionKernels>().forward(args);
  return r;
}

struct Gradients {
  Tensor q, k, v, w, bias, sinks, additive_mask;
};

// The second half of the buffers: what only the backward pass packs and sums. A whole head needs
// none of it, a long one packs its keys in the scratch.
struct BackwardBuffers {
  explicit BackwardBuffers(const Call& c) {
    const cpu::BackwardPath path = cpu::backward_path(facts_of(c));
    if (path == cpu::BackwardPath::whole_heads) return;
    const AttentionShape& s = c.shape;
    const Device device = c.q.device();
    const DType sums = compute_dtype(c.q);
    const std::int64_t parts = cpu::backward_parts(s);
    const std::int64_t key_heads = s.batch * s.key_heads, heads = s.batch * s.heads;
    const std::int64_t keys = cpu::padded(s.keys, cpu::kPad);
    const std::int64_t rows = cpu::padded(s.queries, cpu::kQueryBlock);
    if (path == cpu::BackwardPath::general) {
      vt = packed(key_heads, cpu::packed_columns(keys, s.value_width), c.q);
      if (!c.additive) k_rows = packed(key_heads, cpu::packed_rows(keys, s.width), c.q);
    }
    dy = packed(heads, cpu::packed_columns(rows, s.value_width), c.q);
    dy_rows = packed(heads, cpu::packed_rows(rows, s.value_width), c.q);
    if (!c.additive) {
      q = packed(heads, cpu::packed_columns(rows, s.width), c.q);
      q_rows = packed(heads, cpu::packed_rows(rows, s.width), c.q);
    }
    dq_sum = workspace({parts, heads, rows, cpu::padded(s.width, cpu::kPad)}, sums, device);
    delta = workspace({heads, s.queries}, sums, device);
    if (c.bias.defined() && c.bias_gradient)
      bias = workspace({parts * s.batch, s.heads, c.bias.size(1)}, sums, device);
    if (c.additive) weight = workspace({parts * s.batch, s.heads, s.width}, sums, device);
    if (c.sinks.defined()) sinks = workspace({s.batch, s.heads}, sums, device);
  }
  Tensor vt, k_rows, q, q_rows, dy, dy_rows, dq_sum, delta, bias, weight, sinks;
};

Gradients backward(const Call& c, const Result& r, const Tensor& cotangent) {
  const Tensor dy = dense(cotangent);
  Gradients g{empty_like(c.q), empty_like(c.k), empty_like(c.v), {}, {}, {}, {}};
  if (c.additive_mask.defined() && c.mask_gradient)
    g.additive_mask =
        Tensor::zeros(c.additive_mask.shape(), c.additive_mask.dtype(), c.additive_mask.device());
  Buffers buffers(c, true);
  BackwardBuffers more(c);
  if (launch(g.q, cost_of(c, true))) {
    cpu::AttentionBackwardArgs args;
    args.forward = buffers.args();
    // Read only in this direction; the struct serves both.
    args.forward.y = const_cast<void*>(r.y.raw());
    args.forward.row_sum = const_cast<void*>(r.row_sums.raw());
    args.forward.row_parts = const_cast<void*>(pointer_to(r.row_parts));
    args.dy = dy.raw();
    args.packed_vt = pointer(more.vt);
    args.packed_k_rows = pointer(more.k_rows);
    args.packed_q = pointer(more.q);
    args.packed_q_rows = pointer(more.q_rows);
    args.packed_dy = pointer(more.dy);
    args.packed_dy_rows = pointer(more.dy_rows);
    args.dq_sum = pointer(more.dq_sum);
    args.delta = pointer(more.delta);
    args.dq = g.q.mutable_raw();
    args.dk = g.k.mutable_raw();
    args.dv = g.v.mutable_raw();
    args.partial_bias = pointer(more.bias);
    args.partial_weight = pointer(more.weight);
    args.partial_sinks = pointer(more.sinks);
    if (g.additive_mask.defined()) {
      args.d_additive = g.additive_mask.mutable_raw();
      args.d_additive_strides = pair_strides(g.additive_mask);
    }
    kernels<cpu::AttentionKernels>().backward(args);
  }
  if (more.bias.defined()) g.bias = sum(more.bias, 0);
  if (more.weight.defined()) g.w = sum(more.weight, 0);
  if (more.sinks.defined()) g.sinks = sum(more.sinks, 0);
  return g;
}

// What the tape keeps of a call.
struct SavedCall {
  explicit SavedCall(const Call& c, const Result& r)
      : call(c),
        q(c.q),
        k(c.k),
        v(c.v),
        w(c.w),
        bias(c.bias),
        sinks(c.sinks),
        additive_mask(c.additive_mask),
        allowed(c.allowed),
        y(r.y.detach()),
        row_sums(r.row_sums),
        row_parts(r.row_parts) {}

  Call get() const {
    Call c = call;
    c.q = q.get();
    c.k = k.get();
    c.v = v.get();
    c.w = w.get();
    c.bias = bias.get();
    c.sinks = sinks.get();
    c.additive_mask = additive_mask.get();
    c.allowed = allowed.get();
    return c;
  }

  Call call;
  Saved q, k, v, w, bias, sinks, additive_mask, allowed, y, row_sums, row_parts;
};

AttentionWithSums attend(Call& c, const Tensor& q, const Tensor& k, const Tensor& v,
                         const Tensor& w) {
  const AttentionOptions& o = c.options;
  check_options(c.op, o, q, sizes_of(c.shape));
  c.q = in_rows(q);
  c.k = in_rows(k);
  c.v = in_rows(v);
  c.w = dense_or_none(w);
  c.bias = dense_or_none(o.relative_bias);
  c.sinks = dense_or_none(o.sinks);
  if (o.additive_mask.defined()) c.additive_mask = in_rows(o.additive_mask);
  if (o.mask.allowed.defined()) c.allowed = in_rows(o.mask.allowed);
  c.intervals = visible_keys(o.mask, sizes_of(c.shape), q.device());
  c.ends = ends_of_keys(c.intervals);
  Result r = forward(c);
  if (tracked({&q, &k, &v, &w, &o.relative_bias, &o.sinks, &o.additive_mask}))
    record(c.op, {&q, &k, &v, &w, &o.relative_bias, &o.sinks, &o.additive_mask}, {&r.y},
           [saved = SavedCall(c, r)](VjpContext& context) {
             const Result result{saved.y.get(), saved.row_sums.get(), saved.row_parts.get()};
             Call call = saved.get();
             call.bias_gradient = context.needs(4);
             call.mask_gradient = context.needs(6);
             const Gradients g = backward(call, result, context.cotangent());
             const Tensor* const grads[] = {
                 &g.q, &g.k, &g.v, &g.w, &g.bias, &g.sinks, &g.additive_mask};
             for (int i = 0; i < 7; ++i)
               if (context.needs(i)) context.add(i, *grads[i]);
           });
  return {r.y, r.row_sums};
}

void check_halves(const char* op, const Tensor& k, const Tensor& v) {
  check_dtype({op, "k", k}, DType::f16);
  check_dtype({op, "v", v}, DType::f16);
}

AttentionWithSums with_half(const AttentionWithSums& r) { return {to_half(r.y), r.row_sums}; }

}  // namespace

AttentionWithSums attention_with_sums(const Tensor& q, const Tensor& k, const Tensor& v,
                                      const AttentionOptions& options) {
  if (is_half(q)) {
    check_halves("attention", k, v);
    return with_half(attention_with_sums(wide(q), wide(k), wide(v), options));
  }
  Call c;
  c.op = "attention";
  c.shape = checked_shape(c.op, q, k, v);
  c.options = options;
  if (options.scale == 0)
    c.options.scale = 1 / std::sqrt(std::max(1.0, static_cast<double>(c.shape.width)));
  return attend(c, q, k, v, {});
}

AttentionWithSums additive_attention_with_sums(const Tensor& q, const Tensor& k, const Tensor& w,
                                               const Tensor& v, const AttentionOptions& options) {
  if (is_half(q)) {
    check_halves("additive_attention", k, v);
    return with_half(additive_attention_with_sums(wide(q), wide(k), w, wide(v), options));
  }
  Call c;
  c.op = "additive_attention";
  c.shape = checked_shape(c.op, q, k, v);
  check_parameter({c.op, "w", w}, q, {c.shape.heads, c.shape.width});
  c.options = options;
  if (options.scale == 0) c.options.scale = 1;
  c.additive = true;
  return attend(c, q, k, v, w);
}

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v,
                 const AttentionOptions& options) {
  return attention_with_sums(q, k, v, options).y;
}

Tensor additive_attention(const Tensor& q, const Tensor& k, const Tensor& w, const Tensor& v,
                          const AttentionOptions& options) {
  return additive_attention_with_sums(q, k, w, v, options).y;
}

}  // namespace heddle::ops
