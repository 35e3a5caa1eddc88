// Attention tile by tile, forward and backward.
//
// Forward: for a block of queries walk over the blocks of keys they see; keep per row the maximum
// m, the sum l of exp(s - m) and the sum o of exp(s - m) · v; rescale when m moves (online
// softmax). Saved: log-sum-exp per row. Backward: scores are computed again from q and k.
//
// Matrix products go through the GEMM path of the instruction set, one tile at a time on the
// calling thread; what is between them (scale, cap, bias, mask, exp, dropout) is here.
#include "backend/cpu/activations.h"
#include "backend/cpu/philox.h"
#include "ops/attention/attention.kernels.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace attention_detail {

inline constexpr std::int64_t kLd = kKeyBlock;  // row stride of tiles

inline std::int64_t smaller(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
inline std::int64_t larger(std::int64_t a, std::int64_t b) { return a > b ? a : b; }

template <class S>
inline constexpr DType kStorage = dtype_of<S>;
template <class S>
inline constexpr DType kCompute = dtype_of<Compute<S>>;

// Hands out pieces of a thread's scratch, each aligned to 64 bytes.
class Scratch {
 public:
  explicit Scratch(const AttentionArgs& a)
      : next_(static_cast<char*>(a.scratch) + thread_index() * a.scratch_bytes) {}
  template <class T>
  T* take(std::int64_t count) {
    char* piece = next_;
    next_ += (count * static_cast<std::int64_t>(sizeof(T)) + 63) / 64 * 64;
    return reinterpret_cast<T*>(piece);
  }

 private:
  char* next_;
};

// A block of queries of one head, and where its rows lie.
struct Rows {
  std::int64_t batch, head, first, count;
};

template <class S>
class Problem {
 public:
  using C = Compute<S>;

  explicit Problem(const AttentionArgs& args)
      : a(args),
        s(args.shape),
        k_bytes_(static_cast<std::int64_t>(a.gemm->packed_bytes(s.width, kKeyBlock))),
        v_bytes_(static_cast<std::int64_t>(a.gemm->packed_bytes(kKeyBlock, s.value_width))) {}

  const AttentionArgs& a;
  const AttentionShape& s;

  std::int64_t key_head(std::int64_t head) const { return head / (s.heads / s.key_heads); }
  std::int64_t key_count(std::int64_t block) const {
    return smaller(kKeyBlock, s.keys - block * kKeyBlock);
  }
  Rows rows(std::int64_t batch, std::int64_t head, std::int64_t block) const {
    const std::int64_t first = block * kQueryBlock;
    return {batch, head, first, smaller(kQueryBlock, s.queries - first)};
  }

  // ---- where things lie ----
  const S* q(const Rows& r) const { return at<S>(a.q, r, s.width); }
  S* y(const Rows& r) const { return const_cast<S*>(at<S>(a.y, r, s.value_width)); }
  const S* k(std::int64_t batch, std::int64_t head, std::int64_t key) const {
    return static_cast<const S*>(a.k) + ((batch * s.keys + key) * s.key_heads + head) * s.width;
  }
  const S* v(std::int64_t batch, std::int64_t head, std::int64_t key) const {
    return static_cast<const S*>(a.v) +
           ((batch * s.keys + key) * s.key_heads + head) * s.value_width;
  }
  std::int64_t row_number(const Rows& r) const {
    return (r.batch * s.heads + r.head) * s.queries + r.first;
  }
  C* row_sum(const Rows& r) const { return static_cast<C*>(a.row_sum) + row_number(r); }
  char* key_block(void* base, std::int64_t bytes, std::int64_t batch, std::int64_t head,
                  std::int64_t block) const {
    const std::int64_t number = (batch * s.key_heads + head) * key_blocks(s.keys) + block;
    return static_cast<char*>(base) + number * bytes;
  }
  char* packed_k(std::int64_t batch, std::int64_t head, std::int64_t block) const {
    return key_block(a.packed_k, k_bytes_, batch, head, block);
  }
  char* packed_v(std::int64_t batch, std::int64_t head, std::int64_t block) const {
    return key_block(a.packed_v, v_bytes_, batch, head, block);
  }
  // Entry of the bias for (query row r of the block, key 0).
  const C* bias_row(const Rows& r, std::int64_t row) const {
    if (a.relative_bias == nullptr) return nullptr;
    const std::int64_t length = s.queries + s.keys - 1;
    return static_cast<const C*>(a.relative_bias) + r.head * length + s.queries - 1 -
           (r.first + row);
  }

  // ---- what a row sees ----
  std::int64_t first_key(const Rows& r, std::int64_t row) const {
    return a.first_key[r.batch * s.queries + r.first + row];
  }
  std::int64_t last_key(const Rows& r, std::int64_t row) const {
    return a.last_key[r.batch * s.queries + r.first + row];
  }
  // The keys that any row of the block sees; empty when first >= last.
  void span(const Rows& r, std::int64_t& first, std::int64_t& last) const {
    first = s.keys;
    last = 0;
    for (std::int64_t i = 0; i < r.count; ++i)
      if (first_key(r, i) < last_key(r, i)) {
        first = smaller(first, first_key(r, i));
        last = larger(last, last_key(r, i));
      }
  }
  // Columns [begin, end) of key block `block` that a row sees.
  void columns(const Rows& r, std::int64_t row, std::int64_t block, std::int64_t& begin,
               std::int64_t& end) const {
    const std::int64_t origin = block * kKeyBlock;
    begin = larger(first_key(r, row) - origin, 0);
    end = smaller(last_key(r, row) - origin, key_count(block));
  }

 private:
  template <class T>
  const T* at(const void* base, const Rows& r, std::int64_t width) const {
    return static_cast<const T*>(base) +
           ((r.batch * s.queries + r.first) * s.heads + r.head) * width;
  }

  std::int64_t k_bytes_, v_bytes_;
};

// C[m, n] (+)= A · packed B, on this thread.
template <class S>
void product(const GemmPath& gemm, std::int64_t m, std::int64_t n, std::int64_t k,
             const MatrixRef& left, const void* packed, Compute<S>* out, std::int64_t stride,
             bool accumulate) {
  GemmJob job;
  job.m = m;
  job.n = n;
  job.k = k;
  job.a = left;
  job.packed_b = packed;
  job.c = out;
  job.c_dtype = kCompute<S>;
  job.c_row_stride = stride;
  job.epilogue.accumulate = accumulate;
  gemm.run(job);
}

// ---- scores
// ---------------------------------------------------------------------------------------

template <class S>
void widen_transposed(const S* k, std::int64_t stride, std::int64_t count, std::int64_t width,
                      Compute<S>* out) {
  for (std::int64_t x = 0; x < width; ++x)  // whole vectors are read behind the last key
    for (std::int64_t j = count; j < kLd; ++j) out[x * kLd + j] = 0;
  for (std::int64_t j = 0; j < count; ++j)
    for (std::int64_t x = 0; x < width; ++x) {
      if constexpr (std::is_same_v<S, bf16>)
        out[x * kLd + j] = k[j * stride + x].to_float();
      else
        out[x * kLd + j] = k[j * stride + x];
    }
}

template <class S>
inline Compute<S> widened(S v) {
  if constexpr (std::is_same_v<S, bf16>)
    return v.to_float();
  else
    return v;
}

// tile[i, j] = Σ_x w[x] · tanh(q[i, x] + k[j, x]); kt is k transposed, [S, kLd].
template <class S>
void additive_scores(const Problem<S>& p, const Rows& r, std::int64_t count, const Compute<S>* kt,
                     Compute<S>* tile) {
  using C = Compute<S>;
  const Tag<S> d;
  const C* w = static_cast<const C*>(p.a.score_weight) + r.head * p.s.width;
  for (std::int64_t i = 0; i < r.count; ++i) {
    const S* q = p.q(r) + i * p.s.heads * p.s.width;
    for (std::int64_t j = 0; j < count; j += lanes(d)) {
      auto sum = hn::Zero(d);
      for (std::int64_t x = 0; x < p.s.width; ++x) {
        const auto t = tanh(d, hn::Add(hn::Set(d, widened(q[x])), hn::LoadU(d, kt + x * kLd + j)));
        sum = hn::MulAdd(hn::Set(d, w[x]), t, sum);
      }
      hn::StoreU(sum, d, tile + i * kLd + j);
    }
  }
}

// Raw scores of a block of queries against a block of keys.
template <class S>
void raw_scores(const Problem<S>& p, const Rows& r, std::int64_t block, Compute<S>* kt,
                Compute<S>* tile) {
  const std::int64_t head = p.key_head(r.head);
  const std::int64_t count = p.key_count(block);
  if (p.a.additive) {
    widen_transposed(p.k(r.batch, head, block * kKeyBlock), p.s.key_heads * p.s.width, count,
                     p.s.width, kt);
    additive_scores(p, r, count, kt, tile);
    return;
  }
  product<S>(*p.a.gemm, r.count, count, p.s.width, {p.q(r), kStorage<S>, p.s.heads * p.s.width, 1},
             p.packed_k(r.batch, head, block), tile, kLd, false);
}

// A vector that may be the last one of a row.
template <class D, class S>
HWY_INLINE Vec<D> load_some(D d, const S* p, std::int64_t n) {
  return n == lanes(d) ? load(d, p) : load_n(d, p, n);
}

template <class D, class S>
HWY_INLINE void store_some(D d, Vec<D> v, S* p, std::int64_t n) {
  if (n == lanes(d))
    store(d, v, p);
  else
    store_n(d, v, p, n);
}

// Scale, cap and bias of a row of scores, columns [begin, end). With a cap, slope receives the
// cap's derivative 1 - tanh² (null: not wanted).
template <class D>
void finish_scores(D d, const AttentionArgs& a, hn::TFromD<D>* row, const hn::TFromD<D>* bias,
                   hn::TFromD<D>* slope, std::int64_t begin, std::int64_t end) {
  const auto scale = constant(d, a.scale);
  const auto step = [&](Vec<D> v, std::int64_t at, std::int64_t n) {
    v = hn::Mul(v, scale);
    if (a.softcap > 0) {
      const auto t = tanh(d, hn::Mul(v, constant(d, 1 / a.softcap)));
      if (slope != nullptr) store_some(d, hn::NegMulAdd(t, t, constant(d, 1)), slope + at, n);
      v = hn::Mul(t, constant(d, a.softcap));
    }
    return bias == nullptr ? v : hn::Add(v, load_some(d, bias + at, n));
  };
  row += begin;
  bias = bias == nullptr ? nullptr : bias + begin;
  slope = slope == nullptr ? nullptr : slope + begin;
  for_vectors(
      d, end - begin,
      [&](std::int64_t i) { store(d, step(load(d, row + i), i, lanes(d)), row + i); },
      [&](std::int64_t i, std::int64_t rest) {
        store_n(d, step(load_n(d, row + i, rest), i, rest), row + i, rest);
      });
}

template <class T>
void zero(T* p, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) p[i] = T{};
}

// ---- dropout
// --------------------------------------------------------------------------------------

// values[begin..end) of a row of weights, times 0 or 1 / (1 - p). The word of (row, key) has the
// number row · ⌈Tk / 4⌉ · 4 + key: the same in both directions.
template <class C>
void drop(const AttentionArgs& a, const PhiloxKeys& keys, std::int64_t row, std::int64_t origin,
          C* values, std::int64_t begin, std::int64_t end) {
  const std::int64_t blocks_per_row = (a.shape.keys + 3) / 4;
  const auto threshold = static_cast<std::uint32_t>(a.dropout * 4294967296.0);
  const C keep = static_cast<C>(1 / (1 - a.dropout));
  const std::int64_t first = (row * blocks_per_row) * 4 + (origin + begin) / 4 * 4;
  const std::int64_t shift = (origin + begin) % 4;
  for_random_words(keys, first, first + shift + end - begin,
                   [&](std::int64_t at, const std::uint32_t* words, std::int64_t n) {
                     for (std::int64_t j = 0; j < n; ++j) {
                       const std::int64_t column = begin + (at - first) + j - shift;
                       if (column < begin) continue;
                       values[column] = words[j] < threshold ? C{0} : values[column] * keep;
                     }
                   });
}

// ---- forward
// --------------------------------------------------------------------------------------

// Running maximum, sum and weighted sum of a block of queries.
template <class C>
struct Running {
  C* m;
  C* l;
  C* o;  // [kQueryBlock, E]
};

template <class D>
hn::TFromD<D> row_max(D d, const hn::TFromD<D>* p, std::int64_t n, hn::TFromD<D> start) {
  auto best = hn::Set(d, start);
  for_vectors(
      d, n, [&](std::int64_t i) { best = hn::Max(best, load(d, p + i)); },
      [&](std::int64_t i, std::int64_t rest) {
        best = hn::Max(best, load_n(d, p + i, rest, start));
      });
  return hn::GetLane(hn::MaxOfLanes(d, best));
}

// p = exp(p - shift), or max(p, 0); returns the sum.
template <class D>
hn::TFromD<D> weigh(D d, bool relu_weights, hn::TFromD<D>* p, std::int64_t n, hn::TFromD<D> shift) {
  const auto by = hn::Set(d, shift);
  const auto f = [&](Vec<D> v) { return relu_weights ? relu(d, v) : exp(d, hn::Sub(v, by)); };
  return sum_vectors(
      d, n,
      [&](std::int64_t i) {
        const auto v = f(load(d, p + i));
        store(d, v, p + i);
        return v;
      },
      [&](std::int64_t i, std::int64_t rest) {
        const auto v = f(load_n(d, p + i, rest));
        store_n(d, v, p + i, rest);
        return load_n(d, p + i, rest);
      });
}

template <class D>
void rescale(D d, hn::TFromD<D>* o, std::int64_t n, hn::TFromD<D> factor) {
  map(o, o, n, [&](auto, auto v) { return hn::Mul(v, hn::Set(d, factor)); });
}

// Turns a row of scores into weights in place and brings its running sums up to date.
template <class S>
void forward_row(const Problem<S>& p, const Running<Compute<S>>& run, std::int64_t row,
                 Compute<S>* scores, std::int64_t n) {
  using C = Compute<S>;
  const Tag<S> d;
  if (p.a.relu) {
    run.l[row] += weigh(d, true, scores, n, C{0});
    return;
  }
  const C top = row_max(d, scores, n, run.m[row]);
  if (top > run.m[row]) {
    HWY_ALIGN C step[kMaxLanes<Tag<S>>] = {run.m[row] - top};
    const C factor = hn::GetLane(exp(d, hn::Load(d, step)));
    run.l[row] *= factor;
    if (factor != C{1}) rescale(d, run.o + row * p.s.value_width, p.s.value_width, factor);
    run.m[row] = top;
  }
  run.l[row] += weigh(d, false, scores, n, top);
}

template <class S>
void finish_rows(const Problem<S>& p, const Rows& r, const Running<Compute<S>>& run) {
  using C = Compute<S>;
  const Tag<S> d;
  for (std::int64_t i = 0; i < r.count; ++i) {
    const C inverse = run.l[i] > C{0} ? C{1} / run.l[i] : C{0};
    map(run.o + i * p.s.value_width, p.y(r) + i * p.s.heads * p.s.value_width, p.s.value_width,
        [&](auto, auto v) { return hn::Mul(v, hn::Set(d, inverse)); });
    HWY_ALIGN C sum[kMaxLanes<Tag<S>>] = {run.l[i]};
    const C log_sum = run.l[i] > C{0} ? run.m[i] + hn::GetLane(log(d, hn::Load(d, sum))) : C{0};
    p.row_sum(r)[i] = p.a.relu ? run.l[i] : log_sum;
  }
}

template <class S>
void forward_block(const Problem<S>& p, const Rows& r) {
  using C = Compute<S>;
  Scratch scratch(p.a);
  C* tile = scratch.take<C>(kQueryBlock * kLd);
  C* kt = scratch.take<C>(p.a.additive ? p.s.width * kLd : 0);
  S* weights = scratch.take<S>(kQueryBlock * kLd);
  const Running<C> run{scratch.take<C>(kQueryBlock), scratch.take<C>(kQueryBlock),
                       scratch.take<C>(kQueryBlock * p.s.value_width)};
  const auto* sinks = static_cast<const C*>(p.a.sinks);
  const C lowest = -hn::GetLane(hn::Inf(Tag<S>()));
  for (std::int64_t i = 0; i < r.count; ++i) {
    run.m[i] = sinks != nullptr ? sinks[r.head] : lowest;
    run.l[i] = sinks != nullptr ? C{1} : C{0};
  }
  zero(run.o, r.count * p.s.value_width);
  const PhiloxKeys keys(p.a.key);
  std::int64_t first, last;
  p.span(r, first, last);
  for (std::int64_t block = first / kKeyBlock; block * kKeyBlock < last; ++block) {
    const std::int64_t count = p.key_count(block);
    raw_scores(p, r, block, kt, tile);
    for (std::int64_t i = 0; i < r.count; ++i) {
      C* row = tile + i * kLd;
      S* out = weights + i * kLd;
      std::int64_t begin, end;
      p.columns(r, i, block, begin, end);
      if (begin >= end) {
        zero(out, count);
        continue;
      }
      const C* bias = p.bias_row(r, i);
      finish_scores(Tag<S>(), p.a, row, bias == nullptr ? nullptr : bias + block * kKeyBlock,
                    static_cast<C*>(nullptr), begin, end);
      forward_row(p, run, i, row + begin, end - begin);
      if (p.a.dropout > 0) drop(p.a, keys, p.row_number(r) + i, block * kKeyBlock, row, begin, end);
      zero(out, begin);
      map(row + begin, out + begin, end - begin, [](auto, auto v) { return v; });
      zero(out + end, count - end);
    }
    product<S>(*p.a.gemm, r.count, p.s.value_width, count, {weights, kStorage<S>, kLd, 1},
               p.packed_v(r.batch, p.key_head(r.head), block), run.o, p.s.value_width, true);
  }
  finish_rows(p, r, run);
}

template <class S>
void pack_keys(const Problem<S>& p) {
  const std::int64_t blocks = key_blocks(p.s.keys);
  parallel_chunks(p.s.batch * p.s.key_heads * blocks, [&](std::int64_t chunk) {
    const std::int64_t block = chunk % blocks;
    const std::int64_t head = chunk / blocks % p.s.key_heads;
    const std::int64_t batch = chunk / blocks / p.s.key_heads;
    const std::int64_t count = p.key_count(block);
    const std::int64_t key = block * kKeyBlock;
    if (!p.a.additive)
      p.a.gemm->pack_b(p.s.width, count,
                       {p.k(batch, head, key), kStorage<S>, 1, p.s.key_heads * p.s.width},
                       p.packed_k(batch, head, block));
    if (p.a.packed_v != nullptr)
      p.a.gemm->pack_b(count, p.s.value_width,
                       {p.v(batch, head, key), kStorage<S>, p.s.key_heads * p.s.value_width, 1},
                       p.packed_v(batch, head, block));
  });
}

inline void forward(const AttentionArgs& args) noexcept {
  for_storage(args.dtype, [&](auto s) {
    const Problem<decltype(s)> p(args);
    pack_keys(p);
    const std::int64_t blocks = query_blocks(p.s.queries);
    parallel_chunks(p.s.batch * p.s.heads * blocks, [&](std::int64_t chunk) {
      // Late blocks of a causal mask see the most keys: they go first.
      const std::int64_t block = blocks - 1 - chunk / (p.s.batch * p.s.heads);
      const std::int64_t unit = chunk % (p.s.batch * p.s.heads);
      forward_block(p, p.rows(unit / p.s.heads, unit % p.s.heads, block));
    });
  });
}

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
  const C inverse = p.a.relu && sum > C{0} ? C{1} / sum : C{0};
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

const AttentionKernels attention_kernels{attention_detail::forward, attention_detail::backward};

}  // namespace heddle::cpu::HEDDLE_ISA
