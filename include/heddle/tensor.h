// Tensor: a value handle on storage, shape, strides, element type and device. No mathematics here:
// that is heddle/ops.h. Copying a Tensor shares its storage.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "heddle/device.h"
#include "heddle/dtype.h"
#include "heddle/error.h"
#include "heddle/memory.h"
#include "heddle/shape.h"

namespace heddle {

class Storage;
struct TensorImpl;

class Tensor {
 public:
  Tensor() = default;  // undefined: holds nothing; defined() is false

  static Tensor empty(const Shape& shape, DType dtype = DType::f32, Device device = Device::cpu);
  static Tensor zeros(const Shape& shape, DType dtype = DType::f32, Device device = Device::cpu);
  static Tensor full(const Shape& shape, double value, DType dtype = DType::f32,
                     Device device = Device::cpu);
  static Tensor scalar(double value, DType dtype = DType::f32, Device device = Device::cpu) {
    return full({}, value, dtype, device);
  }
  template <class T>
  static Tensor from(const Shape& shape, std::span<const T> values, Device device = Device::cpu);
  template <class T>
  static Tensor from(const Shape& shape, std::initializer_list<T> values,
                     Device device = Device::cpu) {
    return from(shape, std::span<const T>(values.begin(), values.size()), device);
  }

  // f32 on the CPU, from nested lists: from({1, 2, 3}), from({{1, 2}, {3, 4}}). Rows of different
  // lengths are an Error.
  static Tensor from(std::initializer_list<float> values);
  static Tensor from(std::initializer_list<std::initializer_list<float>> rows);
  static Tensor from(
      std::initializer_list<std::initializer_list<std::initializer_list<float>>> all);

  bool defined() const noexcept { return impl_ != nullptr; }
  // The following throw Error on an undefined tensor.
  const Shape& shape() const;
  const Strides& strides() const;  // in elements
  DType dtype() const;
  Device device() const;
  int rank() const { return shape().rank(); }
  std::int64_t size(int dim) const;  // -1 is the last
  std::int64_t elements() const;
  std::size_t bytes() const { return static_cast<std::size_t>(elements()) * size_of(dtype()); }
  bool contiguous() const;       // row-major without gaps
  std::string describe() const;  // "f32 [2, 3] on cpu", "undefined"

  // Pointers to the first element; the tensor must be on the CPU and of type T. Asking for a
  // writable pointer counts as an in-place change (see tape.h).
  template <class T>
  const T* data() const;
  template <class T>
  T* mutable_data();
  const void* raw() const;
  void* mutable_raw();

  // Elements in row-major order, whatever the strides; T must be the tensor's type. For a tensor on
  // another device these wait for it; to get several, use read(), which waits once.
  template <class T>
  std::vector<T> to_vector() const;
  double item() const;  // the value of a tensor with one element, converted

  // The tensor itself if it is on the device already; otherwise a contiguous copy there, unknown to
  // any tape. A copy to the CPU waits for the device; the meta device gets the shape only.
  Tensor to(Device device) const;

  // Gradients (tape.h). Only a leaf can be made to require one.
  bool requires_grad() const noexcept;
  Tensor& set_requires_grad(bool on);  // throws Error unless floating point and not an op's output
  Tensor grad() const;                 // undefined when there is none
  void set_grad(const Tensor& grad);
  void clear_grad() noexcept;
  Tensor detach() const;  // same storage, unknown to any tape

  // How often the storage has been written to; views share this count.
  std::uint64_t version() const;
  void bump_version();

  const std::shared_ptr<TensorImpl>& impl() const noexcept { return impl_; }
  explicit Tensor(std::shared_ptr<TensorImpl> impl) noexcept : impl_(std::move(impl)) {}

 private:
  const TensorImpl& get() const;
  std::shared_ptr<TensorImpl> impl_;
};

// Contiguous copies of all of them on the CPU. Waits once for each device they are on.
std::vector<Tensor> read(std::span<const Tensor> tensors);

// Overwrites the elements of a contiguous tensor with values of the same shape and type, which may
// be on another device.
void overwrite(Tensor& tensor, const Tensor& values);

// Views: other shapes on the same storage, without copying. They know nothing of the tape: the
// differentiable ones are ops (heddle/ops/view.h).
namespace views {

// A reshape that would need a copy throws Error. One size may be -1.
Tensor reshape(const Tensor& x, const Shape& shape);
bool can_reshape(const Tensor& x, const Shape& shape);
Shape resolve_reshape(const Tensor& x, const Shape& shape);  // replaces -1, checks the count
Tensor transpose(const Tensor& x, int dim0, int dim1);
Tensor permute(const Tensor& x, std::span<const int> order);
Tensor slice(const Tensor& x, int dim, std::int64_t begin, std::int64_t end, std::int64_t step = 1);
Tensor broadcast(const Tensor& x, const Shape& shape);

}  // namespace views

}  // namespace heddle
