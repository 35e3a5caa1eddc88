#include "ops/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "ops/attention/attention.call.h"
#include "ops/attention/dense.h"
#include "ops/attention/mask.h"
#include "ops/concat/concat.h"
#include "ops/copy/copy.h"
#include "ops/support/op.h"

namespace heddle::ops {

namespace {

AttentionSizes sizes_of(const Tensor& q, const Tensor& k) {
  return {q.size(0), q.size(1), k.size(1)};
}

void check_tensors(const char* op, const Tensor& q, const Tensor& k, const Tensor& v) {
  check_compute({op, "q", q});
  check_rank({op, "q", q}, 4);
  for (const auto& [name, t] : {std::pair<const char*, const Tensor&>{"k", k}, {"v", v}}) {
    check_dtype({op, name, t}, q.dtype());
    check_rank({op, name, t}, 4);
    check_same_device({op, name, t}, q);
  }
  const std::int64_t batch = q.size(0), keys = k.size(1), heads = q.size(2), key_heads = k.size(2);
  check_shape({op, "k", k}, {batch, keys, key_heads, q.size(3)});
  check_shape({op, "v", v}, {batch, keys, key_heads, v.size(3)});
  if (key_heads <= 0 || heads % key_heads != 0)
    check_condition(
        false, op, "k",
        "a number of key heads that divides the " + std::to_string(heads) + " query heads",
        std::to_string(key_heads));
}

// Rows are read where they lie, as long as their elements lie side by side.
Tensor in_rows(const Tensor& x) {
  return !x.defined() || x.size(3) <= 1 || x.strides()[3] == 1 ? x : dense(x);
}

struct Result {
  Tensor y, row_sums;
  Tensor row_parts;  // for a softmax with an additive mask
};

Result forward(const AttentionInputs& in) {
  const std::int64_t batch = in.q.size(0), queries = in.q.size(1), heads = in.q.size(2);
  const Device device = in.q.device();
  const DType sums = parameter_dtype(in.q);
  Result r{Tensor::empty({batch, queries, heads, in.v.size(3)}, in.q.dtype(), device),
           Tensor::empty({batch, heads, queries}, sums, device),
           {}};
  if (in.additive_mask.defined() && in.options.normaliser == Normaliser::softmax)
    r.row_parts = Tensor::empty({2, batch, heads, queries}, sums, device);
  launch(AttentionCall{in, r.y, r.row_sums, r.row_parts});
  return r;
}

struct Gradients {
  Tensor q, k, v, w, bias, sinks, additive_mask;
};

// Which gradients of inputs that may be constants are wanted: ALiBi's bias is one.
struct Wanted {
  bool bias = true, additive_mask = true;
};

Gradients backward(const AttentionInputs& in, const Wanted& wanted, const Result& r,
                   const Tensor& cotangent) {
  const Tensor dy = dense(cotangent);
  Gradients g{empty_like(in.q), empty_like(in.k), empty_like(in.v), {}, {}, {}, {}};
  if (in.w.defined()) g.w = empty_like(in.w);
  if (in.bias.defined() && wanted.bias) g.bias = empty_like(in.bias);
  if (in.sinks.defined()) g.sinks = empty_like(in.sinks);
  if (in.additive_mask.defined() && wanted.additive_mask)
    g.additive_mask = Tensor::zeros(in.additive_mask.shape(), in.additive_mask.dtype(),
                                    in.additive_mask.device());
  launch(AttentionBackwardCall{.in = in,
                               .y = r.y,
                               .row_sums = r.row_sums,
                               .row_parts = r.row_parts,
                               .dy = dy,
                               .dq = g.q,
                               .dk = g.k,
                               .dv = g.v,
                               .dw = g.w,
                               .d_bias = g.bias,
                               .d_sinks = g.sinks,
                               .d_additive_mask = g.additive_mask});
  return g;
}

// The state of a call that the tape keeps.
struct SavedCall {
  SavedCall(const AttentionInputs& i, const Result& r)
      : in(i),
        q(i.q),
        k(i.k),
        v(i.v),
        w(i.w),
        bias(i.bias),
        sinks(i.sinks),
        additive_mask(i.additive_mask),
        allowed(i.allowed),
        y(r.y.detach()),
        row_sums(r.row_sums),
        row_parts(r.row_parts) {
    in.options.apart = false;  // an order of forward sums
  }

  // None of them may have changed.
  const AttentionInputs& inputs() const {
    for (const Saved* s : {&q, &k, &v, &w, &bias, &sinks, &additive_mask, &allowed}) s->get();
    return in;
  }
  Result result() const { return {y.get(), row_sums.get(), row_parts.get()}; }

  AttentionInputs in;
  Saved q, k, v, w, bias, sinks, additive_mask, allowed, y, row_sums, row_parts;
};

void backward_of(const SavedCall& saved, VjpContext& context) {
  const Wanted wanted{context.needs(4), context.needs(6)};
  const Gradients g = backward(saved.inputs(), wanted, saved.result(), context.cotangent());
  const Tensor* const grads[] = {&g.q, &g.k, &g.v, &g.w, &g.bias, &g.sinks, &g.additive_mask};
  for (int i = 0; i < 7; ++i)
    if (context.needs(i)) context.add(i, *grads[i]);
}

AttentionInputs inputs_of(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& w,
                          const AttentionOptions& o) {
  return {.additive = w.defined(),
          .options = o,
          .q = in_rows(q),
          .k = in_rows(k),
          .v = in_rows(v),
          .w = dense_or_none(w),
          .bias = dense_or_none(o.relative_bias),
          .sinks = dense_or_none(o.sinks),
          .additive_mask = in_rows(o.additive_mask),
          .allowed = in_rows(o.mask.allowed),
          .keys = o.keys.intervals.defined() ? o.keys
                                             : visible_keys(o.mask, sizes_of(q, k), q.device())};
}

// An attention of either score; w is undefined for the dot product.
AttentionWithSums attend(const char* op, const Tensor& q, const Tensor& k, const Tensor& v,
                         const Tensor& w, const AttentionOptions& o) {
  check_options(op, o, q, sizes_of(q, k));
  if (!has_routine<AttentionCall>(q)) return dense_attention::with_sums(q, k, v, w, o);
  const AttentionInputs in = inputs_of(q, k, v, w, o);
  Result r = forward(in);
  if (tracked({&q, &k, &v, &w, &o.relative_bias, &o.sinks, &o.additive_mask}))
    record(op, {&q, &k, &v, &w, &o.relative_bias, &o.sinks, &o.additive_mask}, {&r.y},
           [saved = SavedCall(in, r)](VjpContext& context) { backward_of(saved, context); });
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
  check_tensors("attention", q, k, v);
  AttentionOptions o = options;
  if (o.scale == 0) o.scale = 1 / std::sqrt(std::max(1.0, static_cast<double>(q.size(3))));
  return attend("attention", q, k, v, {}, o);
}

AttentionWithSums additive_attention_with_sums(const Tensor& q, const Tensor& k, const Tensor& w,
                                               const Tensor& v, const AttentionOptions& options) {
  if (is_half(q)) {
    check_halves("additive_attention", k, v);
    return with_half(additive_attention_with_sums(wide(q), wide(k), w, wide(v), options));
  }
  check_tensors("additive_attention", q, k, v);
  check_parameter({"additive_attention", "w", w}, q, {q.size(2), q.size(3)});
  AttentionOptions o = options;
  if (o.scale == 0) o.scale = 1;
  return attend("additive_attention", q, k, v, w, o);
}

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v,
                 const AttentionOptions& options) {
  return attention_with_sums(q, k, v, options).y;
}

Tensor additive_attention(const Tensor& q, const Tensor& k, const Tensor& w, const Tensor& v,
                          const AttentionOptions& options) {
  return additive_attention_with_sums(q, k, w, v, options).y;
}

namespace {

// Where the device takes one sequence at a time.
Tensor one_by_one(std::span<const AttentionPart> parts, const Tensor& w) {
  std::vector<Tensor> all;
  all.reserve(parts.size());
  for (const AttentionPart& p : parts)
    all.push_back(w.defined() ? additive_attention(p.q, p.k, w, p.v, p.options)
                              : attention(p.q, p.k, p.v, p.options));
  return concat(all, 1);
}

}  // namespace

Tensor attention_each(std::span<const AttentionPart> parts, const Tensor& w) {
  const char* const op = "attention_each";
  check_condition(!parts.empty(), op, "parts", "one or more", "none");
  const Tensor& first = parts.front().q;
  for (const AttentionPart& p : parts)
    for (const Arg& a : {Arg{op, "q", p.q}, Arg{op, "k", p.k}, Arg{op, "v", p.v}}) {
      check_defined(a);
      if (is_half(first)) check_dtype(a, DType::f16);
    }
  if (is_half(first) || !has_routine<AttentionEachCall>(first)) return one_by_one(parts, w);
  std::vector<AttentionInputs> inputs;
  inputs.reserve(parts.size());
  std::int64_t rows = 0;
  for (const AttentionPart& p : parts) {
    check_tensors(op, p.q, p.k, p.v);
    check_dtype({op, "q", p.q}, first.dtype());
    check_shape({op, "q", p.q}, {1, p.q.size(1), first.size(2), first.size(3)});
    check_shape({op, "v", p.v}, {1, p.k.size(1), p.k.size(2), parts.front().v.size(3)});
    AttentionOptions o = p.options;
    if (o.scale == 0)
      o.scale = w.defined() ? 1 : 1 / std::sqrt(std::max(1.0, static_cast<double>(first.size(3))));
    check_options(op, o, p.q, sizes_of(p.q, p.k));
    check_condition(!tracked({&p.q, &p.k, &p.v, &w}), op, "parts", "no gradients: use NoGrad",
                    "tensors on a tape");
    inputs.push_back(inputs_of(p.q, p.k, p.v, w, o));
    rows += p.q.size(1);
  }
  if (w.defined()) check_parameter({op, "w", w}, first, {first.size(2), first.size(3)});
  const Tensor y = Tensor::empty({1, rows, first.size(2), parts.front().v.size(3)}, first.dtype(),
                                 first.device());
  std::vector<Result> results;  // their y are views of the one above
  results.reserve(parts.size());
  std::vector<AttentionCall> calls;
  calls.reserve(parts.size());
  std::int64_t begin = 0;
  for (const AttentionInputs& in : inputs) {
    const std::int64_t end = begin + in.q.size(1);
    results.push_back(
        {views::slice(y, 1, begin, end),
         Tensor::empty({1, first.size(2), in.q.size(1)}, parameter_dtype(first), first.device()),
         {}});
    Result& r = results.back();
    if (in.additive_mask.defined() && in.options.normaliser == Normaliser::softmax)
      r.row_parts = Tensor::empty({2, 1, first.size(2), in.q.size(1)}, parameter_dtype(first),
                                  first.device());
    calls.push_back({in, r.y, r.row_sums, r.row_parts});
    begin = end;
  }
  launch(AttentionEachCall{calls});
  return y;
}

}  // namespace heddle::ops
