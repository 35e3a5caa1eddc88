#include "backend/cuda/products/product.h"

#include "backend/cuda/kernel.cuh"
#include "base/divide.h"

namespace heddle::cuda {

namespace {

// The first elements of the matrices of one product of the batch, in elements from the first.
struct BatchOffsets {
  std::int64_t a = 0, b = 0;
};

__device__ BatchOffsets offsets_of(const Product& p, std::int64_t batch) {
  BatchOffsets at;
  for (int d = p.batch_rank - 1; d >= 0; --d) {
    const std::int64_t own = batch % p.batch_size[d];
    batch /= p.batch_size[d];
    at.a += own * p.a.batch_stride[d];
    at.b += own * p.b.batch_stride[d];
  }
  return at;
}

// The value stored for one sum.
template <class S>
__device__ S finished(const Product& p, Compute<S> sum, const S* y, std::int64_t at,
                      std::int64_t col) {
  if (p.bias != nullptr) sum += static_cast<const Compute<S>*>(p.bias)[col];
  // A residual lies as y does, wherever it is.
  if (p.residual != nullptr)
    sum += wide(static_cast<const S*>(p.residual)[(y - static_cast<const S*>(p.y)) + at]);
  return narrow<S>(sum);
}

// ------------------------------------------------------------------------- f32 and f64: plain FMAs

template <class T, int kTile, int kStep, int kOwn>
struct PlainTile {
  static constexpr int kSide = kTile / kOwn;  // threads along a side of the tile
  static constexpr int kCount = kSide * kSide;
  static constexpr int kLoads = kTile * kStep / kCount;

  T a[kStep][kTile + 4];
  T b[kStep][kTile + 4];

  // Elements of a strip [kTile, kStep] go along whichever dimension is dense in memory.
  static __device__ void load(T (&held)[kLoads], const T* from, std::int64_t outer_stride,
                              std::int64_t step_stride, std::int64_t outer_left,
                              std::int64_t step_left) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const int index = i * kCount + static_cast<int>(threadIdx.x);
      const int o = step_stride == 1 ? index / kStep : index % kTile;
      const int s = step_stride == 1 ? index % kStep : index / kTile;
      held[i] = o < outer_left && s < step_left ? from[o * outer_stride + s * step_stride] : T{0};
    }
  }

  static __device__ void store(const T (&held)[kLoads], T (&to)[kStep][kTile + 4],
                               std::int64_t step_stride) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const int index = i * kCount + static_cast<int>(threadIdx.x);
      const int o = step_stride == 1 ? index / kStep : index % kTile;
      const int s = step_stride == 1 ? index % kStep : index / kTile;
      to[s][o] = held[i];
    }
  }
};

// Operands of type T; y is of type S.
template <class T, class S, int kTile, int kStep, int kOwn>
__global__ void __launch_bounds__((kTile / kOwn) * (kTile / kOwn)) plain_product(const Product p) {
  using Tile = PlainTile<T, kTile, kStep, kOwn>;
  __shared__ Tile tile;
  const std::int64_t tiles_n = ceil_div(p.n, kTile);
  const std::int64_t m0 = blockIdx.x / tiles_n * kTile, n0 = blockIdx.x % tiles_n * kTile;
  const int row = static_cast<int>(threadIdx.x) / Tile::kSide * kOwn;
  const int col = static_cast<int>(threadIdx.x) % Tile::kSide * kOwn;
  for (std::int64_t batch = blockIdx.y; batch < p.batches; batch += gridDim.y) {
    const BatchOffsets at = offsets_of(p, batch);
    const T* const a = static_cast<const T*>(p.a.data) + at.a + m0 * p.a.row_stride;
    const T* const b = static_cast<const T*>(p.b.data) + at.b + n0 * p.b.col_stride;
    T sums[kOwn][kOwn] = {};
    T next_a[Tile::kLoads], next_b[Tile::kLoads];
    Tile::load(next_a, a, p.a.row_stride, p.a.col_stride, p.m - m0, p.k);
    Tile::load(next_b, b, p.b.col_stride, p.b.row_stride, p.n - n0, p.k);
    for (std::int64_t k0 = 0; k0 < p.k; k0 += kStep) {
      Tile::store(next_a, tile.a, p.a.col_stride);
      Tile::store(next_b, tile.b, p.b.row_stride);
      __syncthreads();
      const std::int64_t k1 = k0 + kStep;
      if (k1 < p.k) {
        Tile::load(next_a, a + k1 * p.a.col_stride, p.a.row_stride, p.a.col_stride, p.m - m0,
                   p.k - k1);
        Tile::load(next_b, b + k1 * p.b.row_stride, p.b.col_stride, p.b.row_stride, p.n - n0,
                   p.k - k1);
      }
#pragma unroll
      for (int s = 0; s < kStep; ++s) {
        T left[kOwn], right[kOwn];
#pragma unroll
        for (int i = 0; i < kOwn; ++i) left[i] = tile.a[s][row + i];
#pragma unroll
        for (int j = 0; j < kOwn; ++j) right[j] = tile.b[s][col + j];
#pragma unroll
        for (int i = 0; i < kOwn; ++i)
#pragma unroll
          for (int j = 0; j < kOwn; ++j) sums[i][j] += left[i] * right[j];
      }
      __syncthreads();
    }
    const std::int64_t stride = p.y_stride;
    S* const y = static_cast<S*>(p.y) + batch * p.m * stride;
#pragma unroll
    for (int i = 0; i < kOwn; ++i)
#pragma unroll
      for (int j = 0; j < kOwn; ++j)
        if (m0 + row + i < p.m && n0 + col + j < p.n)
          y[(m0 + row + i) * stride + n0 + col + j] =
              finished(p, sums[i][j], y, (m0 + row + i) * stride + n0 + col + j, n0 + col + j);
  }
}

unsigned batch_grid(const Product& p) {
  return static_cast<unsigned>(std::min<std::int64_t>(p.batches, 65535));
}

template <class T, class S, int kTile, int kStep, int kOwn>
void launch_plain(const Product& p, cudaStream_t stream) {
  const std::int64_t tiles = ceil_div(p.m, kTile) * ceil_div(p.n, kTile);
  constexpr int kCount = PlainTile<T, kTile, kStep, kOwn>::kCount;
  plain_product<T, S, kTile, kStep, kOwn>
      <<<dim3(static_cast<unsigned>(tiles), batch_grid(p)), kCount, 0, stream>>>(p);
  check_launch("product");
}

// ---------------------------------------------------------------------- bf16: tensor cores, f32
// sums

constexpr int kMmaTile = 128;  // of y, both ways
constexpr int kMmaStep = 32;   // along k
constexpr int kMmaStages = 4;
constexpr int kStripBytes = 10240;  // of one operand's strip: 128 rows of 80 bytes, or 32 of 272

// How a strip [128, 32] (rows of y, steps of k) of an operand lies in memory.
enum class Lies { along_k, across_k, anyhow };

__device__ std::uint32_t shared_address(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}

// 16 bytes to shared memory, of which `valid` come from memory and the rest are zeros.
__device__ void copy_async(std::uint32_t to, const void* from, int valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid));
}

__device__ int clamped(std::int64_t left, int most) {
  return left < 0 ? 0 : left < most ? static_cast<int>(left) : most;
}

// Rows of a strip are 80 bytes apart (along_k, anyhow) or 272 (across_k, whose rows are steps):
// eight of them that ldmatrix reads are then in different banks.
template <Lies kLies>
__device__ void load_strip(char* strip, const bf16* from, std::int64_t outer_stride,
                           std::int64_t step_stride, std::int64_t outer_left,
                           std::int64_t step_left) {
  if constexpr (kLies == Lies::along_k) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int piece = i * kThreads + static_cast<int>(threadIdx.x);
      const int o = piece / 4, s = piece % 4 * 8;
      const int valid = o < outer_left ? clamped(step_left - s, 8) : 0;
      copy_async(shared_address(strip + o * 80 + s * 2),
                 valid > 0 ? from + o * outer_stride + s : from, 2 * valid);
    }
  } else if constexpr (kLies == Lies::across_k) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int piece = i * kThreads + static_cast<int>(threadIdx.x);
      const int s = piece / 16, o = piece % 16 * 8;
      const int valid = s < step_left ? clamped(outer_left - o, 8) : 0;
      copy_async(shared_address(strip + s * 272 + o * 2),
                 valid > 0 ? from + s * step_stride + o : from, 2 * valid);
    }
  } else {
#pragma unroll
    for (int i = 0; i < kMmaTile * kMmaStep / kThreads; ++i) {
      const int index = i * kThreads + static_cast<int>(threadIdx.x);
      const int o = index / kMmaStep, s = index % kMmaStep;
      const bool there = o < outer_left && s < step_left;
      *reinterpret_cast<std::uint16_t*>(strip + o * 80 + s * 2) =
          there ? from[o * outer_stride + s * step_stride].bits : std::uint16_t{0};
    }
  }
}

// Four 8×8 matrices whose rows begin at the addresses of lanes 0–7, 8–15, ...
template <bool kTransposed>
__device__ void load_matrices(std::uint32_t (&r)[4], std::uint32_t address) {
  if constexpr (kTransposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address));
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address));
}

__device__ void multiply_add(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                             std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// The 16×16 piece of a strip at (outer, step), as the left side of an mma: matrices of rows 0–7 and
// 8–15 at steps 0–7, then both at steps 8–15. As a right side it is two of 8 columns each.
template <Lies kLies>
__device__ void load_piece(std::uint32_t (&r)[4], std::uint32_t strip, int outer, int step) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int which = lane / 8, line = lane % 8;
  const int o = outer + which % 2 * 8, s = step + which / 2 * 8;
  if constexpr (kLies == Lies::across_k)
    load_matrices<true>(r, strip + static_cast<std::uint32_t>((s + line) * 272 + o * 2));
  else
    load_matrices<false>(r, strip + static_cast<std::uint32_t>((o + line) * 80 + s * 2));
}

template <class S>
__device__ void store_pair(S* y, const Product& p, std::int64_t row, std::int64_t col, float v0,
                           float v1) {
  if (row >= p.m) return;
  const std::int64_t at = row * p.y_stride + col;
  if (col < p.n) y[at] = finished(p, v0, y, at, col);
  if (col + 1 < p.n) y[at + 1] = finished(p, v1, y, at + 1, col + 1);
}

// Eight warps, two down and four across: 64 × 32 of y each.
template <class S, Lies kA, Lies kB>
__global__ void __launch_bounds__(kThreads) mma_product(const Product p) {
  extern __shared__ __align__(128) char stages[];
  const std::int64_t tiles_n = ceil_div(p.n, kMmaTile);
  const std::int64_t m0 = blockIdx.x / tiles_n * kMmaTile, n0 = blockIdx.x % tiles_n * kMmaTile;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int warp_m = warp / 4 * 64, warp_n = warp % 4 * 32;
  const std::int64_t steps = ceil_div(p.k, kMmaStep);
  for (std::int64_t batch = blockIdx.y; batch < p.batches; batch += gridDim.y) {
    const BatchOffsets at = offsets_of(p, batch);
    const bf16* const a = static_cast<const bf16*>(p.a.data) + at.a + m0 * p.a.row_stride;
    const bf16* const b = static_cast<const bf16*>(p.b.data) + at.b + n0 * p.b.col_stride;
    const auto load_stage = [&](std::int64_t step) {
      if (step < steps) {
        char* const stage = stages + step % kMmaStages * 2 * kStripBytes;
        const std::int64_t k0 = step * kMmaStep;
        load_strip<kA>(stage, a + k0 * p.a.col_stride, p.a.row_stride, p.a.col_stride, p.m - m0,
                       p.k - k0);
        load_strip<kB>(stage + kStripBytes, b + k0 * p.b.row_stride, p.b.col_stride, p.b.row_stride,
                       p.n - n0, p.k - k0);
      }
      asm volatile("cp.async.commit_group;");
    };
    float sums[4][4][4] = {};
    for (int s = 0; s < kMmaStages - 1; ++s) load_stage(s);
    for (std::int64_t step = 0; step < steps; ++step) {
      asm volatile("cp.async.wait_group %0;" ::"n"(kMmaStages - 2));
      __syncthreads();  // this stage is there, and the one that is loaded next was read by all
      load_stage(step + kMmaStages - 1);
      const std::uint32_t strip_a = shared_address(stages + step % kMmaStages * 2 * kStripBytes);
      const std::uint32_t strip_b = strip_a + kStripBytes;
#pragma unroll
      for (int s = 0; s < kMmaStep; s += 16) {
        std::uint32_t left[4][4], right[2][4];
#pragma unroll
        for (int i = 0; i < 4; ++i) load_piece<kA>(left[i], strip_a, warp_m + 16 * i, s);
#pragma unroll
        for (int j = 0; j < 2; ++j) load_piece<kB>(right[j], strip_b, warp_n + 16 * j, s);
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
          for (int j = 0; j < 4; ++j)
            multiply_add(sums[i][j], left[i], right[j / 2][j % 2], right[j / 2][j % 2 + 2]);
      }
    }
    asm volatile("cp.async.wait_group 0;");
    __syncthreads();
    S* const y = static_cast<S*>(p.y) + batch * p.m * p.y_stride;
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const std::int64_t row = m0 + warp_m + 16 * i + lane / 4;
        const std::int64_t col = n0 + warp_n + 8 * j + lane % 4 * 2;
        store_pair(y, p, row, col, sums[i][j][0], sums[i][j][1]);
        store_pair(y, p, row + 8, col, sums[i][j][2], sums[i][j][3]);
      }
  }
}

// 16 bytes at a time need all of them to begin at multiples of 16.
Lies lies(const ProductOperand& x, std::int64_t outer_stride, std::int64_t step_stride,
          int batch_rank) {
  bool aligned = reinterpret_cast<std::uintptr_t>(x.data) % 16 == 0;
  for (int d = 0; d < batch_rank; ++d) aligned = aligned && x.batch_stride[d] % 8 == 0;
  if (aligned && step_stride == 1 && outer_stride % 8 == 0) return Lies::along_k;
  if (aligned && outer_stride == 1 && step_stride % 8 == 0) return Lies::across_k;
  return Lies::anyhow;
}

template <class S, Lies kA, Lies kB>
void launch_mma(const Product& p, cudaStream_t stream) {
  constexpr int kBytes = kMmaStages * 2 * kStripBytes;
  const auto kernel = mma_product<S, kA, kB>;
  HEDDLE_CUDA_CHECK(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
  const std::int64_t tiles = ceil_div(p.m, kMmaTile) * ceil_div(p.n, kMmaTile);
  kernel<<<dim3(static_cast<unsigned>(tiles), batch_grid(p)), kThreads, kBytes, stream>>>(p);
  check_launch("product");
}

template <class S, Lies kA>
void launch_mma(const Product& p, Lies b, cudaStream_t stream) {
  switch (b) {
    case Lies::along_k: return launch_mma<S, kA, Lies::along_k>(p, stream);
    case Lies::across_k: return launch_mma<S, kA, Lies::across_k>(p, stream);
    case Lies::anyhow: return launch_mma<S, kA, Lies::anyhow>(p, stream);
  }
}

template <class S>
void launch_mma(const Product& p, cudaStream_t stream) {
  const Lies a = lies(p.a, p.a.row_stride, p.a.col_stride, p.batch_rank);
  const Lies b = lies(p.b, p.b.col_stride, p.b.row_stride, p.batch_rank);
  switch (a) {
    case Lies::along_k: return launch_mma<S, Lies::along_k>(p, b, stream);
    case Lies::across_k: return launch_mma<S, Lies::across_k>(p, b, stream);
    case Lies::anyhow: return launch_mma<S, Lies::anyhow>(p, b, stream);
  }
}

}  // namespace

void multiply(const Product& product, cudaStream_t stream) {
  Product p = product;
  p.y_stride = product.row_stride();
  if (p.m * p.n * p.batches == 0) return;
  if (p.dtype == DType::f64) return launch_plain<double, double, 64, 16, 4>(p, stream);
  if (p.dtype == DType::bf16)
    return p.y_dtype == DType::f32 ? launch_mma<float>(p, stream) : launch_mma<bf16>(p, stream);
  // The gradient of a bf16 weight when activations are f32.
  if (p.y_dtype == DType::bf16) return launch_plain<float, bf16, 64, 16, 4>(p, stream);
  // Small ones have too few large tiles for the machine.
  const std::int64_t large = ceil_div(p.m, 128) * ceil_div(p.n, 128) * p.batches;
  if (large >= 64) return launch_plain<float, float, 128, 8, 8>(p, stream);
  launch_plain<float, float, 64, 16, 4>(p, stream);
}

}  // namespace heddle::cuda
