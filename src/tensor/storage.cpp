#include "tensor/storage.h"

#include "heddle/error.h"
#include "tensor/allocator.h"
#include "tensor/ledger.h"

namespace heddle {

Storage::Storage(std::size_t bytes, Device device)
    : bytes_(bytes), device_(device), purpose_(current_purpose()) {
  switch (device) {
    case Device::cpu:
      if (bytes > 0) data_ = allocate_block(bytes);
      break;
    case Device::meta: break;
    case Device::cuda:
      fail(ErrorCode::unsupported, "tensor", "this build has no CUDA backend", "cpu or meta",
           "cuda");
  }
  book(device_, purpose_, booked_bytes(bytes_));
}

Storage::~Storage() {
  if (data_ != nullptr) release_block(data_, bytes_);
  book(device_, purpose_, -booked_bytes(bytes_));
}

void Storage::set_purpose(Purpose purpose) noexcept {
  if (purpose == purpose_) return;
  book(device_, purpose_, -booked_bytes(bytes_));
  purpose_ = purpose;
  book(device_, purpose_, booked_bytes(bytes_));
}

}  // namespace heddle
