// Shared by optimisers on CUDA: the update of many arrays in few launches. The list of arrays is
// passed as a kernel argument, so nothing is uploaded and nothing is waited for.
#pragma once

#include <cmath>

#include "backend/cuda/products/prepared.h"
#include "backend/cuda/vectors.cuh"
#include "base/divide.h"

namespace heddle::cuda {

// A weight, its gradient and what an optimiser keeps of it.
template <class T>
struct UpdateArray {
  T* weight;
  const T* grad;
  T* first;
  T* second;
  bf16* copy;  // of the weight; null: there is none
  std::int64_t count;
  std::int64_t first_block;
  T decay;  // what the parameter's weight decay comes to
};

// All that fits into the 4 KB that every kernel may have as arguments.
inline constexpr int kUpdateArrays = 56;

template <class T>
struct UpdateTable {
  int arrays = 0;
  UpdateArray<T> all[kUpdateArrays];
};
static_assert(sizeof(UpdateTable<double>) < 3800);

// One number that multiplies all gradients; null: 1.
struct UpdateScale {
  const void* number = nullptr;
  bool is_double = false;

  explicit UpdateScale(const Tensor& scale)
      : number(in<void>(scale)), is_double(scale.defined() && scale.dtype() == DType::f64) {}

  __device__ double value() const {
    if (number == nullptr) return 1;
    return is_double ? *static_cast<const double*>(number) : *static_cast<const float*>(number);
  }
};

inline constexpr std::int64_t kUpdateElements = 4096;  // of one block

// kStates: how many arrays the optimiser keeps. Where the scale is not finite, nothing changes: a
// copy that was right stays right.
template <class T, int kStates, class Update>
__global__ void __launch_bounds__(kThreads)
    update_arrays(const __grid_constant__ UpdateTable<T> table, const UpdateScale scale,
                  const Update update) {
  constexpr int kEach = kVector<T>;
  const double number = scale.value();
  if (!isfinite(number)) return;
  const T factor = static_cast<T>(number);
  int low = 0, high = table.arrays;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (table.all[middle].first_block <= blockIdx.x)
      low = middle;
    else
      high = middle;
  }
  const UpdateArray<T>& a = table.all[low];
  T* const weight = a.weight;
  const T* const grad = a.grad;
  T* const first = a.first;
  T* const second = a.second;
  bf16* const copy = a.copy;
  const std::int64_t count = a.count;
  const T decay = a.decay;
  const std::int64_t begin = (blockIdx.x - a.first_block) * kUpdateElements;
  const std::uintptr_t places =
      reinterpret_cast<std::uintptr_t>(weight) | reinterpret_cast<std::uintptr_t>(grad) |
      reinterpret_cast<std::uintptr_t>(first) | reinterpret_cast<std::uintptr_t>(second) |
      reinterpret_cast<std::uintptr_t>(copy);
  const bool whole = places % 16 == 0;
#pragma unroll
  for (std::int64_t j = 0; j < kUpdateElements / kEach; j += kThreads) {
    const std::int64_t at = begin + (j + threadIdx.x) * kEach;
    if (whole && at + kEach <= count) {
      Values<T> w = load(weight + at), m = {}, v = {};
      const Values<T> g = load(grad + at);
      if constexpr (kStates > 0) m = load(first + at);
      if constexpr (kStates > 1) v = load(second + at);
#pragma unroll
      for (int e = 0; e < kEach; ++e) update(g.v[e] * factor, decay, w.v[e], m.v[e], v.v[e]);
      store(weight + at, w);
      if constexpr (kStates > 0) store(first + at, m);
      if constexpr (kStates > 1) store(second + at, v);
      if constexpr (kEach == 4)
        if (copy != nullptr) {
          uint2 words;
          asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(words.x) : "f"(w.v[1]), "f"(w.v[0]));
          asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(words.y) : "f"(w.v[3]), "f"(w.v[2]));
          *reinterpret_cast<uint2*>(copy + at) = words;
        }
      continue;
    }
    for (std::int64_t i = at; i < count && i < at + kEach; ++i) {
      T m = 0, v = 0;
      if constexpr (kStates > 0) m = first[i];
      if constexpr (kStates > 1) v = second[i];
      update(grad[i] * factor, decay, weight[i], m, v);
      if constexpr (kStates > 0) first[i] = m;
      if constexpr (kStates > 1) second[i] = v;
      if (copy != nullptr) copy[i] = narrow<bf16>(weight[i]);
    }
  }
}

// Arrays of one type, launched whenever the table is full and at the end.
template <class T, int kStates, class Update>
class Updates {
 public:
  Updates(const char* name, const Update& update, const Tensor& scale, cudaStream_t stream)
      : name_(name), update_(update), scale_(scale), stream_(stream) {}

  void add(UpdateArray<T> array) {
    if (array.count == 0) return;
    if (table_.arrays == kUpdateArrays) run();
    array.first_block = blocks_;
    table_.all[table_.arrays++] = array;
    blocks_ += ceil_div(array.count, kUpdateElements);
  }

  void run() {
    if (blocks_ > 0) {
      update_arrays<T, kStates>
          <<<static_cast<unsigned>(blocks_), kThreads, 0, stream_>>>(table_, scale_, update_);
      check_launch(name_);
    }
    table_.arrays = 0;
    blocks_ = 0;
  }

 private:
  const char* name_;
  Update update_;
  UpdateScale scale_;
  cudaStream_t stream_;
  UpdateTable<T> table_;
  std::int64_t blocks_ = 0;
};

}  // namespace heddle::cuda
