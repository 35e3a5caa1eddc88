// Losses of given logits and of given log-probabilities, on CUDA.
#include <cmath>

#include "backend/cuda/hopper/cluster.cuh"
#include "backend/cuda/narrow_math.cuh"
#include "backend/cuda/sums.cuh"
#include "backend/cuda/vectors.cuh"
#include "base/divide.h"
#include "ops/linear_cross_entropy/linear_cross_entropy.call.h"
#include "ops/linear_cross_entropy/loss_rows.cuh"

namespace heddle::cuda {

namespace {

constexpr int kOneBlock = 1024;
// A row that is longer than kShort is held in the shared memory of kRanks blocks between its two
// passes, where blocks can share one (compute capability 9.0): each holds so little that several of
// other rows run beside it, and memory is never idle while a row waits for its sum. The memory unit
// brings it in kPieces.
constexpr std::int64_t kShort = 4096;
constexpr int kRanks = 4;
constexpr int kPieces = 4;
constexpr std::int64_t kMostShared = 208 << 10;  // of a block

template <class S, class G>
struct RowArgs {
  std::int64_t rows, classes, z_stride, g_stride, first;
  std::int64_t ignore;
  bool log_probs, wide_targets;
  Compute<S> smoothing;
  const S* z;
  const void* targets;
  const Compute<S>* weights;
  const DeviceTerms* terms;
  const Compute<S>* row_scales;
  const Compute<S>* dloss;
  Compute<S>* losses;
  G* g;
};

// kEach neighbouring logits; those after the last class are -inf.
template <class S, int kEach>
struct Logits {
  Compute<S> v[kEach];

  __device__ void load(const S* z, std::int64_t left) {
    if constexpr (kEach == 1) {
      v[0] = wide(*z);
      return;
    } else {
      const Values<S> from = cuda::load(z);
#pragma unroll
      for (int e = 0; e < kEach; ++e) v[e] = from.v[e];
    }
    if (left >= kEach) return;
#pragma unroll
    for (int e = 0; e < kEach; ++e)
      if (e >= left) v[e] = -static_cast<Compute<S>>(INFINITY);
  }
};

// In 16 bytes, or in 8 where the gradient is narrower.
template <class S, class G, int kEach>
__device__ void store_gradient(G* to, const Compute<S> (&v)[kEach]) {
  if constexpr (kEach == 1) {
    *to = narrow<G>(v[0]);
  } else if constexpr (kEach == kVector<G>) {
    Values<G> all;
#pragma unroll
    for (int e = 0; e < kEach; ++e) all.v[e] = v[e];
    cuda::store(to, all);
  } else {
    uint2 words;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(words.x) : "f"(v[1]), "f"(v[0]));
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(words.y) : "f"(v[3]), "f"(v[2]));
    *reinterpret_cast<uint2*>(to) = words;
  }
}

// Parts of a row's loss and gradient.
template <class C>
struct RowTerms {
  C at_target, total, smoothing, even, scale, all;
};

template <class S, class G>
__device__ RowTerms<Compute<S>> terms_of_row(const RowArgs<S, G>& a, std::int64_t row,
                                             std::int64_t target) {
  using C = Compute<S>;
  RowTerms<C> t;
  t.at_target = a.weights == nullptr ? C{1} : a.weights[target];
  t.total =
      a.weights == nullptr ? static_cast<C>(a.classes) : static_cast<C>(a.terms->class_weight_sum);
  t.smoothing = a.smoothing;
  t.even = a.smoothing / static_cast<C>(a.classes);
  t.scale = static_cast<C>(a.terms->scale);
  if (a.dloss != nullptr) t.scale *= *a.dloss;
  if (a.row_scales != nullptr) t.scale *= a.row_scales[row];
  t.all = a.weights == nullptr ? C{1} : (C{1} - t.smoothing) * t.at_target + t.even * t.total;
  return t;
}

// The largest so far, the sum of exponentials below it, and Σ w·z.
template <class C>
struct Running {
  C largest, sum, weighted;
};

template <class S, class G, int kEach>
__device__ void take(Running<Compute<S>>& r, const RowArgs<S, G>& a, const Logits<S, kEach>& z,
                     std::int64_t at) {
  using C = Compute<S>;
  if (!a.log_probs) {
    C most = z.v[0];
#pragma unroll
    for (int e = 1; e < kEach; ++e) most = z.v[e] > most ? z.v[e] : most;
    if (most > r.largest) {
      r.sum *= std::exp(r.largest - most);
      r.largest = most;
    }
#pragma unroll
    for (int e = 0; e < kEach; ++e) r.sum += exp_for<G>(z.v[e] - r.largest);
  }
  if (a.smoothing != C{0})
#pragma unroll
    for (int e = 0; e < kEach; ++e)
      if (at + e < a.classes)
        r.weighted += a.weights == nullptr ? z.v[e] : a.weights[at + e] * z.v[e];
}

// Of the whole row, known to every thread. Lanes begin with the lowest finite number, so that -inf
// counts for nothing. The blocks that share a row have all read it when this returns.
template <int kCount, bool kShared, class C>
__device__ Running<C> together(Running<C> own) {
  Running<C> all;
  all.largest = joined_of_block<kCount>(own.largest, [](C a, C b) { return a > b ? a : b; });
  all.sum = sum_of_row<kCount>(own.sum * std::exp(own.largest - all.largest));
  all.weighted = sum_of_row<kCount>(own.weighted);
  if constexpr (kShared) {
    __shared__ Running<C> part;
    if (threadIdx.x == 0) part = all;
    wait_for_cluster();
    Running<C> parts[kRanks];
#pragma unroll
    for (int i = 0; i < kRanks; ++i) parts[i] = of_rank(&part, i);
    all = parts[0];
#pragma unroll
    for (int i = 1; i < kRanks; ++i)
      if (parts[i].largest > all.largest) all.largest = parts[i].largest;
    all.sum = all.weighted = 0;
#pragma unroll
    for (int i = 0; i < kRanks; ++i) {
      all.sum += parts[i].sum * std::exp(parts[i].largest - all.largest);
      all.weighted += parts[i].weighted;
    }
  }
  return all;
}

// Who works on a row: one block, or kRanks of them, each on a stretch of its units.
template <bool kShared>
struct Stretch {
  std::int64_t begin, end;

  static __device__ int rank() { return kShared ? static_cast<int>(blockIdx.x % kRanks) : 0; }

  explicit __device__ Stretch(std::int64_t units) {
    const std::int64_t each = kShared ? ceil_div(units, kRanks) : units;
    begin = rank() * each;
    end = begin + each < units ? begin + each : units;
  }
};

// A block's stretch of a row on its way to shared memory.
template <class S, int kEach, int kCount>
struct Held {
  Barrier* arrived;  // of kPieces
  S* to;
  int parity = 0;
  int units = 0, piece = 0;  // of the stretch, and of each piece but the last

  // By all threads, before the first row.
  __device__ void open() const {
#if HEDDLE_SM90A
    if (threadIdx.x == 0) {
      for (int i = 0; i < kPieces; ++i) init_barrier(arrived + i, 1);
      barriers_are_made();
    }
    __syncthreads();
#endif
  }

  __device__ void fetch([[maybe_unused]] const S* from, std::int64_t count) {
    constexpr int kRound = kPieces * kCount;
    units = static_cast<int>(count);
    piece = ceil_div(units, kRound) * kCount;
#if HEDDLE_SM90A
    if (threadIdx.x > 0) return;
    for (int i = 0; i * piece < units; ++i) {
      const int left = units - i * piece;
      const int bytes = 16 * (left < piece ? left : piece);
      arrive_expecting(arrived + i, bytes);
      load_bytes(to + i * piece * kEach, from + i * piece * kEach, bytes, arrived + i);
    }
#endif
  }

  // f(u) for every unit that is this thread's, while later pieces are on their way.
  template <class F>
  __device__ void each_as_it_comes(F f) const {
    for (int i = 0, begin = 0; begin < units; ++i, begin += piece) {
#if HEDDLE_SM90A
      wait_for(arrived + i, parity);
#endif
      const int end = begin + piece < units ? begin + piece : units;
#pragma unroll 2
      for (int u = begin + static_cast<int>(threadIdx.x); u < end; u += kCount) f(u);
    }
  }
};

// The usual loss (no smoothing, no weights of classes) of logits in shared memory, whose gradient
// is bf16: the same as take() and gradient_of() with a third of their instructions, which bound it.
// exp(z - m) is 2^(z·log2(e) - m·log2(e)), one multiply-add and one approximation.
template <class S, int kEach, int kCount>
struct PlainRow {
  const Held<S, kEach, kCount>& held;
  int count;  // logits of the stretch

  __device__ Logits<S, kEach> at(int u) const {
    Logits<S, kEach> z;
    z.load(held.to + u * kEach, count - u * kEach);
    return z;
  }

  __device__ Running<float> sums(float lowest) const {
    Running<float> r{lowest, 0, 0};
    float shift = 0;
    held.each_as_it_comes([&](int u) {
      const Logits<S, kEach> z = at(u);
      float most = z.v[0];
#pragma unroll
      for (int e = 1; e < kEach; ++e) most = z.v[e] > most ? z.v[e] : most;
      if (most > r.largest) {
        r.sum *= std::exp(r.largest - most);
        r.largest = most;
        shift = most * kLog2EInF32;
      }
#pragma unroll
      for (int e = 0; e < kEach; ++e) r.sum += power_of_two(std::fma(z.v[e], kLog2EInF32, -shift));
    });
    return r;
  }

  // factor·(softmax - [v = target]), of which `target` counts from the stretch's first logit.
  __device__ void gradient(const Running<float>& r, float scale, int target, bf16* to) const {
    const float shift = r.largest * kLog2EInF32, factor = scale / r.sum;
#pragma unroll 2
    for (int u = static_cast<int>(threadIdx.x); u < held.units; u += kCount) {
      const Logits<S, kEach> z = at(u);
      float g[kEach];
#pragma unroll
      for (int e = 0; e < kEach; ++e)
        g[e] = power_of_two(std::fma(z.v[e], kLog2EInF32, -shift)) * factor;
      const int own = target - u * kEach;
      if (own >= 0 && own < kEach) {
#pragma unroll
        for (int e = 0; e < kEach; ++e)
          if (e == own) g[e] -= scale;
      }
      store_gradient<S, bf16, kEach>(to + u * kEach, g);
    }
  }
};

template <class S, class G, int kCount, bool kShared>
__device__ void write_same(const RowArgs<S, G>& a, std::int64_t row, Compute<S> value) {
  const Stretch<kShared> own(a.classes);
  if (a.losses != nullptr && own.begin == 0 && threadIdx.x == 0) a.losses[a.first + row] = value;
  if (a.g == nullptr) return;
  for (std::int64_t i = own.begin + threadIdx.x; i < own.end; i += kCount)
    a.g[row * a.g_stride + i] = narrow<G>(value);
}

template <class S, class G, int kEach>
__device__ void gradient_of(const RowArgs<S, G>& a, const RowTerms<Compute<S>>& t,
                            const Running<Compute<S>>& r, std::int64_t target, std::int64_t at,
                            const Logits<S, kEach>& z, Compute<S> (&g)[kEach]) {
  using C = Compute<S>;
  const C factor = t.scale * t.all / r.sum, shift = t.scale * t.even;
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    const C weight = a.weights == nullptr || at + e >= a.classes ? C{1} : a.weights[at + e];
    const C soft = a.log_probs ? C{0} : exp_for<G>(z.v[e] - r.largest) * factor;
    g[e] = soft - shift * weight;
  }
  if (target < at || target >= at + kEach) return;
#pragma unroll
  for (int e = 0; e < kEach; ++e)
    if (at + e == target) g[e] -= t.scale * (C{1} - t.smoothing) * t.at_target;
}

// One row by a block, or by the blocks that share it (kShared), which hold it in shared memory.
// Where the gradient is narrower than the logits and lies in their place, what is written belongs
// to logits that everybody has read already: a block's places only move forward.
template <class S, class G, int kEach, int kCount, bool kShared>
__device__ void loss_of_row(const RowArgs<S, G>& a, std::int64_t row, std::int64_t target,
                            Held<S, kEach, kCount>& held) {
  using C = Compute<S>;
  const Stretch<kShared> stretch(ceil_div(a.classes, kEach));
  const S* const z = a.z + row * a.z_stride;
  if constexpr (kShared) held.fetch(z + stretch.begin * kEach, stretch.end - stretch.begin);
  const C lowest = std::is_same_v<C, double> ? C(-1e308) : C(-3e38);
  const C at_target = wide(z[target]);
  constexpr bool kCanBePlain = kShared && std::is_same_v<G, bf16>;
  const bool plain = kCanBePlain && !a.log_probs && a.smoothing == C{0} && a.weights == nullptr;
  const std::int64_t first = stretch.begin * kEach;  // logit
  Running<C> own{lowest, 0, 0};
  [[maybe_unused]] const PlainRow<S, kEach, kCount> usual{held,
                                                          static_cast<int>(a.classes - first)};
  if constexpr (kCanBePlain)
    if (plain) own = usual.sums(lowest);
  if constexpr (kShared) {
    if (!plain)
      held.each_as_it_comes([&](int u) {
        Logits<S, kEach> v;
        v.load(held.to + u * kEach, a.classes - first - u * kEach);
        take(own, a, v, first + u * kEach);
      });
  } else {
#pragma unroll 4
    for (std::int64_t u = threadIdx.x; u < stretch.end; u += kCount) {
      Logits<S, kEach> v;
      v.load(z + u * kEach, a.classes - u * kEach);
      take(own, a, v, u * kEach);
    }
  }
  const Running<C> r = together<kCount, kShared>(own);
  const RowTerms<C> t = terms_of_row(a, row + a.first, target);
  if (a.losses != nullptr && stretch.begin == 0 && threadIdx.x == 0) {
    const C log_sum = a.log_probs ? C{0} : std::log(r.sum) + r.largest;
    const C of_target = t.at_target * (log_sum - at_target);
    a.losses[a.first + row] = t.smoothing == C{0} ? of_target
                                                  : (C{1} - t.smoothing) * of_target +
                                                        t.even * (t.total * log_sum - r.weighted);
  }
  if (a.g == nullptr) return;
  if constexpr (kCanBePlain)
    if (plain) {
      const std::int64_t from_first = target - first;  // some other block's, or an int
      const int here = from_first < 0 || from_first >= std::int64_t{held.units} * kEach
                           ? -1
                           : static_cast<int>(from_first);
      return usual.gradient(r, t.scale, here, a.g + row * a.g_stride + first);
    }
  for (std::int64_t begin = stretch.begin; begin < stretch.end; begin += kCount) {
    const std::int64_t u = begin + threadIdx.x;
    Logits<S, kEach> v;
    if (u < stretch.end)
      v.load(kShared ? held.to + (u - stretch.begin) * kEach : z + u * kEach,
             a.classes - u * kEach);
    if constexpr (!kShared && sizeof(S) != sizeof(G)) __syncthreads();
    if (u >= stretch.end) continue;
    C g[kEach];
    gradient_of(a, t, r, target, u * kEach, v, g);
    store_gradient<S, G, kEach>(a.g + row * a.g_stride + u * kEach, g);
  }
}

template <class S, class G, int kEach, int kCount, bool kShared>
__global__ void __launch_bounds__(kCount) loss_rows(const RowArgs<S, G> a) {
  extern __shared__ __align__(16) unsigned char shared[];
  __shared__ Barrier arrived[kPieces];
  Held<S, kEach, kCount> held{arrived, reinterpret_cast<S*>(shared)};
  if constexpr (kShared) held.open();
  constexpr int kBlocks = kShared ? kRanks : 1;  // of a row
  for (std::int64_t row = blockIdx.x / kBlocks; row < a.rows; row += gridDim.x / kBlocks) {
    const std::int64_t i = a.first + row;
    const std::int64_t target = a.wide_targets ? static_cast<const std::int64_t*>(a.targets)[i]
                                               : static_cast<const std::int32_t*>(a.targets)[i];
    using C = Compute<S>;
    if (target == a.ignore)
      write_same<S, G, kCount, kShared>(a, row, C{0});
    else if (target < 0 || target >= a.classes)
      write_same<S, G, kCount, kShared>(a, row, static_cast<C>(NAN));
    else {
      loss_of_row<S, G, kEach, kCount, kShared>(a, row, target, held);
      held.parity ^= 1;
    }
    // Shared memory serves the next row, and others may still look at this block's part of the sum.
    if constexpr (kShared)
      wait_for_cluster();
    else
      __syncthreads();
  }
}

template <class S, class G>
bool in_vectors(const RowArgs<S, G>& a) {
  const std::int64_t whole = ceil_div(a.classes, kVector<S>) * kVector<S>;
  const bool z = rows_aligned(a.z, a.z_stride) && a.z_stride >= whole;
  return z && (a.g == nullptr || (rows_aligned(a.g, a.g_stride) && a.g_stride >= whole));
}

template <class S, class G>
void launch_rows(const RowArgs<S, G>& a, Device device, cudaStream_t stream) {
  if (a.rows == 0) return;
  const unsigned blocks = grid_for(a.rows);
  const std::int64_t bytes = ceil_div(ceil_div(a.classes, kVector<S>), kRanks) * 16;
  if (!in_vectors(a)) {
    loss_rows<S, G, 1, kThreads, false><<<blocks, kThreads, 0, stream>>>(a);
  } else if (a.classes <= kShort) {
    loss_rows<S, G, kVector<S>, 128, false><<<blocks, 128, 0, stream>>>(a);
  } else if (a.g == nullptr || bytes > kMostShared || !has_clusters(device)) {
    loss_rows<S, G, kVector<S>, 512, false><<<blocks, 512, 0, stream>>>(a);
  } else {
    const Launch how{std::int64_t{blocks} * kRanks, kThreads, static_cast<int>(bytes), stream};
    start_cluster("cross_entropy", loss_rows<S, G, kVector<S>, kThreads, true>, kRanks, how, a);
  }
  check_launch("cross_entropy");
}

template <class S, class G>
void rows_as(const ops::LossRows& rows, const LossArgs& args, cudaStream_t stream) {
  using C = Compute<S>;
  RowArgs<S, G> a;
  a.rows = args.rows;
  a.classes = args.classes;
  a.z_stride = args.logits_stride;
  a.g_stride = args.gradient_stride;
  a.first = args.first;
  a.ignore = rows.options.ignore_index;
  a.log_probs = args.log_probs;
  a.wide_targets = rows.targets.dtype() == DType::i64;
  a.smoothing = static_cast<C>(rows.options.label_smoothing);
  a.z = static_cast<const S*>(args.logits);
  a.targets = in<void>(rows.targets);
  a.weights = in<C>(rows.options.class_weights);
  a.terms = args.terms;
  a.row_scales = static_cast<const C*>(args.row_scales);
  a.dloss = static_cast<const C*>(args.dloss);
  a.losses = static_cast<C*>(args.losses);
  a.g = static_cast<G*>(args.gradient);
  launch_rows(a, rows.targets.device(), stream);
}

// The weights of the targets that count: without class weights, their number.
template <class C>
__global__ void __launch_bounds__(kOneBlock)
    terms_kernel(std::int64_t rows, std::int64_t classes, std::int64_t ignore, bool mean,
                 const void* targets, bool wide_targets, const C* weights, DeviceTerms* terms) {
  double counted = 0, sum = 0;
  for (std::int64_t i = threadIdx.x; i < rows; i += kOneBlock) {
    const std::int64_t target = wide_targets ? static_cast<const std::int64_t*>(targets)[i]
                                             : static_cast<const std::int32_t*>(targets)[i];
    if (target == ignore || target < 0 || target >= classes) continue;
    counted += weights == nullptr ? 1.0 : static_cast<double>(weights[target]);
  }
  if (weights != nullptr)
    for (std::int64_t v = threadIdx.x; v < classes; v += kOneBlock)
      sum += static_cast<double>(weights[v]);
  counted = sum_of_row<kOneBlock>(counted);
  sum = sum_of_row<kOneBlock>(sum);
  if (threadIdx.x == 0) *terms = {!mean ? 1.0 : counted == 0 ? 0.0 : 1 / counted, sum};
}

template <class C>
__global__ void __launch_bounds__(kOneBlock)
    sum_losses(std::int64_t rows, const C* losses, const DeviceTerms* terms, C* loss) {
  double own = 0;
  for (std::int64_t i = threadIdx.x; i < rows; i += kOneBlock)
    own += static_cast<double>(losses[i]);
  own = sum_of_row<kOneBlock>(own);
  if (threadIdx.x == 0) *loss = static_cast<C>(own * terms->scale);
}

// Workspace in float64 numbers: the terms, followed by the losses where the caller does not want
// them.
void plan_cross_entropy(ops::CrossEntropyCall& c) {
  const std::int64_t losses = c.rows.each() ? 0 : c.rows.targets.elements();
  c.workspace = workspace({kTermsNumbers + losses}, DType::f64, c.z);
}

LossArgs given_rows(const ops::LossRows& rows, const Tensor& z, bool log_probs,
                    const DeviceTerms* terms) {
  LossArgs a;
  a.logits_dtype = a.gradient_dtype = z.dtype();
  a.rows = rows.targets.elements();
  a.classes = a.logits_stride = a.gradient_stride = z.size(-1);
  a.log_probs = log_probs;
  a.logits = in<void>(z);
  a.terms = terms;
  return a;
}

void run_cross_entropy(ops::CrossEntropyCall& c) {
  cudaStream_t const stream = stream_of(c.loss.device());
  double* const room = out<double>(c.workspace);
  auto* const terms = reinterpret_cast<DeviceTerms*>(room);
  make_terms(c.rows, c.z.size(-1), terms, stream);
  LossArgs a = given_rows(c.rows, c.z, c.log_probs, terms);
  a.losses = c.rows.each() ? out<void>(c.loss) : room + kTermsNumbers;
  run_loss_rows(c.rows, a, stream);
  if (!c.rows.each()) write_loss(c.loss, a.losses, a.rows, terms, stream);
}

void plan_cross_entropy_backward(ops::CrossEntropyBackwardCall& c) {
  c.workspace = workspace({kTermsNumbers}, DType::f64, c.z);
}

void run_cross_entropy_backward(ops::CrossEntropyBackwardCall& c) {
  cudaStream_t const stream = stream_of(c.dz.device());
  auto* const terms = reinterpret_cast<DeviceTerms*>(out<double>(c.workspace));
  make_terms(c.rows, c.z.size(-1), terms, stream);
  LossArgs a = given_rows(c.rows, c.z, c.log_probs, terms);
  (c.rows.each() ? a.row_scales : a.dloss) = in<void>(c.dloss);
  a.gradient = out<void>(c.dz);
  run_loss_rows(c.rows, a, stream);
}

}  // namespace

void make_terms(const ops::LossRows& rows, std::int64_t classes, DeviceTerms* terms,
                cudaStream_t stream) {
  const ops::CrossEntropyOptions& o = rows.options;
  const Tensor& weights = o.class_weights;
  const auto run = [&](auto type) {
    using C = decltype(type);
    terms_kernel<C><<<1, kOneBlock, 0, stream>>>(
        rows.targets.elements(), classes, o.ignore_index, o.reduction == ops::Reduction::mean,
        in<void>(rows.targets), rows.targets.dtype() == DType::i64, in<C>(weights), terms);
  };
  if (weights.defined() && weights.dtype() == DType::f64)
    run(double{});
  else
    run(float{});
  check_launch("cross_entropy");
}

void run_loss_rows(const ops::LossRows& rows, const LossArgs& args, cudaStream_t stream) {
  if (args.logits_dtype == DType::f64) return rows_as<double, double>(rows, args, stream);
  if (args.logits_dtype == DType::bf16) return rows_as<bf16, bf16>(rows, args, stream);
  if (args.gradient_dtype == DType::bf16) return rows_as<float, bf16>(rows, args, stream);
  rows_as<float, float>(rows, args, stream);
}

void write_loss(Tensor& loss, const void* losses, std::int64_t rows, const DeviceTerms* terms,
                cudaStream_t stream) {
  const auto run = [&](auto type) {
    using C = decltype(type);
    sum_losses<C>
        <<<1, kOneBlock, 0, stream>>>(rows, static_cast<const C*>(losses), terms, out<C>(loss));
  };
  if (loss.dtype() == DType::f64)
    run(double{});
  else
    run(float{});
  check_launch("cross_entropy");
}

void add_cross_entropy_routines() {
  add<ops::CrossEntropyCall>({run_cross_entropy, plan_cross_entropy});
  add<ops::CrossEntropyBackwardCall>({run_cross_entropy_backward, plan_cross_entropy_backward});
}

}  // namespace heddle::cuda
