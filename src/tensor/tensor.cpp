#include "heddle/tensor.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "tensor/engine.h"
#include "tensor/recycled.h"
#include "tensor/storage.h"

namespace heddle {

namespace {

bool is_contiguous(const Shape& shape, const Strides& strides) {
  std::int64_t step = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    if (shape[i] == 0) return true;
    if (shape[i] != 1 && strides[i] != step) return false;
    step *= shape[i];
  }
  return true;
}

// A value that the type cannot hold is refused: the cast would be undefined.
template <class T>
T whole(double value) {
  using Limits = std::numeric_limits<T>;
  if (!(value >= static_cast<double>(Limits::min()) && value < std::ldexp(1.0, Limits::digits)))
    fail(ErrorCode::out_of_range, "Tensor::full", "the value does not fit the element type",
         std::to_string(Limits::min()) + " to " + std::to_string(Limits::max()),
         std::to_string(value));
  return static_cast<T>(value);
}

// The bytes of one element of the type, in `element`.
void write_element(void* element, DType dtype, double value) {
  const auto put = [element](auto v) { std::memcpy(element, &v, sizeof v); };
  switch (dtype) {
    case DType::f32: return put(static_cast<float>(value));
    case DType::bf16: return put(bf16::from_float(static_cast<float>(value)));
    case DType::f16: return put(f16::from_float(static_cast<float>(value)));
    case DType::f64: return put(value);
    case DType::i32: return put(whole<std::int32_t>(value));
    case DType::i64: return put(whole<std::int64_t>(value));
    case DType::u8: return put(whole<std::uint8_t>(value));
  }
}

void fill(Tensor& t, double value) {
  alignas(8) std::byte element[8] = {};
  write_element(element, t.dtype(), value);  // refuses what does not fit, on every device
  if (t.device().is_meta() || t.elements() == 0) return;
  t.bump_version();
  Storage& storage = *t.impl()->storage;
  storage.engine().fill(storage.data(), t.elements(), element, size_of(t.dtype()));
}

// Out of line: what makes the message would be in the way of every look at a tensor.
[[noreturn, gnu::noinline, gnu::cold]] void refuse_undefined() {
  fail(ErrorCode::invalid_argument, "tensor", "the tensor is undefined",
       "a tensor that holds something", "an undefined tensor");
}

void check_type(DType wanted, const Tensor& t) {
  if (t.dtype() != wanted)
    fail(ErrorCode::dtype_mismatch, "tensor data", "asked for another element type",
         to_string(wanted), t.describe());
}

}  // namespace

Tensor rearranged(const TensorImpl& t, const Shape& shape, const Strides& strides) {
  auto impl = make_recycled<TensorImpl>(t.storage, shape, strides);
  impl->elements = t.elements;
  impl->offset = t.offset;
  impl->dtype = t.dtype;
  impl->contiguous = is_contiguous(shape, strides);
  return Tensor(std::move(impl));
}

Tensor selected(const TensorImpl& t, const Shape& shape, const Strides& strides,
                std::int64_t shift) {
  auto impl = make_recycled<TensorImpl>(t.storage, shape, strides);
  impl->elements = elements_of(shape);
  impl->offset = t.offset + shift;
  impl->dtype = t.dtype;
  impl->contiguous = is_contiguous(shape, strides);
  return Tensor(std::move(impl));
}

Tensor Tensor::empty(const Shape& shape, DType dtype, Device device) {
  const std::int64_t count = elements_of(shape);
  const auto width = static_cast<std::int64_t>(size_of(dtype));
  if (count > INT64_MAX / width)
    fail(ErrorCode::out_of_memory, "tensor", "too many bytes", "fewer than 2^63",
         heddle::to_string(shape));
  auto impl = make_recycled<TensorImpl>(
      make_recycled<Storage>(static_cast<std::size_t>(count * width), device), shape,
      contiguous_strides(shape));
  impl->elements = count;
  impl->dtype = dtype;
  return Tensor(std::move(impl));
}

Tensor Tensor::zeros(const Shape& shape, DType dtype, Device device) {
  Tensor t = empty(shape, dtype, device);
  if (device.is_cpu()) {
    if (t.bytes() > 0) std::memset(t.mutable_raw(), 0, t.bytes());
  } else {
    fill(t, 0);
  }
  return t;
}

Tensor Tensor::full(const Shape& shape, double value, DType dtype, Device device) {
  Tensor t = empty(shape, dtype, device);
  fill(t, value);
  return t;
}

template <class T>
Tensor Tensor::from(const Shape& shape, std::span<const T> values, Device device) {
  if (elements_of(shape) != static_cast<std::int64_t>(values.size()))
    fail(ErrorCode::shape_mismatch, "Tensor::from", "the number of values does not fit the shape",
         std::to_string(elements_of(shape)) + " for " + heddle::to_string(shape),
         std::to_string(values.size()));
  Tensor t = empty(shape, dtype_of<T>, device);
  if (values.empty() || device.is_meta()) return t;
  t.bump_version();
  t.impl()->storage->engine().upload(t.impl()->storage->data(), values.data(), values.size_bytes());
  return t;
}

// Of this file alone, where every look at a tensor goes through it.
[[gnu::always_inline]] inline const TensorImpl& Tensor::get() const {
  if (impl_ == nullptr) [[unlikely]]
    refuse_undefined();
  return *impl_;
}

const Shape& Tensor::shape() const { return get().shape; }
const Strides& Tensor::strides() const { return get().strides; }
DType Tensor::dtype() const { return get().dtype; }
Device Tensor::device() const { return get().storage->device(); }
std::int64_t Tensor::elements() const { return get().elements; }
bool Tensor::contiguous() const { return get().contiguous; }

std::int64_t Tensor::size(int dim) const {
  const Shape& sizes = get().shape;
  if (dim >= 0 && dim < sizes.rank()) return sizes[dim];
  return sizes[normalize_dim(dim, sizes.rank(), "Tensor::size")];
}

std::string Tensor::describe() const {
  if (!defined()) return "an undefined tensor";
  return std::string(heddle::to_string(dtype())) + " " + heddle::to_string(shape()) + " on " +
         heddle::to_string(device());
}

const void* Tensor::raw() const {
  const TensorImpl& t = get();
  if (!t.storage->device().is_cpu())
    fail(ErrorCode::device_mismatch, "tensor data", "there are no bytes to point to",
         "a tensor on cpu; to(Device::cpu) makes one", describe());
  return t.storage->data() + static_cast<std::size_t>(t.offset) * size_of(t.dtype);
}

void* Tensor::mutable_raw() {
  bump_version();
  return const_cast<void*>(raw());  // NOLINT: the storage is ours; raw() is const for readers
}

template <class T>
const T* Tensor::data() const {
  check_type(dtype_of<T>, *this);
  return static_cast<const T*>(raw());
}

template <class T>
T* Tensor::mutable_data() {
  check_type(dtype_of<T>, *this);
  return static_cast<T*>(mutable_raw());
}

template <class T>
std::vector<T> Tensor::to_vector() const {
  check_type(dtype_of<T>, *this);
  if (!device().is_cpu()) return to(Device::cpu).to_vector<T>();
  std::vector<T> out(static_cast<std::size_t>(elements()));
  gather_bytes(get(), get().storage->data(), reinterpret_cast<std::byte*>(out.data()));
  return out;
}

double Tensor::item() const {
  if (elements() != 1)
    fail(ErrorCode::shape_mismatch, "Tensor::item", "the tensor has not exactly one element",
         "one element", describe());
  if (!device().is_cpu()) return to(Device::cpu).item();
  const void* p = raw();
  switch (dtype()) {
    case DType::f32: return static_cast<double>(*static_cast<const float*>(p));
    case DType::bf16: return static_cast<double>(static_cast<const bf16*>(p)->to_float());
    case DType::f16: return static_cast<double>(static_cast<const f16*>(p)->to_float());
    case DType::f64: return *static_cast<const double*>(p);
    case DType::i32: return *static_cast<const std::int32_t*>(p);
    case DType::i64: return static_cast<double>(*static_cast<const std::int64_t*>(p));
    case DType::u8: return *static_cast<const std::uint8_t*>(p);
  }
  return 0;
}

bool Tensor::requires_grad() const noexcept { return impl_ != nullptr && impl_->requires_grad; }

Tensor& Tensor::set_requires_grad(bool on) {
  (void)get();
  if (on && !is_floating(dtype()))
    fail(ErrorCode::autograd, "set_requires_grad", "only floating-point tensors have gradients",
         "f32, bf16, f16 or f64", describe());
  if (on && impl_->op_output)
    fail(ErrorCode::autograd, "set_requires_grad", "the tensor is the output of a recorded op",
         "a leaf; use detach() to make one", describe());
  impl_->requires_grad = on;
  return *this;
}

Tensor Tensor::grad() const { return impl_ != nullptr ? Tensor(impl_->grad) : Tensor(); }

void Tensor::set_grad(const Tensor& grad) {
  (void)get();
  if (grad.defined() && (grad.shape() != shape() || grad.dtype() != dtype()))
    fail(ErrorCode::shape_mismatch, "set_grad", "the gradient does not fit the tensor", describe(),
         grad.describe());
  impl_->grad = grad.impl_;
}

void Tensor::clear_grad() noexcept {
  if (impl_ != nullptr) impl_->grad = nullptr;
}

Tensor Tensor::detach() const {
  const TensorImpl& t = get();
  return rearranged(t, t.shape, t.strides);
}

std::uint64_t Tensor::version() const { return get().storage->version(); }
void Tensor::bump_version() {
  (void)get();
  impl_->storage->bump_version();
}

#define HEDDLE_INSTANTIATE(T)                                                \
  template Tensor Tensor::from<T>(const Shape&, std::span<const T>, Device); \
  template const T* Tensor::data<T>() const;                                 \
  template T* Tensor::mutable_data<T>();                                     \
  template std::vector<T> Tensor::to_vector<T>() const;
HEDDLE_INSTANTIATE(float)
HEDDLE_INSTANTIATE(bf16)
HEDDLE_INSTANTIATE(f16)
HEDDLE_INSTANTIATE(double)
HEDDLE_INSTANTIATE(std::int32_t)
HEDDLE_INSTANTIATE(std::int64_t)
HEDDLE_INSTANTIATE(std::uint8_t)
#undef HEDDLE_INSTANTIATE

}  // namespace heddle
