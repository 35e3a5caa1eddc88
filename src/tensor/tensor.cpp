#include "heddle/tensor.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

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

template <class T>
void fill(void* data, std::int64_t count, T value) {
  auto* p = static_cast<T*>(data);
  for (std::int64_t i = 0; i < count; ++i) p[i] = value;
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

void fill_value(void* data, std::int64_t count, DType dtype, double value) {
  switch (dtype) {
    case DType::f32: return fill(data, count, static_cast<float>(value));
    case DType::bf16: return fill(data, count, bf16::from_float(static_cast<float>(value)));
    case DType::f16: return fill(data, count, f16::from_float(static_cast<float>(value)));
    case DType::f64: return fill(data, count, value);
    case DType::i32: return fill(data, count, whole<std::int32_t>(value));
    case DType::i64: return fill(data, count, whole<std::int64_t>(value));
    case DType::u8: return fill(data, count, whole<std::uint8_t>(value));
  }
}

// Walks the elements of a strided tensor in row-major order.
void gather_bytes(const TensorImpl& t, std::byte* out) {
  const std::size_t width = size_of(t.dtype);
  const std::byte* base = t.storage->data();
  if (t.contiguous) {
    const std::size_t bytes = static_cast<std::size_t>(t.elements) * width;
    if (bytes > 0) std::memcpy(out, base + static_cast<std::size_t>(t.offset) * width, bytes);
    return;
  }
  Dims index;
  for (int i = 0; i < t.shape.rank(); ++i) index.push_back(0);
  for (std::int64_t n = 0; n < t.elements; ++n) {
    std::int64_t at = t.offset;
    for (int i = 0; i < t.shape.rank(); ++i) at += index[i] * t.strides[i];
    std::memcpy(out + static_cast<std::size_t>(n) * width,
                base + static_cast<std::size_t>(at) * width, width);
    for (int i = t.shape.rank() - 1; i >= 0 && ++index[i] == t.shape[i]; --i) index[i] = 0;
  }
}

void check_type(DType wanted, const Tensor& t) {
  if (t.dtype() != wanted)
    fail(ErrorCode::dtype_mismatch, "tensor data", "asked for another element type",
         to_string(wanted), t.describe());
}

}  // namespace

Tensor make_view(std::shared_ptr<Storage> storage, const Shape& shape, const Strides& strides,
                 std::int64_t offset, DType dtype) {
  auto impl = std::make_shared<TensorImpl>();
  impl->storage = std::move(storage);
  impl->elements = elements_of(shape);
  impl->shape = shape;
  impl->strides = strides;
  impl->offset = offset;
  impl->dtype = dtype;
  impl->contiguous = is_contiguous(shape, strides);
  return Tensor(std::move(impl));
}

Tensor Tensor::empty(const Shape& shape, DType dtype, Device device) {
  const std::int64_t count = elements_of(shape);
  const auto width = static_cast<std::int64_t>(size_of(dtype));
  if (count > INT64_MAX / width)
    fail(ErrorCode::out_of_memory, "tensor", "too many bytes", "fewer than 2^63",
         heddle::to_string(shape));
  auto storage = std::make_shared<Storage>(static_cast<std::size_t>(count * width), device);
  return make_view(std::move(storage), shape, contiguous_strides(shape), 0, dtype);
}

Tensor Tensor::zeros(const Shape& shape, DType dtype, Device device) {
  Tensor t = empty(shape, dtype, device);
  if (device == Device::cpu && t.bytes() > 0) std::memset(t.mutable_raw(), 0, t.bytes());
  return t;
}

Tensor Tensor::full(const Shape& shape, double value, DType dtype, Device device) {
  Tensor t = empty(shape, dtype, device);
  if (device == Device::cpu) fill_value(t.mutable_raw(), t.elements(), dtype, value);
  return t;
}

template <class T>
Tensor Tensor::from(const Shape& shape, std::span<const T> values) {
  if (elements_of(shape) != static_cast<std::int64_t>(values.size()))
    fail(ErrorCode::shape_mismatch, "Tensor::from", "the number of values does not fit the shape",
         std::to_string(elements_of(shape)) + " for " + heddle::to_string(shape),
         std::to_string(values.size()));
  Tensor t = empty(shape, dtype_of<T>);
  if (!values.empty()) std::memcpy(t.mutable_raw(), values.data(), values.size_bytes());
  return t;
}

const TensorImpl& Tensor::get() const {
  if (impl_ == nullptr)
    fail(ErrorCode::invalid_argument, "tensor", "the tensor is undefined",
         "a tensor that holds something", "an undefined tensor");
  return *impl_;
}

const Shape& Tensor::shape() const { return get().shape; }
const Strides& Tensor::strides() const { return get().strides; }
DType Tensor::dtype() const { return get().dtype; }
Device Tensor::device() const { return get().storage->device(); }
std::int64_t Tensor::elements() const { return get().elements; }
bool Tensor::contiguous() const { return get().contiguous; }

std::int64_t Tensor::size(int dim) const {
  return shape()[normalize_dim(dim, rank(), "Tensor::size")];
}

std::string Tensor::describe() const {
  if (!defined()) return "an undefined tensor";
  return std::string(heddle::to_string(dtype())) + " " + heddle::to_string(shape()) + " on " +
         std::string(heddle::to_string(device()));
}

const void* Tensor::raw() const {
  const TensorImpl& t = get();
  if (t.storage->device() != Device::cpu)
    fail(ErrorCode::device_mismatch, "tensor data", "there are no bytes to point to",
         "a tensor on cpu", describe());
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
  (void)raw();  // refuses a tensor without bytes
  std::vector<T> out(static_cast<std::size_t>(elements()));
  gather_bytes(get(), reinterpret_cast<std::byte*>(out.data()));
  return out;
}

double Tensor::item() const {
  if (elements() != 1)
    fail(ErrorCode::shape_mismatch, "Tensor::item", "the tensor has not exactly one element",
         "one element", describe());
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
  return make_view(t.storage, t.shape, t.strides, t.offset, t.dtype);
}

std::uint64_t Tensor::version() const { return get().storage->version(); }
void Tensor::bump_version() {
  (void)get();
  impl_->storage->bump_version();
}

#define HEDDLE_INSTANTIATE(T)                                        \
  template Tensor Tensor::from<T>(const Shape&, std::span<const T>); \
  template const T* Tensor::data<T>() const;                         \
  template T* Tensor::mutable_data<T>();                             \
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
