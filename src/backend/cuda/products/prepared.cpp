#include "backend/cuda/products/prepared.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "backend/copy.call.h"
#include "backend/routine.h"
#include "tensor/ledger.h"
#include "tensor/storage.h"

namespace heddle::cuda {

namespace {

// Which elements of a storage a copy is of: a stretch of it, or a view with gaps.
struct CopyKey {
  std::int64_t offset = 0;
  Shape shape;
  Strides strides;
  DType dtype = DType::f32;
  DType operand = DType::f32;

  bool operator==(const CopyKey&) const = default;
};

struct CopyEntry {
  CopyKey key;
  std::uint64_t version = 0;
  bool filled = false;
  Tensor copy;
};

// The contents of a weight's Storage::derived().
using CopyEntries = std::vector<CopyEntry>;

std::mutex& copies_mutex() {
  static std::mutex mutex;
  return mutex;
}

CopyEntries& copies_of(Storage& storage) {
  std::shared_ptr<void>& slot = storage.derived();
  if (slot == nullptr) slot = std::make_shared<CopyEntries>();
  return *static_cast<CopyEntries*>(slot.get());
}

// Whether the elements of a matrix follow each other without gaps, row by row or column by column.
bool without_gaps(const TensorImpl& b) {
  const std::int64_t rows = b.shape[0], columns = b.shape[1];
  const bool by_rows =
      (columns == 1 || b.strides[1] == 1) && (rows == 1 || b.strides[0] == columns);
  const bool by_columns =
      (rows == 1 || b.strides[0] == 1) && (columns == 1 || b.strides[1] == rows);
  return by_rows || by_columns;
}

CopyKey stretch(const TensorImpl& b, DType operand) {
  return {b.offset, Shape{b.elements}, Strides{1}, b.dtype, operand};
}

CopyEntry& entry_for(CopyEntries& entries, const CopyKey& key, Device device) {
  const auto found = std::ranges::find(entries, key, &CopyEntry::key);
  if (found != entries.end()) return *found;
  const PurposeScope scope(Purpose::workspace);
  const LastingScope lasting;
  CopyEntry e;
  e.key = key;
  e.copy = Tensor::empty(key.shape, key.operand, device);
  return entries.emplace_back(std::move(e));
}

}  // namespace

Tensor prepared_weight(const Tensor& b, DType operand) {
  if (b.dtype() == operand) return b;
  const std::lock_guard lock(copies_mutex());
  const TensorImpl& impl = *b.impl();
  const bool whole = without_gaps(impl);
  const CopyKey key = whole ? stretch(impl, operand)
                            : CopyKey{impl.offset, impl.shape, impl.strides, impl.dtype, operand};
  CopyEntry& entry = entry_for(copies_of(*impl.storage), key, b.device());
  if (!entry.filled || entry.version != impl.storage->version()) {
    const Tensor source = selected(impl, key.shape, key.strides, key.offset - impl.offset);
    backend::launch(backend::CopyCall{source, entry.copy});
    entry.version = impl.storage->version();
    entry.filled = true;
  }
  if (!whole) return entry.copy;
  return rearranged(*entry.copy.impl(), impl.shape, impl.strides);
}

FollowingCopy::FollowingCopy(const Tensor& weight) : weight_(weight) {
  const std::lock_guard lock(copies_mutex());
  const TensorImpl& impl = *weight.impl();
  if (impl.dtype != DType::f32 || impl.storage->derived() == nullptr) return;
  const CopyEntries& entries = copies_of(*impl.storage);
  const auto found = std::ranges::find(entries, stretch(impl, DType::bf16), &CopyEntry::key);
  if (found == entries.end() || !found->filled || found->version != impl.storage->version()) return;
  data_ = reinterpret_cast<bf16*>(device_address(found->copy));
}

void FollowingCopy::written() const {
  if (data_ == nullptr) return;
  const std::lock_guard lock(copies_mutex());
  const TensorImpl& impl = *weight_.impl();
  CopyEntries& entries = copies_of(*impl.storage);
  const auto found = std::ranges::find(entries, stretch(impl, DType::bf16), &CopyEntry::key);
  if (found != entries.end()) found->version = impl.storage->version();
}

}  // namespace heddle::cuda
