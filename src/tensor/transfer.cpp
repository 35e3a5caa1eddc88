// Tensors from one device to another.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "heddle/error.h"
#include "heddle/tensor.h"
#include "tensor/engine.h"
#include "tensor/storage.h"

namespace heddle {

void gather_bytes(const TensorImpl& t, const std::byte* base, std::byte* out) {
  const std::size_t width = size_of(t.dtype);
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

namespace {

std::atomic<std::int64_t> reads{0};

void refuse_meta(const Tensor& t) {
  if (t.device().is_meta())
    fail(ErrorCode::device_mismatch, "Tensor::to", "a tensor on meta has no values to copy",
         "a tensor on a device that computes", t.describe());
}

// A tensor's bytes on their way to the host: a contiguous one arrives in place, of any other the
// whole storage comes along and is put in order after the wait.
struct Arrival {
  Tensor result;  // contiguous, on the CPU
  std::vector<std::byte> storage;
};

Arrival begin_download(const Tensor& t) {
  const TensorImpl& impl = *t.impl();
  Arrival a{Tensor::empty(t.shape(), t.dtype()), {}};
  if (t.elements() == 0) return a;
  if (impl.contiguous) {
    impl.storage->engine().download(a.result.mutable_raw(), device_address(t), t.bytes());
  } else {
    a.storage.resize(impl.storage->bytes());
    impl.storage->engine().download(a.storage.data(), impl.storage->data(), a.storage.size());
  }
  return a;
}

void finish_download(const Tensor& t, Arrival& a) {
  if (!a.storage.empty())
    gather_bytes(*t.impl(), a.storage.data(), static_cast<std::byte*>(a.result.mutable_raw()));
}

}  // namespace

std::int64_t device_reads() noexcept { return reads; }

std::byte* device_address(const Tensor& x) {
  const TensorImpl& t = *x.impl();
  return t.storage->data() + static_cast<std::size_t>(t.offset) * size_of(t.dtype);
}

std::vector<Tensor> read(std::span<const Tensor> tensors) {
  std::vector<Arrival> arrivals(tensors.size());
  std::vector<Engine*> busy;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    refuse_meta(t);
    if (t.device().is_cpu()) continue;
    arrivals[i] = begin_download(t);
    Engine* const engine = &t.impl()->storage->engine();
    if (std::find(busy.begin(), busy.end(), engine) == busy.end()) busy.push_back(engine);
  }
  for (Engine* engine : busy) {
    engine->synchronize();
    ++reads;
  }
  std::vector<Tensor> out;
  out.reserve(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    if (t.device().is_cpu()) {
      Tensor here = t.contiguous() ? t.detach() : Tensor::empty(t.shape(), t.dtype());
      if (!t.contiguous())
        gather_bytes(*t.impl(), t.impl()->storage->data(),
                     static_cast<std::byte*>(here.mutable_raw()));
      out.push_back(std::move(here));
    } else {
      finish_download(t, arrivals[i]);
      out.push_back(arrivals[i].result);
    }
  }
  return out;
}

void overwrite(Tensor& tensor, const Tensor& values) {
  if (tensor.shape() != values.shape() || tensor.dtype() != values.dtype() || !tensor.contiguous())
    fail(ErrorCode::shape_mismatch, "overwrite", "the values do not fit the tensor",
         "a contiguous " + tensor.describe(), values.describe());
  if (tensor.device().is_meta() || tensor.bytes() == 0) return;
  const Tensor here = read(std::span(&values, 1))[0];
  if (tensor.device().is_cpu() && tensor.raw() == here.raw()) return;  // its own values
  tensor.bump_version();
  tensor.impl()->storage->engine().upload(device_address(tensor), here.raw(), here.bytes());
}

Tensor Tensor::to(Device device) const {
  if (this->device() == device) return *this;
  if (device.is_meta()) return empty(shape(), dtype(), device);
  Tensor here = read(std::span(this, 1))[0];
  if (device.is_cpu()) return here;
  Tensor there = empty(shape(), dtype(), device);
  if (there.bytes() == 0) return there;
  there.bump_version();
  there.impl()->storage->engine().upload(there.impl()->storage->data(), here.raw(), here.bytes());
  return there;
}

}  // namespace heddle
