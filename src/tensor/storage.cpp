#include "tensor/storage.h"

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
  book(device_, purpose_, -booked_bytes(bytes_));
}

void Storage::set_purpose(Purpose purpose) noexcept {
  if (purpose == purpose_) return;
  book(device_, purpose_, -booked_bytes(bytes_));
  purpose_ = purpose;
  book(device_, purpose_, booked_bytes(bytes_));
}

}  // namespace heddle
