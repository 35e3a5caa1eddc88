#include "backend/cuda/cublaslt/lt.h"

#include <algorithm>
#include <array>
#include <compare>
#include <map>
#include <mutex>
#include <span>

#include "backend/cuda/cublaslt/lt_choices.h"
#include "backend/cuda/cublaslt/lt_library.h"
#include "base/divide.h"
#include "heddle/device.h"

namespace heddle::cuda {

namespace {

using lt::Library;

// A matrix as the library sees it: column by column. Row by row is that of the transposed one.
struct Stored {
  bool taken = false;       // its rows or columns are dense and begin at multiples of 16 bytes
  bool by_columns = false;  // instead of by rows
  std::int64_t stride = 0;  // between them

  auto operator<=>(const Stored&) const = default;
};

constexpr std::int64_t kEight = 8;  // elements of bf16 in 16 bytes

bool on_sixteen(const void* p) { return reinterpret_cast<std::uintptr_t>(p) % 16 == 0; }

// Where there is only one row (or column), it may be as far from the next as we like.
std::int64_t stride_of(std::int64_t count, std::int64_t stride, std::int64_t length) {
  return count == 1 ? round_up(length, kEight) : stride;
}

Stored stored(const ProductOperand& x, std::int64_t rows, std::int64_t columns) {
  Stored s;
  if (!on_sixteen(x.data)) return s;
  const std::int64_t by_rows = stride_of(rows, x.row_stride, columns);
  const std::int64_t by_columns = stride_of(columns, x.col_stride, rows);
  const auto fits = [](std::int64_t stride, std::int64_t length) {
    return stride >= length && stride % kEight == 0;
  };
  if ((columns == 1 || x.col_stride == 1) && fits(by_rows, columns))
    s = {true, false, by_rows};
  else if ((rows == 1 || x.row_stride == 1) && fits(by_columns, rows))
    s = {true, true, by_columns};
  return s;
}

enum class LtBias : std::uint8_t { none, f32, bf16 };

// All that a product is prepared from.
struct LtKey {
  int device = 0;
  std::int64_t m = 0, n = 0, k = 0;
  Stored a, b;
  std::int64_t y_stride = 0;
  bool y_f32 = false, adds = false;
  LtBias bias = LtBias::none;
  std::uint32_t alignment = 16;
  std::size_t room = 0;

  auto operator<=>(const LtKey&) const = default;
};

struct LtPlan {
  lt::Operation operation = nullptr;
  lt::Layout a = nullptr, b = nullptr, y = nullptr;
  lt::Algorithm algorithm{};
  bool usable = false;
};

struct LtState {
  std::mutex mutex;
  std::array<lt::Handle, kDevicesOfAKind> handles{};
  std::map<LtKey, LtPlan> plans;
};

LtState& state() {
  static LtState& one = *new LtState;  // outlives static tensors
  return one;
}

template <class T>
bool set(lt::Status (*setter)(void*, int, const void*, std::size_t), void* what, int attribute,
         const T& value) {
  // A value may be a pointer itself: the library reads the bytes of either.
  return setter(what, attribute, static_cast<const void*>(&value), sizeof value) == 0;
}

// The library computes yᵀ = bᵀ·aᵀ, column by column: its first operand is b.
bool describe(const Library& l, const LtKey& key, LtPlan& plan) {
  const auto u = [](std::int64_t v) { return static_cast<std::uint64_t>(v); };
  const auto layout = [&](lt::Layout& to, const Stored& s, std::int64_t rows,
                          std::int64_t columns) {
    const std::int64_t length = s.by_columns ? rows : columns,
                       count = s.by_columns ? columns : rows;
    return l.layout_create(&to, CUDA_R_16BF, u(length), u(count), s.stride) == 0;
  };
  if (l.operation_create(&plan.operation, lt::kComputeF32, CUDA_R_32F) != 0) return false;
  if (!layout(plan.b, key.b, key.k, key.n) || !layout(plan.a, key.a, key.m, key.k)) return false;
  if (l.layout_create(&plan.y, key.y_f32 ? CUDA_R_32F : CUDA_R_16BF, u(key.n), u(key.m),
                      key.y_stride) != 0)
    return false;
  if (key.b.by_columns && !set(l.operation_set, plan.operation, lt::kTransposeA, lt::kTransposed))
    return false;
  if (key.a.by_columns && !set(l.operation_set, plan.operation, lt::kTransposeB, lt::kTransposed))
    return false;
  const std::int32_t bias_type = key.bias == LtBias::bf16 ? CUDA_R_16BF : CUDA_R_32F;
  return key.bias == LtBias::none ||
         (set(l.operation_set, plan.operation, lt::kEpilogue, lt::kEpilogueBias) &&
          set(l.operation_set, plan.operation, lt::kBiasType, bias_type));
}

LtShape shape_of(const LtKey& key) {
  LtShape s;
  s.role = key.a.by_columns   ? LtRole::weight_gradient
           : key.b.by_columns ? LtRole::forward
                              : LtRole::input_gradient;
  s.m = key.m;
  s.n = key.n;
  s.k = key.k;
  s.adds = key.adds;
  return s;
}

LtChoice choice_of(const Library& l, const lt::Algorithm& algorithm) {
  LtChoice c;
  std::size_t written = 0;
  (void)l.algorithm_get(&algorithm, lt::kTile, &c.tile, sizeof c.tile, &written);
  (void)l.algorithm_get(&algorithm, lt::kCustomOption, &c.custom, sizeof c.custom, &written);
  (void)l.algorithm_get(&algorithm, lt::kClusterShape, &c.cluster, sizeof c.cluster, &written);
  return c;
}

// The first of the results, or the one that was measured to be faster, where it is among them.
const lt::Heuristic& chosen(const Library& l, const LtKey& key,
                            std::span<const lt::Heuristic> results) {
  const LtChoice* const wanted = measured_choice(shape_of(key));
  if (wanted == nullptr) return results.front();
  for (const lt::Heuristic& r : results)
    if (r.status == 0 && r.room_bytes <= key.room && choice_of(l, r.algorithm) == *wanted) return r;
  return results.front();
}

bool choose(const Library& l, lt::Handle handle, const LtKey& key, LtPlan& plan) {
  lt::Preference preference = nullptr;
  if (l.preference_create(&preference) != 0) return false;
  bool right = set(l.preference_set, preference, lt::kRoomBytes, key.room) &&
               set(l.preference_set, preference, lt::kReductionMask, lt::kReduceInComputeType);
  for (int i = lt::kAlignmentA; i <= lt::kAlignmentD; ++i)
    right = right && set(l.preference_set, preference, i, key.alignment);
  std::array<lt::Heuristic, 10> results{};
  int found = 0;
  right = right &&
          l.heuristic(handle, plan.operation, plan.b, plan.a, plan.y, plan.y, preference,
                      static_cast<int>(results.size()), results.data(), &found) == 0 &&
          found > 0;
  l.preference_destroy(preference);
  if (!right) return false;
  const lt::Heuristic& result =
      chosen(l, key, std::span(results).first(static_cast<std::size_t>(found)));
  plan.algorithm = result.algorithm;
  return result.status == 0 && result.room_bytes <= key.room;
}

// Of the mutex's owner. Descriptions of products that the library refuses stay too: they are few.
const LtPlan& plan_for(const Library& l, LtState& s, const LtKey& key) {
  const auto [place, fresh] = s.plans.try_emplace(key);
  LtPlan& plan = place->second;
  if (!fresh) return plan;
  lt::Handle& handle = s.handles[static_cast<std::size_t>(key.device)];
  if (handle == nullptr && l.create(&handle) != 0) handle = nullptr;
  plan.usable = handle != nullptr && describe(l, key, plan) && choose(l, handle, key, plan);
  return plan;
}

// The common alignment of all addresses, up to 256. Blocks of the GPU's memory begin there, so it
// follows from the shapes of tensors and views, and the library's choice with it.
std::uint32_t alignment_of(const Product& p) {
  std::uintptr_t all = 256;
  for (const void* address : {p.a.data, p.b.data, static_cast<const void*>(p.y), p.residual})
    all |= reinterpret_cast<std::uintptr_t>(address);
  return static_cast<std::uint32_t>(all & (~all + 1));
}

}  // namespace

std::size_t lt_room(std::int64_t m, std::int64_t n) {
  constexpr std::size_t kMost = std::size_t{32} << 20, kParts = 8;  // of sums, in f32
  const auto count = static_cast<std::size_t>(m) * static_cast<std::size_t>(n);
  return std::min(kMost, kParts * sizeof(float) * count);
}

LtResult lt_multiply(const Product& p, const Room& room, int device, cudaStream_t stream) {
  if (p.dtype != DType::bf16 || p.batches != 1 || p.m * p.n * p.k == 0) return LtResult::not_taken;
  const Library* const l = lt::library();
  if (l == nullptr) return LtResult::not_taken;
  LtKey key;
  key.device = device;
  key.m = p.m;
  key.n = p.n;
  key.k = p.k;
  key.a = stored(p.a, p.m, p.k);
  key.b = stored(p.b, p.k, p.n);
  key.y_f32 = p.y_dtype == DType::f32;
  key.y_stride = stride_of(p.m, p.row_stride(), p.n);
  const std::int64_t whole = key.y_f32 ? kEight / 2 : kEight;
  if (!key.a.taken || !key.b.taken || key.y_stride % whole != 0 || !on_sixteen(p.y) ||
      !on_sixteen(p.residual))
    return LtResult::not_taken;
  key.adds = p.residual != nullptr;
  key.alignment = alignment_of(p);
  key.room = room.bytes;
  LtState& s = state();
  const std::lock_guard lock(s.mutex);
  const LtPlan* plan = nullptr;
  const auto with = [&](const void* bias, LtBias type) {
    if (bias == nullptr || (plan != nullptr && plan->usable)) return;
    key.bias = type;
    plan = &plan_for(*l, s, key);
    if (plan->usable && !set(l->operation_set, plan->operation, lt::kBiasPointer, bias))
      plan = nullptr;
  };
  with(p.bias, LtBias::f32);  // as exact as sums are; it takes it where y is f32
  with(p.narrow_bias, LtBias::bf16);
  if (plan == nullptr || !plan->usable) {
    key.bias = LtBias::none;
    plan = &plan_for(*l, s, key);
  }
  if (!plan->usable) return LtResult::not_taken;
  const float one = 1, beta = key.adds ? 1.0F : 0.0F;
  const void* const before = key.adds ? p.residual : p.y;
  if (l->multiply(s.handles[static_cast<std::size_t>(device)], plan->operation, &one, p.b.data,
                  plan->b, p.a.data, plan->a, &beta, before, plan->y, p.y, plan->y,
                  &plan->algorithm, room.data, room.bytes, stream) != 0)
    return LtResult::not_taken;
  const bool left = p.bias != nullptr && key.bias == LtBias::none;
  return left ? LtResult::without_bias : LtResult::done;
}

std::string lt_version() {
  const Library* const l = lt::library();
  if (l == nullptr) return {};
  const std::size_t v = l->version();
  return std::to_string(v / 10000) + "." + std::to_string(v / 100 % 100) + "." +
         std::to_string(v % 100);
}

}  // namespace heddle::cuda
