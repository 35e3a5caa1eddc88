// dst[i] = src[i] with conversion, or dst[i] += src[i], on strided arrays.
#include "backend/cpu/own_storage.h"
#include "backend/cpu/strided.h"
#include "base/divide.h"
#include "ops/copy/copy.kernels.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace copy_detail {

inline float widen(bf16 v) { return v.to_float(); }
inline float widen(f16 v) { return v.to_float(); }
template <class T>
inline T widen(T v) {
  return v;
}

// Truncated; the nearest limit where To cannot hold it (a plain cast of a float would be undefined,
// one of an integer another number), 0 for NaN.
template <class To, class From>
inline To saturated(From v) {
  constexpr To kLow = std::is_signed_v<To> ? static_cast<To>(To{1} << (8 * sizeof(To) - 1)) : To{0};
  constexpr To kHigh = static_cast<To>(~kLow);
  if (v != v) return To{0};
  if (v <= static_cast<From>(kLow)) return kLow;
  if (v >= static_cast<From>(kHigh)) return kHigh;
  return static_cast<To>(v);
}

template <class To, class From>
inline To convert(From v) {
  if constexpr (std::is_same_v<To, From>)
    return v;
  else if constexpr (std::is_same_v<To, bf16> || std::is_same_v<To, f16>)
    return To::from_float(static_cast<float>(widen(v)));
  else if constexpr (std::is_integral_v<To> && std::is_integral_v<From>)
    return saturated<To>(static_cast<std::int64_t>(v));
  else if constexpr (std::is_integral_v<To>)
    return saturated<To>(static_cast<double>(widen(v)));
  else
    return static_cast<To>(widen(v));
}

template <class T>
inline constexpr bool kVector =
    std::is_same_v<T, float> || std::is_same_v<T, bf16> || std::is_same_v<T, double>;

// f32 to bf16, every number to the nearest: also those below 2^-126.
inline void round_row(const float* src, bf16* dst, std::int64_t n) {
  const Tag<float> d;
  const hn::Rebind<std::uint16_t, Tag<float>> d16;
  auto* bits = reinterpret_cast<std::uint16_t*>(dst);
  for_vectors(
      d, n,
      [&](std::int64_t i) { hn::StoreU(bf16_bits_exact(d, load(d, src + i)), d16, bits + i); },
      [&](std::int64_t i, std::int64_t rest) {
        for (std::int64_t j = i; j < i + rest; ++j) dst[j] = bf16::from_float(src[j]);
      });
}

template <class From, class To>
void copy_row(const From* src, std::int64_t src_step, To* dst, std::int64_t dst_step,
              std::int64_t n) {
  if (src_step == 1 && dst_step == 1) {
    if constexpr (std::is_same_v<From, To>) {
      __builtin_memcpy(dst, src, static_cast<std::size_t>(n) * sizeof(From));
      return;
    } else if constexpr (std::is_same_v<From, float> && std::is_same_v<To, bf16>) {
      return round_row(src, dst, n);
    } else if constexpr (std::is_same_v<From, bf16> && std::is_same_v<To, float>) {
      return map(src, dst, n, [](auto, auto v) { return v; });
    }
  }
  for (std::int64_t i = 0; i < n; ++i) dst[i * dst_step] = convert<To>(src[i * src_step]);
}

template <class T>
void add_row(const T* src, std::int64_t src_step, T* dst, std::int64_t dst_step, std::int64_t n) {
  if constexpr (kVector<T>) {
    if (src_step == 1 && dst_step == 1) {
      map(dst, src, dst, n, [](auto, auto a, auto b) { return hn::Add(a, b); });
      return;
    }
  }
  for (std::int64_t i = 0; i < n; ++i) {
    T& out = dst[i * dst_step];
    out = convert<T>(widen(out) + widen(src[i * src_step]));
  }
}

// The source's inner stride is large and its next-to-inner one is 1: a transposition. Tiles of
// kTile × kTile elements are read along the source and written along the destination.
template <class From, class To>
void copy_transposed(const CopyArgs& a, const Walk<2>& w) {
  constexpr std::int64_t kTile = 32;
  const auto* src = static_cast<const From*>(a.src);
  auto* dst = static_cast<To*>(a.dst);
  const int r = w.rank - 2;
  const std::int64_t outer = w.size[r];
  const std::int64_t inner = w.size[r + 1];
  Walk<2> plane = w;
  plane.rank = w.rank - 1;  // its offsets() walks the dimensions before the last two
  std::int64_t planes = 1;
  for (int i = 0; i < r; ++i) planes *= w.size[i];
  const std::int64_t bands = ceil_div(outer, kTile);
  parallel_chunks(planes * bands, [&](std::int64_t chunk) {
    std::int64_t at[2];
    plane.offsets(chunk / bands, at);
    const std::int64_t first = chunk % bands * kTile;
    const std::int64_t last = first + kTile < outer ? first + kTile : outer;
    for (std::int64_t j0 = 0; j0 < inner; j0 += kTile) {
      const std::int64_t j1 = j0 + kTile < inner ? j0 + kTile : inner;
      for (std::int64_t i = first; i < last; ++i)
        for (std::int64_t j = j0; j < j1; ++j)
          dst[at[1] + i * w.stride[1][r] + j * w.stride[1][r + 1]] =
              convert<To>(src[at[0] + i * w.stride[0][r] + j * w.stride[0][r + 1]]);
    }
  });
}

template <class From, class To>
void copy_typed(const CopyArgs& a) {
  const Strides* const strides[2] = {&a.src_strides, &a.dst_strides};
  const Walk<2> w = make_walk<2>(a.shape, strides);
  if (!a.accumulate && w.rank >= 2 && w.stride[0][w.rank - 2] == 1 && w.stride[0][w.rank - 1] > 1) {
    copy_transposed<From, To>(a, w);
    return;
  }
  for_pieces(w, [&](const std::int64_t* at, std::int64_t n) {
    const From* src = static_cast<const From*>(a.src) + at[0];
    To* dst = static_cast<To*>(a.dst) + at[1];
    const std::int64_t src_step = w.stride[0][w.rank - 1];
    const std::int64_t dst_step = w.stride[1][w.rank - 1];
    if constexpr (std::is_same_v<From, To> && (kVector<From> || std::is_same_v<From, f16>)) {
      if (a.accumulate) {
        add_row(src, src_step, dst, dst_step, n);
        return;
      }
    }
    copy_row(src, src_step, dst, dst_step, n);
  });
}

template <class F>
void for_any(DType dtype, F f) {
  switch (dtype) {
    case DType::f32: return f(float{});
    case DType::bf16: return f(bf16{});
    case DType::f16: return f(f16{});
    case DType::f64: return f(double{});
    case DType::i32: return f(std::int32_t{});
    case DType::i64: return f(std::int64_t{});
    case DType::u8: return f(std::uint8_t{});
  }
}

// Pairs that models and their files are full of. The rest, 34 of 49, are copied by a wider type.
template <class From, class To>
inline constexpr bool kOften = std::is_same_v<From, To> || (kVector<From> && kVector<To>) ||
                               (std::is_same_v<From, f16> && std::is_same_v<To, float>) ||
                               (std::is_same_v<From, float> && std::is_same_v<To, f16>);

// The level whose instructions a pair of types is worth. 49 pairs in every level were a quarter of
// the library; integers, f16 and f64 are as fast in plain code, and of what avx512_bf16 adds a copy
// makes use in sums of bf16 alone.
template <class From, class To>
constexpr Isa level_of_pair() {
  constexpr bool kNarrow = std::is_same_v<From, bf16> || std::is_same_v<From, float>;
  if (!kNarrow || !(std::is_same_v<To, bf16> || std::is_same_v<To, float>)) return Isa::generic;
  return std::is_same_v<From, bf16> && std::is_same_v<To, bf16> ? kLevel : kLevelWithoutBf16;
}

// A type that holds every value of T, from which each To is converted to as from T itself.
template <class T>
using Wider = std::conditional_t<std::is_integral_v<T>, std::int64_t, double>;

template <class T>
void widen_row(const void* src, std::int64_t step, Wider<T>* out, std::int64_t n) {
  const auto* p = static_cast<const T*>(src);
  for (std::int64_t i = 0; i < n; ++i) out[i] = static_cast<Wider<T>>(widen(p[i * step]));
}

template <class W, class To>
void narrow_row(const W* x, void* dst, std::int64_t step, std::int64_t n) {
  auto* p = static_cast<To*>(dst);
  for (std::int64_t i = 0; i < n; ++i) p[i * step] = convert<To>(x[i]);
}

// Types that are seldom seen together, a few hundred elements at a time by a wider one: two loops
// for each type instead of one for each pair.
template <class W>
void copy_by_wider(const CopyArgs& a, void (*read)(const void*, std::int64_t, W*, std::int64_t),
                   void (*write)(const W*, void*, std::int64_t, std::int64_t)) {
  constexpr std::int64_t kPiece = 256;
  const auto from_bytes = static_cast<std::int64_t>(size_of(a.src_dtype));
  const auto to_bytes = static_cast<std::int64_t>(size_of(a.dst_dtype));
  const Strides* const strides[2] = {&a.src_strides, &a.dst_strides};
  const Walk<2> w = make_walk<2>(a.shape, strides);
  const std::int64_t src_step = w.stride[0][w.rank - 1], dst_step = w.stride[1][w.rank - 1];
  for_pieces(w, [&](const std::int64_t* at, std::int64_t n) {
    W buffer[kPiece];
    const char* src = static_cast<const char*>(a.src) + at[0] * from_bytes;
    char* dst = static_cast<char*>(a.dst) + at[1] * to_bytes;
    for (std::int64_t i = 0; i < n; i += kPiece) {
      const std::int64_t count = n - i < kPiece ? n - i : kPiece;
      read(src + i * src_step * from_bytes, src_step, buffer, count);
      write(buffer, dst + i * dst_step * to_bytes, dst_step, count);
    }
  });
}

inline void copy(const CopyArgs& args) noexcept {
  for_any(args.src_dtype, [&](auto from) {
    for_any(args.dst_dtype, [&](auto to) {
      using From = decltype(from);
      using To = decltype(to);
      constexpr Isa kPair = level_of_pair<From, To>();
      if constexpr (kPair != kLevel)
        native_kernels<CopyKernels>(kPair).copy(args);
      else if constexpr (kOften<From, To>)
        copy_typed<From, To>(args);
      else
        copy_by_wider<Wider<From>>(args, widen_row<From>, narrow_row<Wider<From>, To>);
    });
  });
}

}  // namespace copy_detail

const CopyKernels copy_kernels{copy_detail::copy};

}  // namespace heddle::cpu::HEDDLE_ISA
