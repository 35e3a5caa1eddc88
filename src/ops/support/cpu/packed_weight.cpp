#include "ops/support/cpu/packed_weight.h"

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "backend/cpu/gemm/product_kernels.h"
#include "backend/meta/cost.h"
#include "ops/support/cpu/matrix.h"
#include "tensor/ledger.h"
#include "tensor/storage.h"

namespace heddle::cpu {

struct PackedKey {
  std::int64_t offset = 0;
  Shape shape;
  Strides strides;
  DType dtype = DType::f32;
  DType operand = DType::f32;
  Isa isa = Isa::generic;

  bool is_of(const TensorImpl& view, DType type, Isa level) const {
    return offset == view.offset && dtype == view.dtype && operand == type && isa == level &&
           shape == view.shape && strides == view.strides;
  }
};

struct PackedEntry {
  PackedKey key;
  std::uint64_t version = 0;
  bool filled = false;
  bool used = false;  // since it was filled
  Tensor packed;
};

namespace {

// The contents of a weight's Storage::derived().
using PackedEntries = std::vector<PackedEntry>;

PackedEntries& entries_of(Storage& storage) {
  std::shared_ptr<void>& slot = storage.derived();
  if (slot == nullptr) slot = std::make_shared<PackedEntries>();
  return *static_cast<PackedEntries*>(slot.get());
}

PackedEntry& entry_for(PackedEntries& entries, const Tensor& b, DType operand) {
  const TensorImpl& view = *b.impl();
  const Isa isa = current_isa();
  for (PackedEntry& e : entries)
    if (e.key.is_of(view, operand, isa)) return e;
  // Only tests change the instruction set; what another one packed is of no more use.
  std::erase_if(entries, [&](const PackedEntry& e) { return e.key.isa != isa; });
  PackedEntry e;
  e.key = {view.offset, view.shape, view.strides, view.dtype, operand, isa};
  const LastingScope lasting;
  e.packed = packed_workspace(operand, view.shape[0], view.shape[1], b);
  return entries.emplace_back(std::move(e));
}

std::mutex& entries_mutex() {
  static std::mutex mutex;
  return mutex;
}

// Up to this size a matrix is packed before threads have met, and a cache holds many until their
// use.
constexpr std::int64_t kSmallElements = 1 << 16;

}  // namespace

Tensor packed_weight(const Tensor& b, DType operand) {
  const std::lock_guard lock(entries_mutex());
  Storage& storage = *b.impl()->storage;
  PackedEntry& entry = entry_for(entries_of(storage), b, operand);
  entry.used = true;
  if (entry.filled && entry.version == storage.version()) return entry.packed;
  const Cost cost{0, static_cast<double>(b.bytes() + entry.packed.bytes())};
  if (meta::charge(b.device(), cost))
    kernels<ProductKernels>().pack_b(operand, b.size(0), b.size(1), matrix_of(b),
                                     entry.packed.mutable_raw());
  entry.version = storage.version();
  entry.filled = true;
  return entry.packed;
}

PackedRefresh::PackedRefresh(std::span<const Tensor> weights) : lock_(entries_mutex()) {
  for (const Tensor& weight : weights) {
    first_.push_back(stale_.size());
    find(weight);
  }
  first_.push_back(stale_.size());
}

void PackedRefresh::find(const Tensor& weight) {
  Storage& storage = *weight.impl()->storage;
  if (storage.derived() == nullptr || !weight.device().is_cpu()) return;
  for (PackedEntry& e : entries_of(storage)) {
    const PackedKey& key = e.key;
    const std::int64_t elements = key.shape[0] * key.shape[1];
    if (!e.filled || !e.used || key.isa != current_isa() || elements > kSmallElements) continue;
    const std::size_t element = size_of(key.dtype);
    const MatrixRef matrix{storage.data() + static_cast<std::size_t>(key.offset) * element,
                           key.dtype, key.strides[0], key.strides[1]};
    stale_.push_back({&e, matrix, &storage});
    e.used = false;
    meta::charge(Device::cpu, {0, static_cast<double>(static_cast<std::size_t>(elements) * element +
                                                      e.packed.bytes())});
  }
}

void PackedRefresh::pack(std::size_t i) noexcept {
  for (std::size_t s = first_[i]; s < first_[i + 1]; ++s) {
    PackedEntry& e = *stale_[s].entry;
    kernels<ProductKernels>().pack_b(e.key.operand, e.key.shape[0], e.key.shape[1],
                                     stale_[s].matrix, e.packed.mutable_raw());
    e.version = stale_[s].storage->version();
  }
}

}  // namespace heddle::cpu
