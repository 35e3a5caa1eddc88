// Storage: the bytes of tensors; and TensorImpl: what a Tensor handle points to.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "heddle/device.h"
#include "heddle/memory.h"
#include "heddle/tensor.h"

namespace heddle {

class Engine;

// A backend's own form of all that a storage holds, from which it can be made again.
class OtherForm {
 public:
  virtual ~OtherForm() = default;
  OtherForm() = default;
  OtherForm(const OtherForm&) = delete;
  OtherForm& operator=(const OtherForm&) = delete;
  virtual void write(std::byte* to) const = 0;  // the bytes of the storage
};

class Storage {
 public:
  Storage(std::size_t bytes, Device device);  // contents undefined; throws Error when refused
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  // The device's own address, null on the meta device: only the CPU's may be dereferenced. Bytes
  // that another form has replaced are made again.
  std::byte* data() const {
    if (form_ != nullptr) bring_back();
    return data_;
  }
  Engine& engine() const noexcept { return *engine_; }  // of any device but meta
  std::size_t bytes() const noexcept { return bytes_; }
  Device device() const noexcept { return device_; }
  Purpose purpose() const noexcept { return purpose_; }
  void set_purpose(Purpose purpose) noexcept;  // moves its bytes to another account

  std::uint64_t version() const noexcept { return version_; }
  void bump_version() noexcept { ++version_; }

  // Something a backend derived from these bytes and wants to keep as long as they do not change,
  // such as a weight packed for the matrix kernels. The owner checks the version itself.
  std::shared_ptr<void>& derived() noexcept { return derived_; }

  // Nobody is going to change these bytes: weights of a model that is used and not trained. A
  // backend that has them in a form of its own may then hold that alone.
  bool constant() const noexcept { return constant_; }
  void set_constant() noexcept { constant_ = true; }

  // Gives the bytes back to the device: `form` holds them now. Who asks for them nevertheless gets
  // them again, and from then on both stay in memory.
  void replace(std::shared_ptr<const OtherForm> form);
  const OtherForm* replaced() const noexcept { return form_.get(); }  // null: the bytes are here

 private:
  void bring_back() const;

  mutable std::byte* data_ = nullptr;
  Engine* engine_ = nullptr;
  std::size_t bytes_ = 0;
  Device device_;
  Purpose purpose_;
  std::uint64_t version_ = 0;
  std::shared_ptr<void> derived_;
  mutable std::shared_ptr<const OtherForm> form_;
  mutable bool constant_ = false;
};

struct TensorImpl {
  TensorImpl(std::shared_ptr<Storage> in, const Shape& sizes, const Strides& steps)
      : storage(std::move(in)), shape(sizes), strides(steps) {}

  std::shared_ptr<Storage> storage;
  Shape shape;
  Strides strides;          // in elements
  std::int64_t offset = 0;  // of the first element, in elements
  std::int64_t elements = 0;
  DType dtype = DType::f32;
  bool contiguous = true;

  // The tape's notes on this tensor: whether it is a leaf that wants a gradient, its gradient, and
  // the slot it has on the tape with this serial number.
  bool requires_grad = false;
  std::shared_ptr<TensorImpl> grad;
  bool op_output = false;  // of an op that a tape has recorded
  std::uint64_t tape_serial = 0;
  std::int32_t tape_slot = -1;
};

// The same elements as those of t, in another order or shape: `shape` holds as many.
Tensor rearranged(const TensorImpl& t, const Shape& shape, const Strides& strides);
// Some of the elements of t, or some of them several times, from the one `shift` after its first.
Tensor selected(const TensorImpl& t, const Shape& shape, const Strides& strides,
                std::int64_t shift);

// The elements of a strided tensor in row-major order. `base`: the bytes of its storage, on the
// host.
void gather_bytes(const TensorImpl& t, const std::byte* base, std::byte* out);

// The address of the first element, on the device of the tensor: for the routines of that device.
// The meta device has none.
std::byte* device_address(const Tensor& x);

}  // namespace heddle
