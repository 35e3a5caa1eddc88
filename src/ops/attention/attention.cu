// Attention on CUDA: which kernels a call takes, what workspace they want, and from tensors to what
// the kernels know (cuda/problem.h). O(N) memory, the same bits on every run.
#include <numbers>
#include <optional>
#include <utility>

#include "backend/cuda/kernel.cuh"
#include "backend/cuda/traits.h"
#include "ops/attention/attention.call.h"
#include "ops/attention/cuda/layouts.h"
#include "ops/attention/cuda/one_query.cuh"
#include "ops/attention/cuda/paths.h"
#include "ops/attention/cuda/wgmma.h"

namespace heddle::cuda {

namespace {

using attention::BackwardProblem;
using attention::BackwardTiles;
using attention::PlainType;
using attention::Problem;
using attention::Sizes;
using attention::tiles_of;
using attention::WgmmaBackward;
using attention::WgmmaForward;
using ops::AttentionBackwardCall;
using ops::AttentionCall;
using ops::AttentionInputs;

Sizes sizes_of(const AttentionInputs& in) {
  const auto number = [](std::int64_t n) { return static_cast<int>(n); };
  return {number(in.q.size(0)), number(in.q.size(1)), number(in.k.size(1)), number(in.q.size(2)),
          number(in.k.size(2)), number(in.q.size(3)), number(in.v.size(3))};
}

// ---- what dropout keeps, on warpgroups

// Drawn for as many heads at a time as this has room for, so that memory stays O(N).
constexpr std::int64_t kMostKeptBytes = std::int64_t{128} << 20;

// Of the heads that share a key head.
std::int64_t kept_bytes(const Sizes& s) {
  return attention::kept_by_query(s.queries, s.keys).words_of_head() * s.group() * 4;
}
int heads_drawn_together(const Sizes& s) {
  const std::int64_t most = std::max<std::int64_t>(kMostKeptBytes / kept_bytes(s), 1);
  return static_cast<int>(std::min<std::int64_t>(most, std::int64_t{s.batch} * s.key_heads)) *
         s.group();
}
Tensor room_for_kept(const Sizes& s, const attention::KeptLayout& layout, const Tensor& like) {
  return workspace({heads_drawn_together(s), layout.words_of_head()}, DType::i32, like);
}

// Once without dropout; else for some heads after the other, whose pairs are drawn before.
template <class P, class Launch>
void launch_by_heads(P& p, Tensor& kept, const attention::KeptLayout& layout, cudaStream_t stream,
                     Launch launch) {
  if (!p.drops) return launch();
  const int all = p.size.batch * p.size.heads, together = heads_drawn_together(p.size);
  p.kept_scale = static_cast<float>(p.kept_times);
  p.kept.words = out<std::uint32_t>(kept);
  p.kept.layout = layout;
  for (p.kept.first = 0; p.kept.first < all; p.kept.first += together) {
    p.kept.count = std::min(together, all - p.kept.first);
    attention::wgmma_draw(p, stream);
    launch();
  }
}

// ---- which kernels

enum class Path : std::uint8_t {
  wgmma,  // bf16 on sm_90a's warpgroups: the common case (fits_wgmma)
  mma,    // bf16 on tensor cores: dot products, widths that are multiples of 16 up to 256
  plain,  // multiply-adds: everything else
};

bool fits_mma(std::int64_t width) { return width > 0 && width <= 256 && width % 16 == 0; }

// Copies by the memory unit want multiples of 16 bytes.
bool can_be_mapped(const Tensor& x) {
  const auto bytes = static_cast<std::int64_t>(size_of(x.dtype()));
  bool can = x.impl()->offset * bytes % 16 == 0;
  for (int i = 0; i < 3; ++i)
    can = can && (x.size(i) == 1 || (x.strides()[i] > 0 && x.strides()[i] * bytes % 16 == 0));
  return can;
}

bool fits_wgmma(const AttentionInputs& in) {
  const ops::AttentionOptions& o = in.options;
  const std::int64_t width = in.q.size(3);
  const bool sizes = (width == 64 || width == 128) && in.v.size(3) == width && in.q.size(0) > 0 &&
                     in.q.size(1) > attention::kFewQueries && in.q.size(2) > 0 && in.k.size(1) > 0;
  const bool plain_scores = o.scale > 0 && o.softcap == 0 && !in.bias.defined() &&
                            !in.additive_mask.defined() && !in.allowed.defined();
  const bool plain_weights = o.normaliser == ops::Normaliser::softmax && !in.sinks.defined();
  if (!sizes || !plain_scores || !plain_weights || o.first_row != 0) return false;
  if (o.dropout > 0 && kept_bytes(sizes_of(in)) > kMostKeptBytes) return false;
  if (!can_be_mapped(in.q) || !can_be_mapped(in.k) || !can_be_mapped(in.v)) return false;
  const GpuTraits gpu = traits_of(in.q.device());
  return gpu.major == 9 && gpu.minor == 0;
}

// By types, shapes, strides and the GPU, so that a plan without values or addresses takes the same
// way. Either direction understands what the other one left: dy's strides may send a call back to
// mma.
Path path_of(const AttentionInputs& in, const Tensor* dy = nullptr) {
  if (in.q.dtype() == DType::bf16 && !in.additive && fits_wgmma(in) &&
      (dy == nullptr || can_be_mapped(*dy)))
    return Path::wgmma;
  if (in.q.dtype() == DType::bf16 && !in.additive && fits_mma(in.q.size(3)) &&
      fits_mma(in.v.size(3)))
    return Path::mma;
  return Path::plain;
}

PlainType plain_type(const AttentionInputs& in) {
  return in.q.dtype() == DType::f64 ? PlainType::f64 : PlainType::f32;
}

// Of the families that walk over queries and keys alike.
BackwardTiles backward_tiles(Path path, const AttentionInputs& in, const Sizes& size) {
  return path == Path::mma ? attention::mma_tiles(size) : attention::plain_tiles(plain_type(in));
}

// ---- from tensors to a problem

// A few queries: pieces of keys, whose sums are joined at the end.
int pieces_of(const Sizes& s) {
  if (s.queries > attention::kFewQueries) return 1;
  return static_cast<int>(std::max<std::int64_t>(tiles_of(s.keys, attention::kPieceKeys), 1));
}

attention::RowStrides strides_of(const Tensor& x) {
  return {x.strides()[0], x.strides()[1], x.strides()[2]};
}

// Of a mask of pairs: sequences or heads that share it do not move on.
attention::RowStrides pair_strides(const Tensor& mask) {  // [B or 1, H or 1, Tq, Tk]
  return {mask.size(0) == 1 ? 0 : mask.strides()[0], mask.strides()[2],
          mask.size(1) == 1 ? 0 : mask.strides()[1]};
}

bool rows_are_aligned(const Tensor& x) {
  bool aligned = reinterpret_cast<std::uintptr_t>(in<void>(x)) % 16 == 0;
  const auto bytes = static_cast<std::int64_t>(size_of(x.dtype()));
  for (int i = 0; i < 3; ++i)
    aligned = aligned && (x.size(i) == 1 || x.strides()[i] * bytes % 16 == 0);
  return aligned;
}

void set_options(const AttentionInputs& in, Problem& p) {
  const ops::AttentionOptions& o = in.options;
  p.relu = o.normaliser == ops::Normaliser::relu;
  p.scale = o.scale;
  p.softcap = o.softcap;
  p.plain = !p.relu && o.softcap == 0 && !in.bias.defined() && !in.additive_mask.defined() &&
            !in.allowed.defined();
  p.drops = o.dropout > 0;
  p.threshold = static_cast<std::uint32_t>(o.dropout * 4294967296.0);
  p.kept_times = 1 / (1 - o.dropout);
  p.key = o.key;
  if (p.drops) p.later_steps = later_steps_of(in.q.device());
  p.first_row = o.first_row;
}

void set_inputs(const AttentionInputs& in, Problem& p) {
  p.size = sizes_of(in);
  p.group = p.size.group();
  p.narrow = in.q.dtype() == DType::bf16;
  p.aligned = rows_are_aligned(in.q) && rows_are_aligned(in.k) && rows_are_aligned(in.v);
  set_options(in, p);
  p.q = cuda::in<void>(in.q);
  p.k = cuda::in<void>(in.k);
  p.v = cuda::in<void>(in.v);
  p.q_strides = strides_of(in.q);
  p.k_strides = strides_of(in.k);
  p.v_strides = strides_of(in.v);
  p.score_weight = cuda::in<void>(in.w);
  p.relative_bias = cuda::in<void>(in.bias);
  p.sinks = cuda::in<void>(in.sinks);
  p.additive_mask = cuda::in<void>(in.additive_mask);
  if (in.additive_mask.defined()) p.additive_strides = pair_strides(in.additive_mask);
  p.allowed = cuda::in<std::uint8_t>(in.allowed);
  if (in.allowed.defined()) p.allowed_strides = pair_strides(in.allowed);
  p.first_key = cuda::in<std::int32_t>(in.keys.intervals);
  p.last_key = p.first_key + in.q.size(0) * in.q.size(1);
  p.end_key = cuda::in<std::int32_t>(in.keys.ends);
}

// ---- forward

enum ForwardPlace : std::uint8_t { kPartial, kSpans, kCounters, kKept };

// Spans of tiles, four numbers each.
Tensor spans_of(const Sizes& s, int tile_queries, const Tensor& like) {
  return workspace({s.batch, tiles_of(s.queries, tile_queries), 4}, DType::i32, like);
}

DType type_of_sums(const AttentionInputs& in) {
  return in.q.dtype() == DType::f64 ? DType::f64 : DType::f32;
}

void plan_attention(AttentionCall& c) {
  const Sizes s = sizes_of(c.in);
  if (path_of(c.in) == Path::wgmma) {
    c.workspace[kSpans] = spans_of(s, attention::kWarpgroupRows, c.in.q);
    c.workspace[kCounters] = workspace({2}, DType::i32, c.in.q);
    if (c.in.options.dropout > 0)
      c.workspace[kKept] = room_for_kept(s, attention::kept_by_query(s.queries, s.keys), c.in.q);
    return;
  }
  const int pieces = pieces_of(s);
  if (pieces > 1)
    c.workspace[kPartial] = workspace({pieces, s.batch, s.heads, s.queries, s.value_width + 2},
                                      type_of_sums(c.in), c.in.q);
}

// A product of a query and a key times this is an exponent of two.
float exponent_of(const AttentionInputs& in) {
  return static_cast<float>(in.options.scale * std::numbers::log2e);
}

// How many pairs of sequence and head are walked together: as many as have keys and values in half
// of L2, in sections of equal size, since a short last one would leave most of the GPU idle.
int section_of(const Sizes& s) {
  constexpr std::int64_t kBytes = std::int64_t{32} << 20;
  const std::int64_t all = std::int64_t{s.batch} * s.key_heads * s.keys * s.width * 4;
  const std::int64_t sections = std::max<std::int64_t>(tiles_of(all, kBytes), 1);
  return static_cast<int>(tiles_of(std::int64_t{s.batch} * s.heads, sections));
}

void run_wgmma_forward(AttentionCall& c) {
  WgmmaForward p;
  set_inputs(c.in, p);
  p.exponent = exponent_of(c.in);
  p.spans = out<attention::TileSpan>(c.workspace[kSpans]);
  p.counters = out<std::int32_t>(c.workspace[kCounters]);
  p.section = section_of(p.size);
  p.y = out<void>(c.y);
  p.row_sum = out<void>(c.row_sums);
  cudaStream_t const stream = stream_of(c.y.device());
  attention::wgmma_spans(p, stream);
  launch_by_heads(
      p, c.workspace[kKept], attention::kept_by_query(p.size.queries, p.size.keys), stream,
      [&] { attention::wgmma_forward(p, traits_of(c.y.device()).multiprocessors, stream); });
}

// One query of each sequence, with the rotation and the rows for the cache that wait for it.
bool run_one_query(AttentionCall& c, const Problem& p) {
  std::uint32_t* const counters = counters_of(c.y.device());  // whose device is current now
  if (!attention::fits_one_query(p)) return false;
  attention::OneQuery alone;
  alone.p = p;
  alone.exponent = exponent_of(c.in);
  alone.counters = counters;
  attention::OneQuery q = alone;
  const HeldBack held = held_of(c.y.device());
  const auto bf16_of = [](const void* p) { return static_cast<const bf16*>(p); };
  std::optional<FewStep> step =
      held.work.take_step(bf16_of(p.q), bf16_of(p.k), bf16_of(p.v), held.stream);
  if (step) {
    attention::set_step(*step, q);
    if (!attention::may_be_one(q, *step)) {
      held.work.put_back(std::move(*step));
      held.work.let_go(held.stream);
      q = alone;
    }
  }
  attention::one_query(q, held.stream);
  return true;
}

void run_attention(AttentionCall& c) {
  const Path path = path_of(c.in);
  if (path == Path::wgmma) return run_wgmma_forward(c);
  Problem p;
  set_inputs(c.in, p);
  p.together = p.size.queries <= attention::kFewQueries;
  p.pieces = pieces_of(p.size);
  p.partial = out<void>(c.workspace[kPartial]);
  p.y = out<void>(c.y);
  p.row_sum = out<void>(c.row_sums);
  p.row_parts = out<void>(c.row_parts);
  if (p.all_rows() == 0) return;
  if (path == Path::mma && run_one_query(c, p)) return;
  cudaStream_t const stream = stream_of(c.y.device());
  if (path == Path::mma)
    attention::mma_forward(p, stream);
  else
    attention::plain_forward(plain_type(c.in), c.in.additive, p, stream);
  if (p.pieces > 1) attention::join_pieces(plain_type(c.in), p, stream);
}

// ---- backward

enum BackwardPlace : std::uint8_t { kDelta, kSeen, kSeenBy, kWeightSums, kDiagonalSums };
enum WgmmaPlace : std::uint8_t {
  kTileSpans,
  kSeeing,
  kNext,
  kPaddedRows,
  kPaddedSums,
  kPaddedDelta,
  kDq,
  kTurns,
  kKeptByKey
};

attention::KeptLayout kept_by_key(const Sizes& s) {
  return attention::kept_by_key(s.queries, s.keys, attention::wgmma_backward_queries(s.width));
}

void plan_wgmma_backward(AttentionBackwardCall& c) {
  const Sizes s = sizes_of(c.in);
  const int queries = attention::wgmma_backward_queries(s.width);
  const std::int64_t tiles = tiles_of(s.queries, queries);
  const Tensor& like = c.in.q;
  auto& w = c.workspace;
  w[kTileSpans] = spans_of(s, queries, like);
  w[kSeeing] = workspace({s.batch, tiles_of(s.keys, attention::kWgmmaKeys), 4}, DType::i32, like);
  w[kNext] = workspace({1}, DType::i32, like);
  w[kPaddedRows] = workspace({s.batch, tiles * queries, 2}, DType::i32, like);
  w[kPaddedSums] = workspace({s.batch, s.heads, tiles * queries}, DType::f32, like);
  w[kPaddedDelta] = workspace({s.batch, s.heads, tiles * queries}, DType::f32, like);
  w[kDq] = workspace({s.batch, s.heads, tiles, 2, attention::kStepFloats}, DType::f32, like);
  w[kTurns] = workspace({s.batch, s.heads, tiles, 2}, DType::i32, like);
  if (c.in.options.dropout > 0) w[kKeptByKey] = room_for_kept(s, kept_by_key(s), like);
}

void plan_attention_backward(AttentionBackwardCall& c) {
  const Path path = path_of(c.in, &c.dy);
  if (path == Path::wgmma) return plan_wgmma_backward(c);
  const Sizes s = sizes_of(c.in);
  const BackwardTiles tiles = backward_tiles(path, c.in, s);
  const std::int64_t query_tiles = tiles_of(s.queries, tiles.step_queries);
  const std::int64_t key_tiles = tiles_of(s.keys, tiles.own_keys);
  const DType sums = type_of_sums(c.in);
  auto& w = c.workspace;
  w[kDelta] = workspace({s.batch, s.heads, s.queries}, sums, c.in.q);
  w[kSeen] = workspace({s.batch, query_tiles, 2}, DType::i32, c.in.q);
  w[kSeenBy] = workspace({s.batch, key_tiles, 2}, DType::i32, c.in.q);
  if (c.dw.defined())
    w[kWeightSums] =
        workspace({s.batch, s.heads, tiles_of(s.queries, tiles.rows), s.width}, sums, c.in.q);
  if (c.d_bias.defined() && s.queries > 0 && s.keys > 0) {
    const auto row_tiles = static_cast<int>(tiles_of(s.queries, tiles.rows));
    const auto tiles_of_keys = static_cast<int>(tiles_of(s.keys, tiles.keys));
    w[kDiagonalSums] =
        workspace({s.batch, s.heads,
                   attention::count_of_steps(row_tiles, tiles_of_keys, tiles.rows, tiles.keys),
                   attention::diagonals_of_tile(tiles.rows, tiles.keys)},
                  sums, c.in.q);
  }
}

void set_gradients(AttentionBackwardCall& c, BackwardProblem& p) {
  set_inputs(c.in, p);
  // Read only in this direction; the struct serves both.
  p.y = const_cast<void*>(in<void>(c.y));
  p.row_sum = const_cast<void*>(in<void>(c.row_sums));
  p.row_parts = const_cast<void*>(in<void>(c.row_parts));
  p.dy = in<void>(c.dy);
  p.dq = out<void>(c.dq);
  p.dk = out<void>(c.dk);
  p.dv = out<void>(c.dv);
}

BackwardProblem backward_problem(AttentionBackwardCall& c) {
  BackwardProblem p;
  set_gradients(c, p);
  p.aligned = p.aligned && rows_are_aligned(c.dy);
  auto& w = c.workspace;
  p.delta = out<void>(w[kDelta]);
  p.seen = out<std::int32_t>(w[kSeen]);
  p.seen_by = out<std::int32_t>(w[kSeenBy]);
  p.weight_sums = out<void>(w[kWeightSums]);
  p.diagonal_sums = out<void>(w[kDiagonalSums]);
  p.d_additive = out<void>(c.d_additive_mask);
  if (c.d_additive_mask.defined()) {
    p.d_additive_strides = pair_strides(c.d_additive_mask);
    p.one_mask_batch = c.d_additive_mask.size(0) == 1;
    p.one_mask_head = c.d_additive_mask.size(1) == 1;
  }
  return p;
}

// Gradients of queries, keys and values, and sums of dS for what is added to scores.
void run_tiles_backward(Path path, const AttentionBackwardCall& c, const BackwardProblem& p,
                        cudaStream_t stream) {
  const bool pairs = p.d_additive != nullptr, diagonals = p.diagonal_sums != nullptr;
  if (path == Path::mma) {
    attention::mma_query_gradients(p, stream);
    attention::mma_key_gradients(p, stream);
    if (diagonals) attention::mma_pair_gradients(true, p, stream);
    if (pairs) attention::mma_pair_gradients(false, p, stream);
    return;
  }
  const PlainType type = plain_type(c.in);
  attention::plain_query_gradients(type, c.in.additive, p, stream);
  attention::plain_key_gradients(type, c.in.additive, p, stream);
  if (diagonals) attention::plain_pair_gradients(type, c.in.additive, true, p, stream);
  if (pairs) attention::plain_pair_gradients(type, c.in.additive, false, p, stream);
}

// A block of keys waits for blocks of later keys, so these must run with it or have started before.
// One runs on a multiprocessor at a time: where a head has no more than there are, all run together
// and may start with the first keys, whose blocks take longest behind a causal mask.
void run_wgmma_backward(AttentionBackwardCall& c) {
  WgmmaBackward p;
  set_gradients(c, p);
  p.exponent = exponent_of(c.in);
  p.times = static_cast<float>(p.scale * p.kept_times);
  p.delta_scale = static_cast<float>(1 / p.kept_times);
  auto& w = c.workspace;
  p.spans = out<attention::TileSpan>(w[kTileSpans]);
  p.seeing = out<attention::SeeingTiles>(w[kSeeing]);
  p.counters = out<std::int32_t>(w[kNext]);
  p.padded_queries = static_cast<int>(w[kPaddedSums].size(2));
  p.padded_rows = out<int2>(w[kPaddedRows]);
  p.padded_sums = out<float>(w[kPaddedSums]);
  p.padded_delta = out<float>(w[kPaddedDelta]);
  p.dq_sums = out<float>(w[kDq]);
  p.turns = out<std::int32_t>(w[kTurns]);
  const Sizes& s = p.size;
  const bool run_together =
      tiles_of(s.keys, attention::kWgmmaKeys) <= traits_of(c.dq.device()).multiprocessors;
  const bool all_seen = c.in.keys.pairs == static_cast<double>(s.batch) * s.queries * s.keys;
  p.around = run_together && all_seen && s.queries == s.keys;
  p.last_first = !run_together;
  cudaStream_t const stream = stream_of(c.dq.device());
  attention::wgmma_before_backward(p, stream);
  launch_by_heads(p, w[kKeptByKey], kept_by_key(s), stream,
                  [&] { attention::wgmma_backward(p, stream); });
  attention::wgmma_put_dq(p, stream);
}

void run_attention_backward(AttentionBackwardCall& c) {
  const Path path = path_of(c.in, &c.dy);
  if (path == Path::wgmma) return run_wgmma_backward(c);
  const BackwardProblem p = backward_problem(c);
  const PlainType type = plain_type(c.in);
  const BackwardTiles tiles = backward_tiles(path, c.in, p.size);
  cudaStream_t const stream = stream_of(c.dq.device());
  attention::row_deltas(type, p, stream);
  attention::note_seen_tiles(p, tiles, stream);
  run_tiles_backward(path, c, p, stream);
  if (c.dw.defined())
    attention::add_parts(type, p.weight_sums, p.size.batch, p.size.heads,
                         static_cast<int>(tiles_of(p.size.queries, tiles.rows)), p.size.width,
                         out<void>(c.dw), stream);
  if (c.d_bias.defined()) attention::add_diagonals(type, p, tiles, out<void>(c.d_bias), stream);
  if (c.d_sinks.defined()) attention::sink_gradients(type, p, out<void>(c.d_sinks), stream);
}

// A thread per query of every sequence.
void run_intervals(ops::IntervalsCall& c) {
  std::int32_t* const first = out<std::int32_t>(c.intervals);
  std::int32_t* const ends = out<std::int32_t>(c.ends);
  const std::int64_t batch = c.ends.size(0), queries = c.intervals.size(2);
  std::int32_t* const last = first + batch * queries;
  const ops::QueryWindow window = c.window;
  const auto end = static_cast<std::int32_t>(c.end);
  each("intervals", stream_of(c.ends.device()), batch * queries, [=] __device__(std::int64_t i) {
    const ops::KeyInterval seen = window.of(i % queries);
    first[i] = static_cast<std::int32_t>(seen.first);
    last[i] = static_cast<std::int32_t>(seen.last);
    if (i % queries == 0) ends[i / queries] = end;
  });
}

}  // namespace

void add_attention_routines() {
  add<ops::IntervalsCall>({run_intervals});
  add<AttentionCall>({run_attention, plan_attention});
  add<AttentionBackwardCall>({run_attention_backward, plan_attention_backward});
}

}  // namespace heddle::cuda
