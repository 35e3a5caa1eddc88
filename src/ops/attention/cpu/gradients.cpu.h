// The backward pass's problem: addresses of gradients and operands; rows before the tiles.
//
// With weights P (after dropout P'), row sums D = Σ dy·y and dP = dy · Vᵀ (dropout applied):
//   softmax  dS = P ∘ (dP - D)
//   relu     dS = [S > 0] ∘ (dP - D) / R
//   dV = P'ᵀ · dY;  dK = scale · dSᵀ · Q;  dQ = scale · dS · K;  bias: sums of dS along diagonals;
//   additive mask: dS, added up over the sequences and heads that share it
#pragma once

#include "base/divide.h"
#include "ops/attention/cpu/forward.cpu.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace attention_detail {

template <class S>
struct BackwardProblem {
  using C = Compute<S>;
  using U = Unit<S>;

  explicit BackwardProblem(const AttentionBackwardArgs& args)
      : b(args),
        p(args.forward),
        rows(query_blocks(p.s.queries) * kQueryBlock),
        width(round_up(p.s.width, kPad)),
        parts(backward_parts(p.s)) {}

  const AttentionBackwardArgs& b;
  Problem<S> p;
  const std::int64_t rows;   // queries, padded
  const std::int64_t width;  // D, padded
  const std::int64_t parts;

  const S* dy(const Rows& r, std::int64_t row) const {
    return static_cast<const S*>(b.dy) + p.dense_row(r, row, p.s.value_width);
  }
  C* delta(const Rows& r) const { return static_cast<C*>(b.delta) + p.row_number(r); }
  std::int64_t head_number(const Rows& r) const { return r.batch * p.s.heads + r.head; }
  C* dq_sum(std::int64_t part, const Rows& r) const {
    const std::int64_t head = part * p.s.batch * p.s.heads + head_number(r);
    return static_cast<C*>(b.dq_sum) + (head * rows + r.first) * width;
  }
  // Q or dY as A: [row groups][steps][kTileRows] per head, or [rows][steps] for AMX tiles.
  U* as_rows(void* base, std::int64_t steps, const Rows& r) const {
    return static_cast<U*>(base) + (head_number(r) * rows + r.first) * steps;
  }
  // Q or dY as B: panels of columns, the queries along the sum.
  Panels<S> as_columns(void* base, std::int64_t columns, const Rows& r) const {
    const std::int64_t steps = rows / kPair<S>;
    return {static_cast<const U*>(base) + head_number(r) * steps * round_up(columns, kPad) +
                r.first / kPair<S> * kPanel<S>,
            steps * kPanel<S>};
  }
  // On AMX tiles dKᵀ and dVᵀ are made, since dS and P have the layout of their B: Qᵀ or dYᵀ as A,
  // [width][kQueryBlock] for each block of queries.
  U* transposed(void* base, std::int64_t columns, const Rows& r) const {
    return static_cast<U*>(base) +
           (head_number(r) * rows + r.first / kQueryBlock * kQueryBlock) / kPair<S> * columns;
  }
  std::int64_t bias_length() const { return p.s.queries + p.s.keys - 1; }
  C* bias_sums(std::int64_t part, const Rows& r) const {
    return static_cast<C*>(b.partial_bias) +
           (part * p.s.batch * p.s.heads + head_number(r)) * bias_length();
  }
  C* d_additive(const Rows& r, std::int64_t row) const {
    return static_cast<C*>(b.d_additive) + Problem<S>::pair_row(b.d_additive_strides, r, row);
  }
  C* weight_sums(std::int64_t part, const Rows& r) const {
    return static_cast<C*>(b.partial_weight) +
           (part * p.s.batch * p.s.heads + head_number(r)) * p.s.width;
  }
};

// delta = Σ_e dy · y of every row, and the gradient of the sink: -Σ_i exp(sink - lse) · delta.
template <class S>
void row_deltas(const BackwardProblem<S>& g, std::int64_t batch, std::int64_t head) {
  using C = Compute<S>;
  const Problem<S>& p = g.p;
  const Tag<S> d;
  const Rows all{batch, head, 0, p.s.queries};
  C sink = 0;
  for (std::int64_t i = 0; i < p.s.queries; ++i) {
    const S* y = p.y(all, i);
    const S* dy = g.dy(all, i);
    const C delta = sum_vectors(
        d, p.s.value_width,
        [&](std::int64_t e) { return hn::Mul(load(d, y + e), load(d, dy + e)); },
        [&](std::int64_t e, std::int64_t rest) {
          return hn::Mul(load_n(d, y + e, rest), load_n(d, dy + e, rest));
        });
    g.delta(all)[i] = delta;
    if (g.b.partial_sinks != nullptr) {
      const C logit = static_cast<const C*>(p.a.sinks)[head] * static_cast<C>(kLog2E);
      sink -= power_of_two(logit - p.row_sum(all)[i]) * delta;
    }
  }
  if (g.b.partial_sinks != nullptr)
    static_cast<C*>(g.b.partial_sinks)[batch * p.s.heads + head] = sink;
}

// Q and dY of a block of queries in both forms.
template <class S>
void pack_queries(const BackwardProblem<S>& g, const Rows& r) {
  const Problem<S>& p = g.p;
  const auto q = [&](std::int64_t i) { return p.q(r, i); };
  const auto dy = [&](std::int64_t i) { return g.dy(r, i); };
  const auto pack = [&](void* as_a, void* as_b, std::int64_t width, std::int64_t steps, auto row) {
    Unit<S>* to = g.as_rows(as_a, steps, r);
    if (p.on_tiles) {
      pack_words<S>(r.count, kQueryBlock, steps, to, row);
      pack_transposed<S, kQueryBlock / 2>(r.count, width, g.transposed(as_b, width, r), row);
      return;
    }
    for (std::int64_t i = 0; i < kQueryBlock; i += kTileRows)
      pack_columns<kTileRows, Unit<S>, S>(larger(0, smaller(kTileRows, r.count - i)), width,
                                          to + i * steps,
                                          [&](std::int64_t j) { return row(i + j); });
    const Panels<S> b = g.as_columns(as_b, width, r);
    pack_rows<S>(r.count, kQueryBlock, width, const_cast<Unit<S>*>(b.data), b.stride, row);
  };
  pack(g.b.packed_dy, g.b.packed_dy_rows, p.s.value_width, p.value_depth, dy);
  if (!p.a.additive) pack(g.b.packed_q, g.b.packed_q_rows, p.s.width, p.depth, q);
}

// Values of all rows that are needed before the first tile.
template <class S>
void prepare_backward(const BackwardProblem<S>& g) {
  const Problem<S>& p = g.p;
  pack_keys(p, {p.a.packed_k, g.b.packed_vt, g.b.packed_k_rows, nullptr});
  const std::int64_t blocks = query_blocks(p.s.queries);
  parallel_chunks(p.s.batch * p.s.heads * blocks, [&](std::int64_t chunk) {
    const std::int64_t head = chunk / blocks;
    pack_queries(g, p.rows(head / p.s.heads, head % p.s.heads, chunk % blocks));
  });
  parallel_chunks(p.s.batch * p.s.heads,
                  [&](std::int64_t head) { row_deltas(g, head / p.s.heads, head % p.s.heads); });
}

// dq = scale · the parts' sums, in their order.
template <class S>
void store_dq(const BackwardProblem<S>& g, const Rows& r) {
  using C = Compute<S>;
  const Problem<S>& p = g.p;
  const Tag<S> d;
  const auto scale = constant(d, p.a.additive ? 1 : p.a.scale);
  C* sums = g.dq_sum(0, r);
  for (std::int64_t part = 1; part < g.parts; ++part)
    map(sums, g.dq_sum(part, r), sums, r.count * g.width,
        [](auto, auto a, auto b) { return hn::Add(a, b); });
  for (std::int64_t i = 0; i < r.count; ++i)
    map(sums + i * g.width, static_cast<S*>(g.b.dq) + p.dense_row(r, i, p.s.width), p.s.width,
        [&](auto, auto v) { return hn::Mul(v, scale); });
}

}  // namespace attention_detail
}  // namespace heddle::cpu::HEDDLE_ISA
