#include "ops/support/cpu/packed_weight.h"

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "backend/cpu/gemm/product_kernels.h"
#include "backend/cpu/threads.h"
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
  Operands operands = DType::f32;
  Isa isa = Isa::generic;

  bool is_of(const TensorImpl& view, Operands types, Isa level) const {
    return offset == view.offset && dtype == view.dtype && operands == types && isa == level &&
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

PackedEntry& entry_for(PackedEntries& entries, const Tensor& b, Operands operands) {
  const TensorImpl& view = *b.impl();
  const Isa isa = current_isa();
  for (PackedEntry& e : entries)
    if (e.key.is_of(view, operands, isa)) return e;
  // Only tests change the instruction set; what another one packed is of no more use.
  std::erase_if(entries, [&](const PackedEntry& e) { return e.key.isa != isa; });
  PackedEntry e;
  e.key = {view.offset, view.shape, view.strides, view.dtype, operands, isa};
  const LastingScope lasting;
  e.packed = packed_workspace(operands, view.shape[0], view.shape[1], b);
  return entries.emplace_back(std::move(e));
}

std::mutex& entries_mutex() {
  static std::mutex mutex;
  return mutex;
}

// Up to this size a matrix is packed before threads have met, and a cache holds many until their
// use.
constexpr std::int64_t kSmallElements = 1 << 16;

// A weight [N, K] as the columns of its packed form.
class PackedForm final : public OtherForm {
 public:
  PackedForm(const PackedKey& key, Tensor packed)
      : operands_(key.operands),
        isa_(key.isa),
        k_(key.shape[0]),
        n_(key.shape[1]),
        packed_(std::move(packed)) {}

  void write(std::byte* to) const override {
    constexpr std::int64_t kColumns = 64;  // that a thread takes at a time
    const std::size_t row = static_cast<std::size_t>(k_) * size_of(operands_.b);
    parallel_ranges(n_, kColumns, [&](std::int64_t begin, std::int64_t end) {
      unpack(begin, end, to + static_cast<std::size_t>(begin) * row);
    });
  }
  void unpack(std::int64_t begin, std::int64_t end, void* to) const {
    unpack_columns(isa_, operands_, {k_, n_, packed_.raw()}, begin, end, to);
  }
  std::int64_t rows() const { return n_; }

 private:
  Operands operands_;
  Isa isa_;
  std::int64_t k_, n_;
  Tensor packed_;
};

// Is b all of a row-major weight, transposed, that is the same number for number when packed?
bool replaces(const PackedKey& key, const Storage& storage) {
  const std::int64_t k = key.shape[0], n = key.shape[1];
  return storage.constant() && storage.replaced() == nullptr && key.dtype == key.operands.b &&
         key.offset == 0 && key.strides[0] == 1 && key.strides[1] == k &&
         storage.bytes() == static_cast<std::size_t>(k * n) * size_of(key.dtype);
}

// The packed form takes the place of the weight, also on the ledger.
void replace(const PackedEntry& entry, Storage& storage) {
  entry.packed.impl()->storage->set_purpose(storage.purpose());
  storage.replace(std::make_shared<PackedForm>(entry.key, entry.packed));
}

template <class Id>
void copy_rows(const PackedForm& form, const Tensor& ids, Tensor& rows) {
  const Id* id = ids.data<Id>();
  auto* to = static_cast<std::byte*>(rows.mutable_raw());
  const std::size_t bytes = static_cast<std::size_t>(rows.size(1)) * size_of(rows.dtype());
  parallel_ranges(ids.elements(), 8, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      form.unpack(id[i], id[i] + 1, to + static_cast<std::size_t>(i) * bytes);
  });
}

}  // namespace

PackedRows packed_rows(const Tensor& weight) {
  const TensorImpl& view = *weight.impl();
  const auto* form = dynamic_cast<const PackedForm*>(view.storage->replaced());
  const bool whole = form != nullptr && view.offset == 0 && view.contiguous &&
                     view.shape.rank() == 2 && view.shape[0] == form->rows();
  return {whole ? form : nullptr};
}

void PackedRows::copy(const Tensor& ids, Tensor& rows) const {
  const auto& packed = static_cast<const PackedForm&>(*form);
  if (ids.dtype() == DType::i32)
    copy_rows<std::int32_t>(packed, ids, rows);
  else
    copy_rows<std::int64_t>(packed, ids, rows);
}

Tensor packed_weight(const Tensor& b, Operands operands) {
  const std::lock_guard lock(entries_mutex());
  Storage& storage = *b.impl()->storage;
  PackedEntry& entry = entry_for(entries_of(storage), b, operands);
  entry.used = true;
  if (entry.filled && entry.version == storage.version()) return entry.packed;
  const Cost cost{0, static_cast<double>(b.bytes() + entry.packed.bytes())};
  if (meta::charge(b.device(), cost))
    kernels<ProductKernels>().pack_b(operands, b.size(0), b.size(1), matrix_of(b),
                                     entry.packed.mutable_raw());
  entry.version = storage.version();
  entry.filled = true;
  if (replaces(entry.key, storage)) replace(entry, storage);
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
    kernels<ProductKernels>().pack_b(e.key.operands, e.key.shape[0], e.key.shape[1],
                                     stale_[s].matrix, e.packed.mutable_raw());
    e.version = stale_[s].storage->version();
  }
}

}  // namespace heddle::cpu
