#include "ops/support/product.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include "backend/cpu/threads.h"
#include "backend/meta/cost.h"
#include "tensor/storage.h"

namespace heddle::cpu {

namespace {

std::size_t packed_bytes(DType operand, std::int64_t k, std::int64_t n) {
  return gemm_path(current_isa(), operand).packed_bytes(k, n);
}

void pack_b(DType operand, std::int64_t k, std::int64_t n, const MatrixRef& b, void* dst) {
  gemm_path(current_isa(), operand).pack_b(k, n, b, dst);
}

void run(DType operand, const GemmJob& job) { gemm_path(current_isa(), operand).run(job); }

void run_all(DType operand, std::span<const GemmJob> jobs, const Beside* beside) {
  gemm_path(current_isa(), operand).run_all(jobs, beside);
}

}  // namespace

template <>
const ProductKernels& native_kernels<ProductKernels>(Isa) {
  static constexpr ProductKernels table{packed_bytes, pack_b, run, run_all};
  return table;
}

}  // namespace heddle::cpu

namespace heddle::ops {

struct PackedKey {
  std::int64_t offset = 0;
  Shape shape;
  Strides strides;
  DType dtype = DType::f32;
  DType operand = DType::f32;
  cpu::Isa isa = cpu::Isa::generic;

  bool operator==(const PackedKey&) const = default;
};

struct PackedEntry {
  PackedKey key;
  std::uint64_t version = 0;
  bool filled = false;
  bool used = false;  // since it was filled
  Tensor packed;
};

namespace {

// What Storage::derived() of a weight holds.
using PackedEntries = std::vector<PackedEntry>;

PackedEntries& entries_of(Storage& storage) {
  std::shared_ptr<void>& slot = storage.derived();
  if (slot == nullptr) slot = std::make_shared<PackedEntries>();
  return *static_cast<PackedEntries*>(slot.get());
}

PackedEntry& entry_for(PackedEntries& entries, const PackedKey& key, const Tensor& b) {
  const auto found = std::ranges::find(entries, key, &PackedEntry::key);
  if (found != entries.end()) return *found;
  // Only tests change the instruction set; what another one packed is of no more use.
  std::erase_if(entries, [&](const PackedEntry& e) { return e.key.isa != key.isa; });
  PackedEntry e;
  e.key = key;
  e.packed = packed_workspace(key.operand, key.shape[0], key.shape[1], b);
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

cpu::MatrixRef matrix_of(const Tensor& x) {
  return {x.raw(), x.dtype(), x.strides()[x.rank() - 2], x.strides()[x.rank() - 1]};
}

Tensor packed_workspace(DType operand, std::int64_t k, std::int64_t n, const Tensor& like,
                        std::int64_t count) {
  const PurposeScope scope(Purpose::workspace);
  const std::size_t bytes = cpu::kernels<cpu::ProductKernels>().packed_bytes(operand, k, n);
  return Tensor::empty({count, static_cast<std::int64_t>(bytes)}, DType::u8, like.device());
}

cpu::GemmJob transposed_job(const Tensor& a, const Tensor& b, Tensor& packed, Tensor& c) {
  const Tensor columns = views::transpose(a, 0, 1);  // [N, rows]
  cpu::GemmJob job;
  job.m = a.size(1);
  job.n = b.size(1);
  job.k = b.size(0);
  job.a = matrix_of(columns);
  job.b = matrix_of(b);
  job.room_for_b = packed.mutable_raw();
  job.c = c.mutable_raw();
  job.c_dtype = c.dtype();
  job.c_row_stride = job.n;
  return job;
}

void transposed_product(const Tensor& a, const Tensor& b, Tensor& packed, Tensor& c, bool add) {
  cpu::GemmJob job = transposed_job(a, b, packed, c);
  job.epilogue.accumulate = add;
  cpu::kernels<cpu::ProductKernels>().run(b.dtype(), job);
}

Tensor packed_weight(const Tensor& b, DType operand) {
  const std::lock_guard lock(entries_mutex());
  const TensorImpl& impl = *b.impl();
  Storage& storage = *impl.storage;
  const PackedKey key{impl.offset, impl.shape, impl.strides,
                      impl.dtype,  operand,    cpu::current_isa()};
  PackedEntry& entry = entry_for(entries_of(storage), key, b);
  entry.used = true;
  if (entry.filled && entry.version == storage.version()) return entry.packed;
  const Cost cost{0, static_cast<double>(b.bytes() + entry.packed.bytes())};
  if (meta::charge(b.device(), cost))
    cpu::kernels<cpu::ProductKernels>().pack_b(operand, b.size(0), b.size(1), matrix_of(b),
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
  if (storage.derived() == nullptr || weight.device() == Device::meta) return;
  for (PackedEntry& e : entries_of(storage)) {
    const PackedKey& key = e.key;
    const std::int64_t elements = key.shape[0] * key.shape[1];
    if (!e.filled || !e.used || key.isa != cpu::current_isa() || elements > kSmallElements)
      continue;
    const std::size_t element = size_of(key.dtype);
    const cpu::MatrixRef matrix{storage.data() + static_cast<std::size_t>(key.offset) * element,
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
    cpu::kernels<cpu::ProductKernels>().pack_b(e.key.operand, e.key.shape[0], e.key.shape[1],
                                               stale_[s].matrix, e.packed.mutable_raw());
    e.version = stale_[s].storage->version();
  }
}

void PackedRefresh::pack_all() noexcept {
  cpu::parallel_chunks(static_cast<std::int64_t>(first_.size()) - 1,
                       [&](std::int64_t i) { pack(static_cast<std::size_t>(i)); });
}

}  // namespace heddle::ops
