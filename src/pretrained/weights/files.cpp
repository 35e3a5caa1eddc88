#include "pretrained/weights/files.h"

#include <filesystem>
#include <map>
#include <utility>

#include "heddle/error.h"
#include "io/files/file.h"
#include "io/gguf/gguf.h"
#include "io/json/json.h"
#include "io/safetensors/safetensors.h"
#include "ops/copy/copy.h"
#include "ops/view/view.h"
#include "pretrained/weights/mxfp4.h"

namespace heddle::pretrained {
namespace {

constexpr std::size_t kMaxIndex = std::size_t{64} << 20;
constexpr std::string_view kWhole = "model.safetensors", kIndex = "model.safetensors.index.json";

class Safetensors final : public WeightFiles {
 public:
  explicit Safetensors(std::string where) : where_(std::move(where)) {}

  void open(const std::string& path) {
    files_.push_back(std::make_unique<io::SafetensorsFile>(path));
    for (const io::TensorEntry& entry : files_.back()->entries())
      if (!index_.emplace(entry.name, files_.back().get()).second)
        fail(ErrorCode::io, path, "tensor " + entry.name + " is in two shards");
  }

  std::vector<std::string> names() const override {
    std::vector<std::string> all;
    all.reserve(index_.size());
    for (const auto& [name, file] : index_) all.push_back(name);
    return all;
  }
  bool contains(std::string_view name) const override { return index_.contains(name); }
  Tensor load(std::string_view name, DType) const override { return file(name).load(name); }
  Tensor load_one(std::string_view name, std::int64_t place) const override {
    return file(name).load_part(name, place);
  }
  Shape shape(std::string_view name) const override { return Shape(file(name).entry(name).shape); }
  std::string type(std::string_view name) const override { return file(name).entry(name).dtype; }
  std::uint64_t bytes(std::string_view name) const override { return file(name).entry(name).bytes; }
  std::string where() const override { return where_; }

 private:
  const io::SafetensorsFile& file(std::string_view name) const {
    const auto found = index_.find(name);
    if (found == index_.end())
      fail(ErrorCode::io, where_, "tensor " + std::string(name) + " is missing");
    return *found->second;
  }

  std::string where_;
  std::vector<std::unique_ptr<io::SafetensorsFile>> files_;
  std::map<std::string, const io::SafetensorsFile*, std::less<>> index_;
};

// A shard lies beside its index: a name with a path in it is not one.
void require_plain(const io::Json& name) {
  const std::filesystem::path path = name.string();
  if (path.empty() || path.has_parent_path() || path == "." || path == "..")
    name.refuse("the name of a file in the same directory");
}

std::unique_ptr<WeightFiles> shards_of(const std::string& directory, const std::string& index) {
  const io::Json map = io::Json::read(index, {.max_bytes = kMaxIndex}).at("weight_map");
  auto files = std::make_unique<Safetensors>(index);
  std::map<std::string, std::string> promised;  // tensor -> shard
  std::map<std::string, bool> opened;
  for (const std::string& tensor : map.keys()) {
    require_plain(map.at(tensor));
    promised[tensor] = map.at(tensor).string();
    opened[promised[tensor]] = false;
  }
  const std::filesystem::path folder = directory;
  for (const auto& [shard, done] : opened) files->open((folder / shard).string());
  for (const auto& [tensor, shard] : promised)
    if (!files->contains(tensor))
      fail(ErrorCode::io, index, "tensor " + tensor + " is in none of the shards", shard);
  return files;
}

[[noreturn]] void refuse_without_weights(const std::string& directory) {
  for (const char* pickled : {"pytorch_model.bin", "pytorch_model.bin.index.json"})
    if (io::file_exists(directory + "/" + pickled))
      fail(ErrorCode::io, directory + "/" + pickled,
           "weights as PyTorch pickles them: reading such a file runs the code in it",
           "model.safetensors (in Python: AutoModel.from_pretrained(DIR).save_pretrained(DIR))");
  fail(ErrorCode::io, directory, "has no weights",
       std::string(kWhole) + " or " + std::string(kIndex));
}

class Gguf final : public WeightFiles {
 public:
  explicit Gguf(std::shared_ptr<const io::GgufFile> file) : file_(std::move(file)) {}

  std::vector<std::string> names() const override {
    std::vector<std::string> all;
    all.reserve(file_->tensors().size());
    for (const io::GgufTensor& tensor : file_->tensors()) all.push_back(tensor.name);
    return all;
  }
  bool contains(std::string_view name) const override { return file_->contains(name); }
  Tensor load(std::string_view name, DType wanted) const override {
    constexpr std::int64_t kLarge = std::int64_t{1} << 20;  // elements
    const auto& shape = file_->tensor(name).shape;
    std::int64_t elements = shape.size() < 2 ? 0 : 1;
    for (const std::int64_t size : shape) elements *= size;
    const bool at_once = wanted == DType::bf16 && elements >= kLarge;
    return file_->load(name, at_once ? DType::bf16 : DType::f32);
  }
  // Only its own rows are decoded.
  Tensor load_one(std::string_view name, std::int64_t place) const override {
    const io::GgufTensor& stack = file_->tensor(name);
    Shape shape(stack.shape);
    require_one_of(where(), name, shape, place);
    shape.erase(0);
    Tensor values = Tensor::empty(shape, DType::f32);
    const std::int64_t elements = values.elements();
    if (elements > 0)
      file_->read_rows(stack, place * (elements / stack.row_weights()),
                       {values.mutable_data<float>(), static_cast<std::size_t>(elements)});
    return values;
  }
  Shape shape(std::string_view name) const override { return Shape(file_->tensor(name).shape); }
  std::string type(std::string_view name) const override {
    return std::string(io::format_of(file_->tensor(name).type).name);
  }
  std::uint64_t bytes(std::string_view name) const override { return file_->tensor(name).bytes; }
  std::string where() const override { return file_->path(); }

 private:
  std::shared_ptr<const io::GgufFile> file_;
};

}  // namespace

void require_one_of(const std::string& where, std::string_view name, const Shape& shape,
                    std::int64_t place) {
  if (shape.rank() < 2 || place >= shape[0])
    fail(ErrorCode::shape_mismatch, where,
         "tensor " + std::string(name) + " holds no part " + std::to_string(place),
         "parts along its first dimension", to_string(shape));
}

Tensor WeightFiles::load_one(std::string_view name, std::int64_t place) const {
  const Tensor all = load(name, DType::f32);
  Shape shape = all.shape();
  require_one_of(where(), name, shape, place);
  shape.erase(0);
  return ops::clone(ops::reshape(ops::slice(all, 0, place, place + 1), shape));
}

DType natural_type(const WeightFiles& files) {
  std::uint64_t exact = 0, narrow = 0;
  for (const std::string& name : files.names()) {
    const std::string type = files.type(name);
    const bool wide = type == "F32" || type == "F16" || type == "F64";
    (wide ? exact : narrow) += files.bytes(name);
  }
  return narrow > exact ? DType::bf16 : DType::f32;
}

std::unique_ptr<WeightFiles> safetensors_of(const std::string& directory) {
  const std::string whole = directory + "/" + std::string(kWhole);
  const std::string index = directory + "/" + std::string(kIndex);
  if (io::file_exists(whole)) {
    auto files = std::make_unique<Safetensors>(whole);
    files->open(whole);
    return with_mxfp4(std::move(files));
  }
  if (io::file_exists(index)) return with_mxfp4(shards_of(directory, index));
  refuse_without_weights(directory);
}

std::unique_ptr<WeightFiles> weights_of(std::shared_ptr<const io::GgufFile> file) {
  return std::make_unique<Gguf>(std::move(file));
}

}  // namespace heddle::pretrained
