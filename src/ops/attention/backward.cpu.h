// The backward pass: scores are computed again from q and k.
#pragma once

#include "ops/attention/forward.cpu.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace attention_detail {

// ---- backward
// -------------------------------------------------------------------------------------
//
// With weights P (after dropout P'), row sums D = Σ dy·y and dP = dy · Vᵀ (dropout applied):
//   softmax  dS = P ∘ (dP - D)
//   relu     dS = [S > 0] ∘ (dP - D) / R
//   dV = P'ᵀ · dY;  dK = scale · dSᵀ · Q;  dQ = scale · dS · K;  bias: sums of dS along diagonals
//
// One unit of work is a key head of a batch with all its query heads, so that every sum is made by
// one thread in one order.

template <class S>
struct BackwardProblem {
  using C = Compute<S>;

  explicit BackwardProblem(const AttentionBackwardArgs& args)
      : b(args),
        p(args.forward),
        vt_bytes(bytes(p.s.value_width, kKeyBlock)),
        kr_bytes(bytes(kKeyBlock, p.s.width)),
        q_bytes(bytes(kQueryBlock, p.s.width)),
        dy_bytes(bytes(kQueryBlock, p.s.value_width)) {}

  std::int64_t bytes(std::int64_t k, std::int64_t n) const {
    return static_cast<std::int64_t>(b.forward.gemm->packed_bytes(k, n));
  }
  const S* dy(const Rows& r) const {
    return static_cast<const S*>(b.dy) +
           ((r.batch * p.s.queries + r.first) * p.s.heads + r.head) * p.s.value_width;
  }
  C* delta(const Rows& r) const { return static_cast<C*>(b.delta) + p.row_number(r); }
  C* dq_sum(const Rows& r) const { return static_cast<C*>(b.dq_sum) + p.row_number(r) * p.s.width; }
  char* query_block(void* base, std::int64_t size, const Rows& r) const {
    const std::int64_t number =
        (r.batch * p.s.heads + r.head) * query_blocks(p.s.queries) + r.first / kQueryBlock;
    return static_cast<char*>(base) + number * size;
  }
  C* bias_grad(const Rows& r, std::int64_t row) const {
    if (b.partial_bias == nullptr) return nullptr;
    const std::int64_t length = p.s.queries + p.s.keys - 1;
    return static_cast<C*>(b.partial_bias) + (r.batch * p.s.heads + r.head) * length + p.s.queries -
           1 - (r.first + row);
  }

  const AttentionBackwardArgs& b;
  Problem<S> p;
  std::int64_t vt_bytes, kr_bytes, q_bytes, dy_bytes;
};

// The tiles of one (queries, keys) pair and the sums of one key block.
template <class S>
struct Tiles {
  using C = Compute<S>;
  explicit Tiles(const Problem<S>& p) {
    Scratch scratch(p.a);
    scores = scratch.take<C>(kQueryBlock * kLd);
    dp = scratch.take<C>(kQueryBlock * kLd);
    slope = scratch.take<C>(p.a.softcap > 0 ? kQueryBlock * kLd : 0);
    weights = scratch.take<S>(kQueryBlock * kLd);
    ds = scratch.take<S>(kQueryBlock * kLd);
    dk = scratch.take<C>(kKeyBlock * p.s.width);
    dv = scratch.take<C>(kKeyBlock * p.s.value_width);
    kt = scratch.take<C>(p.a.additive ? p.s.width * kLd : 0);
  }
  C *scores, *dp, *slope, *dk, *dv, *kt;
  S *weights, *ds;
};

template <class S>
void pack_backward(const BackwardProblem<S>& g) {
  const Problem<S>& p = g.p;
  const GemmPath& gemm = *p.a.gemm;
  const std::int64_t blocks = key_blocks(p.s.keys);
  parallel_chunks(p.s.batch * p.s.key_heads * blocks, [&](std::int64_t chunk) {
    const std::int64_t block = chunk % blocks;
    const std::int64_t head = chunk / blocks % p.s.key_heads;
    const std::int64_t batch = chunk / blocks / p.s.key_heads;
    const std::int64_t count = p.key_count(block);
    const std::int64_t key = block * kKeyBlock;
    gemm.pack_b(p.s.value_width, count,
                {p.v(batch, head, key), kStorage<S>, 1, p.s.key_heads * p.s.value_width},
                p.key_block(g.b.packed_vt, g.vt_bytes, batch, head, block));
    if (!p.a.additive)
      gemm.pack_b(count, p.s.width,
                  {p.k(batch, head, key), kStorage<S>, p.s.key_heads * p.s.width, 1},
                  p.key_block(g.b.packed_k_rows, g.kr_bytes, batch, head, block));
  });
  const std::int64_t rows = query_blocks(p.s.queries);
  parallel_chunks(p.s.batch * p.s.heads * rows, [&](std::int64_t chunk) {
    const std::int64_t unit = chunk / rows;
    const Rows r = p.rows(unit / p.s.heads, unit % p.s.heads, chunk % rows);
    gemm.pack_b(r.count, p.s.value_width, {g.dy(r), kStorage<S>, p.s.heads * p.s.value_width, 1},
                g.query_block(g.b.packed_dy, g.dy_bytes, r));
    if (!p.a.additive)
      gemm.pack_b(r.count, p.s.width, {p.q(r), kStorage<S>, p.s.heads * p.s.width, 1},
                  g.query_block(g.b.packed_q, g.q_bytes, r));
  });
}

// delta = Σ_e dy · y of every row, and the gradient of the sink: -Σ_i exp(sink - lse) · delta.
template <class S>
void row_deltas(const BackwardProblem<S>& g, std::int64_t batch, std::int64_t head) {
  using C = Compute<S>;
  const Problem<S>& p = g.p;
  const Tag<S> d;
  const Rows all{batch, head, 0, p.s.queries};
  const std::int64_t step = p.s.heads * p.s.value_width;
  C sink = 0;
  for (std::int64_t i = 0; i < p.s.queries; ++i) {
    const S* y = p.y(all) + i * step;
    const S* dy = g.dy(all) + i * step;
    const C delta = sum_vectors(
        d, p.s.value_width,
        [&](std::int64_t e) { return hn::Mul(load(d, y + e), load(d, dy + e)); },
        [&](std::int64_t e, std::int64_t rest) {
          return hn::Mul(load_n(d, y + e, rest), load_n(d, dy + e, rest));
        });
    g.delta(all)[i] = delta;
    if (g.b.partial_sinks != nullptr) {
      const C logit = static_cast<const C*>(p.a.sinks)[head];
      HWY_ALIGN C x[kMaxLanes<Tag<S>>] = {logit - p.row_sum(all)[i]};
      sink -= hn::GetLane(exp(d, hn::Load(d, x))) * delta;
    }
  }
  if (g.b.partial_sinks != nullptr)
    static_cast<C*>(g.b.partial_sinks)[batch * p.s.heads + head] = sink;
}

// From finished scores and dP of a row to its weights (for dV) and dS (for dQ, dK and the bias).
template <class S>
void backward_row(const BackwardProblem<S>& g, const PhiloxKeys& keys, const Rows& r,
                  std::int64_t row, std::int64_t block, const Tiles<S>& t, std::int64_t begin,
                  std::int64_t end) {
  using C = Compute<S>;
  const Problem<S>& p = g.p;
  const Tag<S> d;
  C* s = t.scores + row * kLd;
  C* dp = t.dp + row * kLd;
  const C sum = p.row_sum(r)[row];
  const C delta = g.delta(r)[row];
  if (p.a.dropout > 0) drop(p.a, keys, p.row_number(r) + row, block * kKeyBlock, dp, begin, end);
  const auto by = hn::Set(d, sum);
  const C inverse = p.a.relu ? inverse_sum(sum) : C{0};
  // s becomes the weight, dp becomes dS.
  const auto step = [&](std::int64_t j, std::int64_t n) {
    const auto score = load_some(d, s + j, n);
    const auto centred = hn::Sub(load_some(d, dp + j, n), hn::Set(d, delta));
    if (p.a.relu) {
      const auto scale = hn::Set(d, inverse);
      store_some(d, hn::Mul(relu(d, score), scale), s + j, n);
      store_some(d, hn::Mul(hn::Mul(relu_derivative(d, score), centred), scale), dp + j, n);
    } else {
      const auto w = exp(d, hn::Sub(score, by));
      store_some(d, w, s + j, n);
      store_some(d, hn::Mul(w, centred), dp + j, n);
    }
  };
  for (std::int64_t j = begin; j < end; j += lanes(d)) step(j, smaller(lanes(d), end - j));
  if (p.a.dropout > 0) drop(p.a, keys, p.row_number(r) + row, block * kKeyBlock, s, begin, end);
  if (C* bias = g.bias_grad(r, row); bias != nullptr)
    map(bias + block * kKeyBlock + begin, dp + begin, bias + block * kKeyBlock + begin, end - begin,
        [](auto, auto a, auto b) { return hn::Add(a, b); });
  const auto scale = constant(d, p.a.scale);
  if (p.a.softcap > 0)
    map(dp + begin, t.slope + row * kLd + begin, dp + begin, end - begin,
        [&](auto, auto a, auto b) { return hn::Mul(a, hn::Mul(b, scale)); });
  else
    map(dp + begin, dp + begin, end - begin, [&](auto, auto a) { return hn::Mul(a, scale); });
}

// Copies columns [begin, end) of a row in the storage type, zeros elsewhere.
template <class S>
void narrow(const Compute<S>* from, S* to, std::int64_t begin, std::int64_t end,
            std::int64_t count) {
  if (begin > end) begin = end = 0;
  zero(to, begin);
  map(from + begin, to + begin, end - begin, [](auto, auto v) { return v; });
  zero(to + end, count - end);
}

// dq, dk and dw of the additive score from dS (compute type, t.dp; zeros outside of the mask).
template <class S>
void additive_backward(const BackwardProblem<S>& g, const Rows& r, std::int64_t count,
                       const Tiles<S>& t) {
  using C = Compute<S>;
  const Problem<S>& p = g.p;
  const Tag<S> d;
  const C* w = static_cast<const C*>(p.a.score_weight) + r.head * p.s.width;
  C* dw = static_cast<C*>(g.b.partial_weight) + (r.batch * p.s.heads + r.head) * p.s.width;
  for (std::int64_t i = 0; i < r.count; ++i) {
    const S* q = p.q(r) + i * p.s.heads * p.s.width;
    C* dq = g.dq_sum(r) + i * p.s.width;
    for (std::int64_t x = 0; x < p.s.width; ++x) {
      const auto qx = hn::Set(d, widened(q[x]));
      const auto wx = hn::Set(d, w[x]);
      auto sum_q = hn::Zero(d);
      auto sum_w = hn::Zero(d);
      for (std::int64_t j = 0; j < count; j += lanes(d)) {
        const auto th = tanh(d, hn::Add(qx, hn::LoadU(d, t.kt + x * kLd + j)));
        const auto ds = hn::LoadU(d, t.dp + i * kLd + j);
        const auto u = hn::Mul(hn::Mul(ds, wx), hn::NegMulAdd(th, th, constant(d, 1)));
        sum_q = hn::Add(sum_q, u);
        sum_w = hn::MulAdd(ds, th, sum_w);
        C* dk = t.dk + x * kLd + j;  // transposed here: [S, kLd]
        hn::StoreU(hn::Add(hn::LoadU(d, dk), u), d, dk);
      }
      dq[x] += hn::GetLane(hn::SumOfLanes(d, sum_q));
      dw[x] += hn::GetLane(hn::SumOfLanes(d, sum_w));
    }
  }
}

// One block of queries against one block of keys.
template <class S>
void backward_tile(const BackwardProblem<S>& g, const PhiloxKeys& keys, const Rows& r,
                   std::int64_t block, const Tiles<S>& t) {
  using C = Compute<S>;
  const Problem<S>& p = g.p;
  const GemmPath& gemm = *p.a.gemm;
  const std::int64_t head = p.key_head(r.head);
  const std::int64_t count = p.key_count(block);
  raw_scores(p, r, block, t.kt, t.scores);
  product<S>(gemm, r.count, count, p.s.value_width,
             {g.dy(r), kStorage<S>, p.s.heads * p.s.value_width, 1},
             p.key_block(g.b.packed_vt, g.vt_bytes, r.batch, head, block), t.dp, kLd, false);
  for (std::int64_t i = 0; i < r.count; ++i) {
    std::int64_t begin, end;
    p.columns(r, i, block, begin, end);
    if (begin < end) {
      const C* bias = p.bias_row(r, i);
      finish_scores(Tag<S>(), p.a, t.scores + i * kLd,
                    bias == nullptr ? nullptr : bias + block * kKeyBlock,
                    p.a.softcap > 0 ? t.slope + i * kLd : nullptr, begin, end);
      backward_row(g, keys, r, i, block, t, begin, end);
    } else {
      begin = end = 0;
    }
    narrow(t.scores + i * kLd, t.weights + i * kLd, begin, end, count);
    if (p.a.additive) {
      zero(t.dp + i * kLd, begin);
      zero(t.dp + i * kLd + end, kLd - end);
    } else {
      narrow(t.dp + i * kLd, t.ds + i * kLd, begin, end, count);
    }
  }
  // dV += Pᵀ · dY
  product<S>(gemm, count, p.s.value_width, r.count, {t.weights, kStorage<S>, 1, kLd},
             g.query_block(g.b.packed_dy, g.dy_bytes, r), t.dv, p.s.value_width, true);
  if (p.a.additive) {
    additive_backward(g, r, count, t);
    return;
  }
  // dK += dSᵀ · Q, dQ += dS · K
  product<S>(gemm, count, p.s.width, r.count, {t.ds, kStorage<S>, 1, kLd},
             g.query_block(g.b.packed_q, g.q_bytes, r), t.dk, p.s.width, true);
  product<S>(gemm, r.count, p.s.width, count, {t.ds, kStorage<S>, kLd, 1},
             p.key_block(g.b.packed_k_rows, g.kr_bytes, r.batch, head, block), g.dq_sum(r),
             p.s.width, true);
}

template <class S>
void store_key_block(const BackwardProblem<S>& g, std::int64_t batch, std::int64_t head,
                     std::int64_t block, const Tiles<S>& t) {
  const Problem<S>& p = g.p;
  const std::int64_t key = block * kKeyBlock;
  S* dk = static_cast<S*>(g.b.dk) + (p.k(batch, head, key) - static_cast<const S*>(p.a.k));
  S* dv = static_cast<S*>(g.b.dv) + (p.v(batch, head, key) - static_cast<const S*>(p.a.v));
  const auto same = [](auto, auto v) { return v; };
  for (std::int64_t j = 0; j < p.key_count(block); ++j) {
    map(t.dv + j * p.s.value_width, dv + j * p.s.key_heads * p.s.value_width, p.s.value_width,
        same);
    S* out = dk + j * p.s.key_heads * p.s.width;
    if (!p.a.additive) {
      map(t.dk + j * p.s.width, out, p.s.width, same);
      continue;
    }
    for (std::int64_t x = 0; x < p.s.width; ++x) map(t.dk + x * kLd + j, out + x, 1, same);
  }
}

// All of one key head: its own gradients, and those of the queries that share it.
template <class S>
void backward_unit(const BackwardProblem<S>& g, std::int64_t batch, std::int64_t head) {
  const Problem<S>& p = g.p;
  const std::int64_t group = p.s.heads / p.s.key_heads;
  const Tiles<S> t(p);
  const PhiloxKeys keys(p.a.key);
  for (std::int64_t h = head * group; h < (head + 1) * group; ++h) {
    row_deltas(g, batch, h);
    const Rows all{batch, h, 0, p.s.queries};
    zero(g.dq_sum(all), p.s.queries * p.s.width);
    if (g.b.partial_bias != nullptr) {
      const std::int64_t length = p.s.queries + p.s.keys - 1;
      zero(static_cast<Compute<S>*>(g.b.partial_bias) + (batch * p.s.heads + h) * length, length);
    }
    if (p.a.additive)
      zero(static_cast<Compute<S>*>(g.b.partial_weight) + (batch * p.s.heads + h) * p.s.width,
           p.s.width);
  }
  for (std::int64_t block = 0; block < key_blocks(p.s.keys); ++block) {
    zero(t.dk, kKeyBlock * p.s.width);
    zero(t.dv, kKeyBlock * p.s.value_width);
    for (std::int64_t h = head * group; h < (head + 1) * group; ++h)
      for (std::int64_t i = 0; i < query_blocks(p.s.queries); ++i) {
        const Rows r = p.rows(batch, h, i);
        std::int64_t first, last;
        p.span(r, first, last);
        if (first < (block + 1) * kKeyBlock && last > block * kKeyBlock)
          backward_tile(g, keys, r, block, t);
      }
    store_key_block(g, batch, head, block, t);
  }
  for (std::int64_t h = head * group; h < (head + 1) * group; ++h) {
    const Rows all{batch, h, 0, p.s.queries};
    S* dq = static_cast<S*>(g.b.dq) + (p.q(all) - static_cast<const S*>(p.a.q));
    for (std::int64_t i = 0; i < p.s.queries; ++i)
      map(g.dq_sum(all) + i * p.s.width, dq + i * p.s.heads * p.s.width, p.s.width,
          [](auto, auto v) { return v; });
  }
}

inline void backward(const AttentionBackwardArgs& args) noexcept {
  for_storage(args.forward.dtype, [&](auto s) {
    const BackwardProblem<decltype(s)> g(args);
    pack_keys(g.p);
    pack_backward(g);
    parallel_chunks(g.p.s.batch * g.p.s.key_heads, [&](std::int64_t unit) {
      backward_unit(g, unit / g.p.s.key_heads, unit % g.p.s.key_heads);
    });
  });
}

}  // namespace attention_detail
}  // namespace heddle::cpu::HEDDLE_ISA
