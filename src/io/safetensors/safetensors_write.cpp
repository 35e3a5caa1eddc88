#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "heddle/error.h"
#include "heddle/ops/copy.h"
#include "io/errors.h"
#include "io/safetensors/safetensors.h"
#include "io/safetensors/safetensors_seal.h"

namespace heddle::io {
namespace {

std::string_view file_type(DType dtype) {
  switch (dtype) {
    case DType::f32: return "F32";
    case DType::bf16: return "BF16";
    case DType::f16: return "F16";
    case DType::f64: return "F64";
    case DType::i32: return "I32";
    case DType::i64: return "I64";
    case DType::u8: return "U8";
  }
  return "";
}

// Length and header, padded with blanks so that the tensors begin at a multiple of 8.
std::string header_of(const std::string& path, const std::vector<TensorPlan>& plan,
                      const Metadata& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  if (is_own(metadata)) header["__metadata__"][kHeaderSumKey] = std::string(kNoSum);
  std::set<std::string_view> names;
  std::int64_t at = 0;
  for (const TensorPlan& tensor : plan) {
    if (tensor.name == "__metadata__" || !names.insert(tensor.name).second)
      fail_io(path, "cannot hold the tensor name " + shown(tensor.name),
              "names that differ, none of them __metadata__");
    std::int64_t bytes = 0, end = 0;
    const auto size = static_cast<std::int64_t>(size_of(tensor.dtype));
    if (__builtin_mul_overflow(elements_of(tensor.shape), size, &bytes) ||
        __builtin_add_overflow(at, bytes, &end))
      fail_io(path, "cannot hold tensors of more than 2^63 bytes");
    // Not header[name] = ...: ordered_json looks through all names before it adds one.
    header.get_ref<nlohmann::ordered_json::object_t&>().emplace_back(
        tensor.name,
        nlohmann::ordered_json{
            {"dtype", file_type(tensor.dtype)},
            {"shape", std::vector<std::int64_t>(tensor.shape.begin(), tensor.shape.end())},
            {"data_offsets", {at, end}}});
    at = end;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::exception&) {
    fail_io(path, "cannot hold a name or metadata that is not UTF-8");
  }
  text.append((8 - text.size() % 8) % 8, ' ');
  seal_header(text);
  std::string out;
  for (int i = 0; i < 8; ++i)
    out += static_cast<char>(static_cast<std::uint64_t>(text.size()) >> (8 * i) & 0xff);
  return out + text;
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(const std::string& path, std::vector<TensorPlan> plan,
                                     const Metadata& metadata)
    : path_(path), plan_(std::move(plan)), file_(path) {
  file_.write(header_of(path_, plan_, metadata));
}

void SafetensorsWriter::write(const Tensor& tensor) {
  if (next_ == plan_.size()) fail_io(path_, "was given more tensors than were planned");
  const TensorPlan& planned = plan_[next_];
  if (!tensor.defined() || tensor.dtype() != planned.dtype || tensor.shape() != planned.shape ||
      tensor.device().is_meta())
    fail_io(path_, "tensor " + shown(planned.name) + " is not as planned",
            std::string(to_string(planned.dtype)) + " " + to_string(planned.shape),
            tensor.describe());
  if (tensor.bytes() > 0) {
    const Tensor plain = ops::contiguous(tensor.detach().to(Device::cpu));
    file_.write(plain.raw(), plain.bytes());
  }
  ++next_;
}

void SafetensorsWriter::commit() {
  if (next_ != plan_.size())
    fail_io(path_, "was given too few tensors", std::to_string(plan_.size()),
            std::to_string(next_));
  file_.commit();
}

void write_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                       const Metadata& metadata) {
  std::vector<TensorPlan> plan;
  plan.reserve(tensors.size());
  for (const NamedTensor& t : tensors) {
    if (!t.tensor.defined()) fail_io(path, "tensor " + shown(t.name) + " is undefined");
    plan.push_back({t.name, t.tensor.dtype(), t.tensor.shape()});
  }
  SafetensorsWriter writer(path, std::move(plan), metadata);
  for (const NamedTensor& t : tensors) writer.write(t.tensor);
  writer.commit();
}

}  // namespace heddle::io
