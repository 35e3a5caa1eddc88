// The forward pass by plain multiply-adds: online softmax as in mma_forward.cu, for every type,
// width and score. Wide values are made in parts (parts_of()).
#include "backend/cuda/launch.cuh"
#include "ops/attention/cuda/plain_tiles.cuh"

namespace heddle::cuda::attention {

namespace {

// kOwn rows of a thread; l is of its own keys alone.
template <class C>
struct PlainState {
  C m[PlainShape<C>::kOwn], l[PlainShape<C>::kOwn];
  C o[PlainShape<C>::kCount];
};

template <class C>
__device__ PlainState<C> start_rows(const Problem& p, const int* heads) {
  using T = PlainShape<C>;
  PlainState<C> f = {};
  // With the keys in pieces, the sink comes at the end.
  const C* const sinks = p.pieces > 1 ? nullptr : static_cast<const C*>(p.sinks);
#pragma unroll
  for (int i = 0; i < T::kOwn; ++i) {
    const int row = static_cast<int>(threadIdx.x) / 16 * T::kOwn + i;
    f.m[i] = sinks == nullptr ? minus_infinity<C>() : sinks[heads[row]] * static_cast<C>(kLog2E);
    f.l[i] = sinks != nullptr && threadIdx.x % 16 == 0 ? C{1} : C{0};
  }
  return f;
}

// Scores to weights; sums and what was weighted so far follow the maximum.
template <class C>
__device__ void weigh(const Problem& p, C (&s)[PlainShape<C>::kCount], PlainState<C>& f) {
  using T = PlainShape<C>;
#pragma unroll
  for (int i = 0; i < T::kOwn; ++i) {
    C* const own = s + i * T::kOwn;
    if (p.relu) {
#pragma unroll
      for (int j = 0; j < T::kOwn; ++j) {
        own[j] = positive_part(own[j]);
        f.l[i] += own[j];
      }
      continue;
    }
    C top = f.m[i];
#pragma unroll
    for (int j = 0; j < T::kOwn; ++j) top = max(top, own[j]);
    for (int lane = 1; lane < 16; lane *= 2) top = max(top, __shfl_xor_sync(kWholeWarp, top, lane));
    const C base = top == minus_infinity<C>() ? C{0} : top;  // -inf - -inf is NaN
    const C shrink = power_of_two(f.m[i] - base);
    f.m[i] = top;
    f.l[i] *= shrink;
#pragma unroll
    for (int j = 0; j < T::kOwn; ++j) {
      own[j] = power_of_two(own[j] - base);
      f.l[i] += own[j];
    }
#pragma unroll
    for (int j = 0; j < T::kOwn; ++j) f.o[i * T::kOwn + j] *= shrink;
  }
}

template <class C>
__device__ void put_rows(const Problem& p, const ForwardWork& work, const int* heads,
                         const int* queries, const PlainState<C>& f) {
  using T = PlainShape<C>;
  const int thread = static_cast<int>(threadIdx.x);
  const int width = p.size.value_width;
#pragma unroll
  for (int i = 0; i < T::kOwn; ++i) {
    C l = f.l[i];
    for (int lane = 1; lane < 16; lane *= 2) l += __shfl_xor_sync(kWholeWarp, l, lane);
    const int row = thread / 16 * T::kOwn + i, query = queries[row];
    if (query < 0) continue;
    const std::int64_t number = row_number(p, work.tile.batch, heads[row], query);
    const C inverse = p.pieces > 1 ? C{1} : inverse_sum(l);
    C* const partial = static_cast<C*>(p.partial) +
                       (work.piece * p.all_rows() + number) * (std::int64_t{width} + 2);
    const std::int64_t at = dense_offset(p, work.tile.batch, heads[row], query, width);
#pragma unroll
    for (int j = 0; j < T::kOwn; ++j) {
      const int column = work.part * T::kTile + thread % 16 * T::kOwn + j;
      if (column >= width) continue;
      const C value = f.o[i * T::kOwn + j] * inverse;
      if (p.pieces > 1)
        partial[column] = value;
      else
        put_element(p, p.y, at + column, value);
    }
    if (thread % 16 != 0 || work.part != 0) continue;
    if (p.pieces > 1) {
      partial[width] = f.m[i];
      partial[width + 1] = l;
    } else {
      put_row_sums(p, number, f.m[i], l);
    }
  }
}

template <class C, bool kAdditive>
__global__ void __launch_bounds__(kPlainThreads)
    plain_forward_kernel(int parts, const __grid_constant__ Problem p) {
  using T = PlainShape<C>;
  __shared__ RowFacts<T::kTile> rows;
  __shared__ PlainShared<C, kAdditive> shared;
  const ForwardWork work = forward_work(p, T::kTile, parts);
  const int batch = work.tile.batch;
  const int key_head = p.together ? work.tile.head : work.tile.head / p.group;
  note_rows(p, work.tile, rows);
  __syncthreads();
  const Span span = span_of(rows);
  const int from = p.pieces > 1 ? max(span.begin, work.piece * kPieceKeys) : span.begin;
  const int to = p.pieces > 1 ? min(span.end, (work.piece + 1) * kPieceKeys) : span.end;
  PlainState<C> f = start_rows<C>(p, rows.head);
  for (int key0 = from / T::kTile * T::kTile; key0 < to; key0 += T::kTile) {
    C s[T::kCount];
    products_of_tile<kAdditive>(p, shared, rows, batch, key_head, key0, s);
    const KeyTile t{batch, key0, all_seen(span, key0, T::kTile)};
    finish_scores<false, typename T::L>(p, rows, t, s, static_cast<C*>(nullptr));
    weigh(p, s, f);
    if (p.drops) drop_weights<typename T::L>(p, rows, t, s);
    const int thread = static_cast<int>(threadIdx.x);
#pragma unroll
    for (int e = 0; e < T::kCount; ++e)
      shared.pairs[T::L::key(thread, e)][T::L::query(thread, e)] = s[e];
    each_weighted<C>(
        p, shared, key_side(p, p.v, p.size.value_width, p.v_strides, batch, key_head, key0),
        work.part * T::kTile,
        [&](int i, int j, C weight, C value) { f.o[i * T::kOwn + j] += weight * value; });
    __syncthreads();  // all have read the pairs
  }
  put_rows(p, work, rows.head, rows.query, f);
}

}  // namespace

void plain_forward(PlainType type, bool additive, const Problem& p, cudaStream_t stream) {
  for_plain(type, additive, [&](auto c, auto score) {
    using C = decltype(c);
    const std::int64_t heads = p.together ? p.size.key_heads : p.size.heads;
    const std::int64_t rows = p.together ? std::int64_t{p.group} * p.size.queries : p.size.queries;
    const std::int64_t parts = parts_of<C>(p.size.value_width);
    start("attention", plain_forward_kernel<C, decltype(score)::value>,
          {p.size.batch * heads * tiles_of(rows, PlainShape<C>::kTile) * p.pieces * parts,
           kPlainThreads, 0, stream},
          static_cast<int>(parts), p);
  });
}

}  // namespace heddle::cuda::attention
