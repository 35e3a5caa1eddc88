#include "check/values.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>

#include "backend/cpu/settings.h"
#include "language/language.h"
#include "ops/copy/copy.h"
#include "ops/random/random.h"

namespace heddle::check {

namespace {

constexpr std::uint64_t kSeed = 20177;
constexpr std::int64_t kSequences = 3;
constexpr double kLeastShareOfGroup = 0.3;
constexpr double kLeastShareOfAll = 1e-3;
constexpr double kInfinite = std::numeric_limits<double>::infinity();
// Of numbers where all should be 0: above every limit, and yet no NaN.
constexpr double kAnyShare = std::numeric_limits<double>::max();

std::uint32_t stream_of(const std::string& name) {
  std::uint32_t h = 2166136261u;
  for (const char c : name) h = (h ^ static_cast<unsigned char>(c)) * 16777619u;
  return h;
}

Tensor integers(const std::vector<std::int64_t>& v) {
  return Tensor::from<std::int64_t>({static_cast<std::int64_t>(v.size())},
                                    std::span<const std::int64_t>(v));
}

// Behind each sequence's length nothing counts, and every fifth target not either.
void ignore_some(model::Batch& b, const Tensor& lengths) {
  auto* targets = b.targets.mutable_data<std::int32_t>();
  const std::int64_t columns = b.targets.size(1);
  for (std::int64_t i = 0; i < b.targets.elements(); ++i) {
    const bool behind =
        lengths.defined() && i % columns >= lengths.data<std::int64_t>()[i / columns];
    if (behind || i % 5 == 3) targets[i] = model::kIgnore;
    b.counted += targets[i] == model::kIgnore ? 0 : 1;
  }
}

std::vector<double> doubles(const Tensor& t) {
  return ops::cast(t.detach(), DType::f64).to_vector<double>();
}

double root_mean_square(const std::vector<double>& v) {
  double squares = 0;
  for (const double x : v) squares += x * x;
  return v.empty() ? 0 : std::sqrt(squares / static_cast<double>(v.size()));
}

// "layers.0.attention" of "layers.0.attention.k.bias".
std::string layer_of(const std::string& name) {
  const std::size_t last = name.rfind('.');
  if (last == std::string::npos || last == 0) return {};
  const std::size_t before = name.rfind('.', last - 1);
  return before == std::string::npos ? std::string() : name.substr(0, before);
}

std::string group_of(const Named& t) { return t.group.empty() ? layer_of(t.name) : t.group; }

// Instruction sets may differ in the last bit of a random number, which decides how it is rounded
// to bf16: all see the numbers of one.
class Generic {
 public:
  Generic() { cpu::set_isa(cpu::Isa::generic); }

 private:
  cpu::SettingsScope restore_;
};

}  // namespace

DType parameter_type(DType precision) { return precision == DType::f64 ? DType::f64 : DType::f32; }

Tensor random_ids(const Shape& shape, std::int64_t limit, std::uint32_t stream) {
  Tensor ids = Tensor::empty(shape, DType::i32);
  auto* p = ids.mutable_data<std::int32_t>();
  for (std::int64_t i = 0; i < ids.elements(); ++i)
    p[i] = static_cast<std::int32_t>(philox({kSeed, 2, stream}, static_cast<std::uint64_t>(i))[0] %
                                     static_cast<std::uint32_t>(limit));
  return ids;
}

Tensor normal(const Shape& shape, double deviation, std::uint32_t stream, DType dtype) {
  const Generic generic;
  const Tensor exact = ops::random_normal(shape, 0, deviation, {kSeed, 1, stream}, DType::f32);
  return ops::cast(ops::cast(exact, DType::bf16), dtype);
}

Weights random_weights(const nn::Parameters& beginning) {
  const Generic generic;
  Weights weights;
  for (const nn::Parameter& p : beginning.all()) {
    const Tensor start = p.tensor.detach();
    Tensor value = ops::clone(start);
    if (start.rank() == 1) {
      // A gain of 1 becomes 1 ± 0.3, a bias of 0 ± 0.3.
      const Tensor moved = normal(start.shape(), 0.3, stream_of(p.name), DType::f32);
      auto* v = value.mutable_data<float>();
      for (std::int64_t i = 0; i < value.elements(); ++i) v[i] += moved.data<float>()[i];
    }
    weights.emplace(p.name, ops::cast(ops::cast(value, DType::bf16), DType::f32));
  }
  return weights;
}

Weights random_weights(const model::ModelConfig& config) {
  const Generic generic;
  return random_weights(model::build_model(config, {.seed = kSeed})->parameters());
}

nn::ParameterSource source_of(const Weights& weights) {
  return [&weights](const std::string& name, const Shape&) { return ops::clone(weights.at(name)); };
}

std::unique_ptr<model::Model> make_model(const model::ModelConfig& config, const Weights& weights,
                                         DType precision, Device device) {
  model::BuildOptions options;
  options.dtype = parameter_type(precision);
  options.device = device;
  if (!device.is_meta()) options.source = source_of(weights);
  return model::build_model(config, options);
}

void add_documents(model::Batch& batch) {
  const std::int64_t t = batch.tokens.size(1);
  batch.documents = Tensor::empty(batch.tokens.shape(), DType::i64);
  auto* d = batch.documents.mutable_data<std::int64_t>();
  for (std::int64_t i = 0; i < batch.documents.elements(); ++i)
    d[i] = i / t == 2 ? 0 : (i % t) / (5 + 8 * (i / t));  // 5 tokens each, 13 tokens each, one
}

model::Batch random_batch(const model::ModelConfig& c) {
  using model::Task;
  const std::int64_t n = kSequences, t = c.sizes.context;
  model::Batch b;
  if (c.kind == model::Kind::vit) {
    b.images = normal({n, c.sizes.channels, c.sizes.height, c.sizes.width}, 1, 1, DType::f32);
    b.targets = random_ids({n}, c.sizes.classes, 2);
    b.counted = n;
    return b;
  }
  b.tokens = random_ids({n, t}, c.sizes.vocabulary, 1);
  const Tensor lengths = integers({t, std::max<std::int64_t>(t - 5, 1), (t + 1) / 2});
  if (c.task != Task::language) b.lengths = lengths;
  if (c.attention.prefix) b.prefix_lengths = integers({t / 3, 0, t / 4 + 1});
  if (c.task == Task::classify) {
    b.targets = random_ids({n}, c.sizes.classes, 2);
    b.counted = n;
    return b;
  }
  const std::int64_t labels = c.task == Task::tag ? c.sizes.classes : c.vocabulary_of_target();
  std::int64_t written = t;
  if (c.task == Task::translate) {
    // Not the source's lengths: a mix-up of the two must show.
    written = std::max<std::int64_t>(t - 3, 1);
    b.target_tokens = random_ids({n, written}, labels, 3);
    b.target_lengths =
        integers({std::max<std::int64_t>(written - 7, 1), written, (written + 1) / 2});
  }
  b.targets = random_ids({n, written}, labels, 2);
  ignore_some(b, c.task == Task::translate ? b.target_lengths : b.lengths);
  return b;
}

model::Batch on_meta(const model::Batch& batch) {
  model::Batch b = batch;
  for (const auto tensor : model::kBatchTensors)
    if ((b.*tensor).defined()) b.*tensor = (b.*tensor).to(Device::meta);
  return b;
}

double error_of(const Tensor& got, const Tensor& want, Measure measure, double least) {
  if (!got.defined() || !want.defined() || got.shape() != want.shape()) return kInfinite;
  const std::vector<double> a = doubles(got), b = doubles(want);
  const double size = std::max(root_mean_square(b), least);
  std::vector<double> apart;
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    apart.push_back(std::abs(a[i] - b[i]));
    if (!std::isfinite(apart.back())) return kInfinite;
    if (apart.back() > 0) largest = std::max(largest, apart.back() / (std::abs(b[i]) + size));
  }
  if (size == 0 && largest > 0) return kAnyShare;
  if (measure == Measure::largest || largest == 0) return largest;
  return root_mean_square(apart) / size;
}

double root_mean_square(const Tensor& t) { return root_mean_square(doubles(t)); }

std::int64_t other_bits(const Tensor& a, const Tensor& b) {
  if (a.defined() != b.defined())
    return std::max(a.defined() ? a.elements() : b.elements(), INT64_C(1));
  if (!a.defined()) return 0;
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) return std::max(a.elements(), INT64_C(1));
  const Tensor x = ops::contiguous(a.detach()), y = ops::contiguous(b.detach());
  const std::size_t size = size_of(x.dtype());
  const auto* p = static_cast<const char*>(x.raw());
  const auto* q = static_cast<const char*>(y.raw());
  std::int64_t count = 0;
  for (std::size_t i = 0; i < x.bytes(); i += size)
    if (std::memcmp(p + i, q + i, size) != 0) ++count;
  return count;
}

std::vector<Difference> differences_of(const std::vector<Named>& got,
                                       const std::vector<Named>& want) {
  std::map<std::string, std::vector<double>> groups;
  std::vector<double> together;
  for (const Named& t : want) {
    if (!t.value.defined()) continue;
    const std::vector<double> values = doubles(t.value);
    std::ranges::copy(values, std::back_inserter(groups[group_of(t)]));
    if (!t.apart) std::ranges::copy(values, std::back_inserter(together));
  }
  const double least_of_all = kLeastShareOfAll * root_mean_square(together);
  std::vector<Difference> all;
  if (got.size() != want.size())
    all.push_back({tr("the number of tensors"), {}, kInfinite, kInfinite});
  for (std::size_t i = 0; i < std::min(got.size(), want.size()); ++i) {
    if (!got[i].value.defined() && !want[i].value.defined()) continue;
    const std::string group = group_of(want[i]);
    const double least =
        std::max(kLeastShareOfGroup * root_mean_square(groups[group]), least_of_all);
    all.push_back({want[i].name, group,
                   error_of(got[i].value, want[i].value, Measure::largest, least),
                   error_of(got[i].value, want[i].value, Measure::mean, least),
                   want[i].value.defined() ? want[i].value.elements() : 0});
  }
  return all;
}

}  // namespace heddle::check
