#include "check/rounding.h"

#include <algorithm>
#include <vector>

#include "backend/cpu/kernels.h"
#include "heddle/random.h"
#include "ops/norm/norm.kernels.h"
#include "tensor/storage.h"

namespace heddle::check {

namespace {

constexpr std::uint64_t kSeedOfRounding = 40961;
constexpr std::uint32_t kStreamOfOps = 1u << 20;  // after those of tensors

void move_numbers(double* v, std::int64_t count, const Jitter& jitter, std::uint32_t stream) {
  for (std::int64_t i = 0; i < count; i += 4) {
    const PhiloxBlock bits =
        philox({kSeedOfRounding, jitter.draw, stream}, static_cast<std::uint64_t>(i / 4));
    for (std::int64_t k = 0; k < std::min<std::int64_t>(4, count - i); ++k)
      v[i + k] *=
          1 + jitter.epsilon *
                  ((static_cast<double>(bits[static_cast<std::size_t>(k)]) + 0.5) * 0x1p-31 - 1);
  }
}

// Kernels are plain functions, so their state is global. One check runs at a time: it sets the
// instruction set of the whole process as well.
Jitter jitter_of_ops;
std::uint32_t stream_of_ops = 0;

// The result of an op, before anything reads it: as if its kernel had written these numbers, so a
// tape does not have to refuse it as a change. In rows, because several tensors may share theirs.
void move_made(const Tensor& t) {
  if (!t.defined() || t.dtype() != DType::f64 || t.elements() < 2) return;
  auto* first = const_cast<double*>(t.data<double>());
  if (t.contiguous()) return move_numbers(first, t.elements(), jitter_of_ops, ++stream_of_ops);
  const int last = t.rank() - 1;
  if (t.strides()[last] != 1) return;  // nothing that an op makes
  for (std::int64_t row = 0; row < t.elements() / t.size(last); ++row) {
    std::int64_t offset = 0, rest = row;
    for (int dim = last; dim-- > 0; rest /= t.size(dim))
      offset += rest % t.size(dim) * t.strides()[dim];
    move_numbers(first + offset, t.size(last), jitter_of_ops, ++stream_of_ops);
  }
}

const Storage* storage_of(const Tensor& t) {
  return t.defined() ? t.impl()->storage.get() : nullptr;
}

bool among(const std::vector<Tensor>& tensors, const Tensor& t) {
  return std::ranges::any_of(
      tensors, [&](const Tensor& other) { return storage_of(other) == storage_of(t); });
}

// A table that a test has planted stays below.
template <class K>
struct Rounded {
  static inline const K* below = nullptr;
  static inline K table = {};

  static const K& inner() {
    return below != nullptr ? *below : cpu::native_kernels<K>(cpu::current_isa());
  }

  static void norm(const cpu::NormArgs& a) noexcept {
    inner().forward(a);
    if (a.dtype == DType::f64 && a.rstd != nullptr)
      move_numbers(static_cast<double*>(a.rstd), a.rows, jitter_of_ops, ++stream_of_ops);
  }

  static void begin() {
    below = cpu::planted_kernels<K>;
    table = inner();
    table.forward = norm;
    cpu::planted_kernels<K> = &table;
  }
  static void end() { cpu::planted_kernels<K> = below; }
};

}  // namespace

void Jitter::move(Tensor t, std::uint32_t stream) const {
  if (epsilon > 0) move_numbers(t.mutable_data<double>(), t.elements(), *this, stream);
}

RoundedOps::RoundedOps(const Jitter& jitter)
    : observe_([this](const autograd::OpEvent& event) {
        event.backward ? backward(event) : forward(event);
      }) {
  jitter_of_ops = jitter;
  stream_of_ops = kStreamOfOps;
  Rounded<cpu::NormKernels>::begin();
}

RoundedOps::~RoundedOps() { Rounded<cpu::NormKernels>::end(); }

void RoundedOps::forward(const autograd::OpEvent& event) {
  bool view = true;
  for (const Tensor& made : event.values)
    if (!among(event.inputs, made)) {
      view = false;
      move_made(made);
    }
  if (view)
    views_.insert(event.number);
  else
    views_.erase(event.number);  // of a tape before
}

void RoundedOps::backward(const autograd::OpEvent& event) {
  if (views_.contains(event.number)) return;
  std::vector<Tensor> moved;
  for (std::size_t i = 0; i < event.values.size(); ++i) {
    if (event.inputs[i].defined() || among(moved, event.values[i])) continue;  // a leaf; the same
    move_made(event.values[i]);
    moved.push_back(event.values[i]);
  }
}

}  // namespace heddle::check
