#include "check/rounding.h"

#include "backend/cpu/kernels.h"
#include "heddle/random.h"
#include "ops/attention/attention.kernels.h"
#include "ops/layer_norm/layer_norm.kernels.h"
#include "ops/rms_norm/rms_norm.kernels.h"

namespace heddle::check {

namespace {

constexpr std::uint64_t kSeedOfRounding = 40961;
constexpr std::uint32_t kStreamOfKernels = 1u << 20;  // behind those of tensors

void move_numbers(double* v, std::int64_t count, const Jitter& jitter, std::uint32_t stream) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint32_t bits =
        philox({kSeedOfRounding, jitter.draw, stream}, static_cast<std::uint64_t>(i))[0];
    v[i] *= 1 + jitter.epsilon * ((static_cast<double>(bits) + 0.5) * 0x1p-31 - 1);
  }
}

// Kernels are plain functions, so what these need lies beside them. One check runs at a time: it
// sets the instruction set of the whole process as well.
Jitter jitter_of_kernels;
std::uint32_t stream_of_kernels = 0;

void move_kept(void* kept, std::int64_t count) noexcept {
  if (kept != nullptr)
    move_numbers(static_cast<double*>(kept), count, jitter_of_kernels, ++stream_of_kernels);
}

// A table that a test has planted stays below.
template <class K>
struct Rounded {
  static inline const K* below = nullptr;
  static inline K table = {};

  static const K& inner() {
    return below != nullptr ? *below : cpu::native_kernels<K>(cpu::current_isa());
  }

  static void begin(decltype(K::forward) forward) {
    below = cpu::planted_kernels<K>;
    table = inner();
    table.forward = forward;
    cpu::planted_kernels<K> = &table;
  }
  static void end() { cpu::planted_kernels<K> = below; }
};

template <class K>
void rounded_norm(const cpu::NormArgs& a) noexcept {
  Rounded<K>::inner().forward(a);
  if (a.dtype == DType::f64) move_kept(a.rstd, a.rows);
}

void rounded_attention(const cpu::AttentionArgs& a) noexcept {
  Rounded<cpu::AttentionKernels>::inner().forward(a);
  const cpu::AttentionShape& s = a.shape;
  if (a.dtype == DType::f64) move_kept(a.y, s.batch * s.queries * s.heads * s.value_width);
}

}  // namespace

void Jitter::move(Tensor t, std::uint32_t stream) const {
  if (epsilon > 0) move_numbers(t.mutable_data<double>(), t.elements(), *this, stream);
}

RoundedKernels::RoundedKernels(const Jitter& jitter) {
  jitter_of_kernels = jitter;
  stream_of_kernels = kStreamOfKernels;
  Rounded<cpu::AttentionKernels>::begin(rounded_attention);
  Rounded<cpu::LayerNormKernels>::begin(rounded_norm<cpu::LayerNormKernels>);
  Rounded<cpu::RmsNormKernels>::begin(rounded_norm<cpu::RmsNormKernels>);
}

RoundedKernels::~RoundedKernels() {
  Rounded<cpu::AttentionKernels>::end();
  Rounded<cpu::LayerNormKernels>::end();
  Rounded<cpu::RmsNormKernels>::end();
}

}  // namespace heddle::check
