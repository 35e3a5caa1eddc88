#include "tensor/storage.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "tensor/allocator.h"
#include "tensor/engine.h"
#include "tensor/ledger.h"

namespace heddle {

Storage::Storage(std::size_t bytes, Device device)
    : bytes_(bytes), device_(device), purpose_(current_purpose()) {
  if (!device.is_meta()) {
    engine_ = &engine_of(device);
    if (bytes > 0) data_ = engine_->allocate(bytes);
  }
  book(device_, purpose_, booked_bytes(bytes_));
}

Storage::~Storage() {
  if (data_ != nullptr) engine_->release(data_, bytes_);
  if (form_ == nullptr) book(device_, purpose_, -booked_bytes(bytes_));
}

namespace {

// Weights are replaced one after the other. Without this, memory that is kept for tensors to come
// would be as large as the weights that were here. After every single one the next one's form would
// be made of new pages instead of those that were just given back, and the system clears each page
// that it hands out: of a model of 2.2 GB that took longer than reading its file. So it is done
// whenever a thirty-second part of what is held has come together, at most 64 MiB.
void trim_now_and_then(std::size_t bytes) {
  constexpr std::size_t kMostKept = std::size_t{64} << 20;
  static std::atomic<std::size_t> kept{0};
  const auto held =
      static_cast<std::size_t>(std::max<std::int64_t>(memory_use(Device::cpu).live, 0));
  if (kept.fetch_add(bytes) + bytes < std::min(held / 32, kMostKept)) return;
  kept = 0;
  trim_memory();
}

}  // namespace

void Storage::replace(std::shared_ptr<const OtherForm> form) {
  if (form_ != nullptr) return;
  if (data_ != nullptr) engine_->release(data_, bytes_);
  data_ = nullptr;
  if (device_.is_cpu()) trim_now_and_then(bytes_);
  form_ = std::move(form);
  book(device_, purpose_, -booked_bytes(bytes_));
}

// Not to be replaced again: whoever wants the bytes once will want them once more.
void Storage::bring_back() const {
  constant_ = false;
  if (!device_.is_meta() && bytes_ > 0) {
    data_ = engine_->allocate(bytes_);
    form_->write(data_);
  }
  form_ = nullptr;
  book(device_, purpose_, booked_bytes(bytes_));
}

void Storage::set_purpose(Purpose purpose) noexcept {
  if (purpose == purpose_) return;
  const std::int64_t bytes = form_ == nullptr ? booked_bytes(bytes_) : 0;
  book(device_, purpose_, -bytes);
  purpose_ = purpose;
  book(device_, purpose_, bytes);
}

}  // namespace heddle
