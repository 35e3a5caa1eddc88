#include "harness/harness.h"
#include "ops/linear_cross_entropy/linear_cross_entropy.h"
#include "ops/linear_cross_entropy/linear_cross_entropy.kernels.h"

namespace heddle::harness::linear_cross_entropy_cases {
namespace {

using ops::CrossEntropyOptions;
using ops::Reduction;

constexpr std::int64_t kIgnored = -100;

// Targets in [0, classes), every `gap`-th one ignored.
In targets(const Shape& shape, std::int64_t classes, std::int64_t gap, DType dtype = DType::i64) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < elements_of(shape); ++i)
    values.push_back(
        static_cast<double>(gap > 0 && i % gap == gap - 1 ? kIgnored : i * 7919 % classes));
  return given_index(shape, values, dtype);
}

using Loss = Tensor (*)(const Tensor&, const Tensor&, const CrossEntropyOptions&);

struct GivenLoss {
  const char* given;
  Loss op, definition;
};

const GivenLoss kGivenLosses[] = {{"logits: ", ops::cross_entropy, ops::reference::cross_entropy},
                                  {"log-probabilities: ", ops::nll_loss, ops::reference::nll_loss}};

// Rows and targets, and class weights where `weighted`.
void add_rows(const GivenLoss& loss, const std::string& name, const Shape& shape, const In& t,
              const CrossEntropyOptions& options, bool weighted) {
  Case c;
  c.op = "linear_cross_entropy";
  c.name = loss.given + name;
  c.inputs = {act(shape), t};
  if (weighted) c.inputs.push_back(constant(param({shape.back()}, Fill::positive)));
  const auto call = [options](Loss f) {
    return [options, f](std::span<const Tensor> in) {
      CrossEntropyOptions o = options;
      if (in.size() > 2) o.class_weights = in[2];
      return Tensors{f(in[0], in[1], o)};
    };
  };
  c.run = call(loss.op);
  c.reference = call(loss.definition);
  c.reduction = std::max<std::int64_t>(shape.back(), 1);
  add_case(c);
}

void add_given(const std::string& name, const Shape& shape, const In& t,
               const CrossEntropyOptions& options = {}, bool weighted = false) {
  for (const GivenLoss& loss : kGivenLosses) add_rows(loss, name, shape, t, options, weighted);
}

struct Classifier {
  Shape x;  // [..., K]
  std::int64_t classes = 1;
  bool bias = true;
  bool weighted = false;
};

void add_fused(const std::string& name, const Classifier& k, const In& t,
               const CrossEntropyOptions& options = {}) {
  Case c;
  c.op = "linear_cross_entropy";
  c.name = name;
  c.inputs = {act(k.x), t, param({k.classes, k.x.back()})};
  if (k.weighted) c.inputs.push_back(constant(param({k.classes}, Fill::positive)));
  if (k.bias) c.inputs.push_back(param({k.classes}));
  const auto call = [options, k](auto op) {
    return [options, k, op](std::span<const Tensor> in) {
      CrossEntropyOptions o = options;
      if (k.weighted) o.class_weights = in[3];
      return Tensors{op(in[0], in[2], k.bias ? in.back() : Tensor(), in[1], o)};
    };
  };
  c.run = call(ops::linear_cross_entropy);
  c.reference = call(ops::reference::linear_cross_entropy);
  c.reduction = std::max({k.classes, k.x.back(), t.shape.empty() ? 1 : elements_of(t.shape)});
  // bf16 rounds the weight: logits of size √K are off by a part of √K·2⁻⁹, and exp() makes that a
  // relative error of every softmax term.
  c.slack = 4;
  add_case(c);
}

const bool registered = [] {
  const CrossEntropyOptions smooth{kIgnored, 0.1, Reduction::mean};
  const CrossEntropyOptions summed{kIgnored, 0, Reduction::sum};
  const CrossEntropyOptions each{kIgnored, 0, Reduction::none};
  const CrossEntropyOptions each_smooth{kIgnored, 0.3, Reduction::none};
  add_given("one row", {5}, targets({}, 5, 0));
  add_given("one class", {3, 1}, targets({3}, 1, 0));
  add_given("odd", {7, 13}, targets({7}, 13, 3));
  add_given("i32", {7, 13}, targets({7}, 13, 3, DType::i32));
  add_given("two dimensions of rows", {2, 3, 35}, targets({2, 3}, 35, 4));
  add_given("smoothed", {7, 13}, targets({7}, 13, 3), smooth);
  add_given("summed", {7, 13}, targets({7}, 13, 3), summed);
  add_given("all ignored", {3, 5}, targets({3}, 5, 1));
  add_given("no rows", {0, 5}, targets({0}, 5, 0));
  add_given("several pieces", {70, 600}, targets({70}, 600, 5), {kIgnored, 0.2, Reduction::sum});
  add_given("each row by itself", {2, 4, 13}, targets({2, 4}, 13, 3), each);
  add_given("each row by itself, no dimension of rows", {5}, targets({}, 5, 0), each);
  add_given("each row by itself, no rows", {0, 5}, targets({0}, 5, 0), each);
  add_given("weighted", {7, 13}, targets({7}, 13, 3), {}, true);
  add_given("weighted, smoothed", {2, 9, 35}, targets({2, 9}, 35, 4), smooth, true);
  add_given("weighted, summed, i32", {7, 13}, targets({7}, 13, 3, DType::i32), summed, true);
  add_given("weighted, each row, smoothed", {7, 35}, targets({7}, 35, 3), each_smooth, true);
  add_given("weighted, all ignored", {3, 5}, targets({3}, 5, 1), smooth, true);
  add_given("weighted, several pieces", {70, 600}, targets({70}, 600, 5), each_smooth, true);
  // Rows that GPUs share among blocks; the last one's part is shorter.
  add_given("long rows", {5, 4808}, targets({5}, 4808, 4));
  add_given("long rows, weighted, smoothed", {5, 4808}, targets({5}, 4808, 4), smooth, true);

  add_fused("one row", {{4}, 5}, targets({}, 5, 0));
  add_fused("odd", {{7, 6}, 13}, targets({7}, 13, 3));
  add_fused("i32, no bias", {{7, 6}, 13, false}, targets({7}, 13, 3, DType::i32));
  add_fused("smoothed", {{2, 4, 6}, 35}, targets({2, 4}, 35, 3), smooth);
  add_fused("summed", {{7, 6}, 13}, targets({7}, 13, 3), summed);
  add_fused("all ignored", {{3, 4}, 5}, targets({3}, 5, 1));
  add_fused("no rows", {{0, 4}, 5}, targets({0}, 5, 0));
  // 352 rows at a time, and the rest.
  add_fused("several chunks", {{690, 3}, 2100}, targets({690}, 2100, 7), smooth);
  // ... whose last vector is not whole.
  add_fused("long rows", {{9, 3}, 5003}, targets({9}, 5003, 4), summed);
  add_fused("long rows, weighted, smoothed", {{9, 3}, 5003, true, true}, targets({9}, 5003, 4),
            smooth);
  add_fused("each row by itself", {{2, 4, 6}, 13}, targets({2, 4}, 13, 3), each);
  add_fused("each row by itself, no rows", {{0, 4}, 5}, targets({0}, 5, 0), each);
  add_fused("weighted", {{7, 6}, 13, true, true}, targets({7}, 13, 3));
  add_fused("weighted, summed, no bias", {{7, 6}, 13, false, true}, targets({7}, 13, 3), summed);
  add_fused("weighted, each row, smoothed, several chunks", {{690, 3}, 2100, true, true},
            targets({690}, 2100, 7), each_smooth);

  using K = cpu::LinearCrossEntropyKernels;
  add_kernel_mutant<K>("linear_cross_entropy", "the smoothing forgets the class weights", [](K& k) {
    k.rows = [](const cpu::CrossEntropyArgs& a) noexcept {
      cpu::CrossEntropyArgs b = a;
      if (b.class_weights != nullptr) b.class_weight_sum = static_cast<double>(b.classes);
      sound<K>().rows(b);
    };
  });
  add_kernel_mutant<K>("linear_cross_entropy", "class weights do not reach the gradient", [](K& k) {
    k.rows = [](const cpu::CrossEntropyArgs& a) noexcept {
      cpu::CrossEntropyArgs b = a;
      if (b.losses == nullptr) b.class_weights = nullptr;
      sound<K>().rows(b);
    };
  });
  add_kernel_mutant<K>("linear_cross_entropy", "rows share the first one's cotangent", [](K& k) {
    k.rows = [](const cpu::CrossEntropyArgs& a) noexcept {
      cpu::CrossEntropyArgs b = a;
      if (b.row_scales != nullptr && b.logits_dtype == DType::f32)
        b.scale *= static_cast<const float*>(b.row_scales)[0];
      if (b.logits_dtype == DType::f32) b.row_scales = nullptr;
      sound<K>().rows(b);
    };
  });
  add_kernel_mutant<K>("linear_cross_entropy", "log-probabilities are taken for logits", [](K& k) {
    k.rows = [](const cpu::CrossEntropyArgs& a) noexcept {
      cpu::CrossEntropyArgs b = a;
      b.log_probs = false;
      sound<K>().rows(b);
    };
  });
  add_kernel_mutant<K>("linear_cross_entropy", "the gradient is not smoothed", [](K& k) {
    k.rows = [](const cpu::CrossEntropyArgs& a) noexcept {
      cpu::CrossEntropyArgs b = a;
      if (b.gradient != nullptr && b.smoothing != 0) b.smoothing = 0;
      sound<K>().rows(b);
    };
  });
  add_kernel_mutant<K>("linear_cross_entropy", "the bias gradient is that of the last chunk",
                       [](K& k) {
                         k.column_sums = [](const cpu::ColumnSumArgs& a) noexcept {
                           cpu::ColumnSumArgs b = a;
                           b.accumulate = false;
                           sound<K>().column_sums(b);
                         };
                       });
  add_kernel_mutant<K>("linear_cross_entropy", "the loss's own gradient is taken for 1",
                       [](K& k) { k.rescale = [](const cpu::RescaleArgs&) noexcept {}; });
  add_kernel_mutant<K>("linear_cross_entropy", "the mean's divisor is missing in the gradient",
                       [](K& k) {
                         k.rows = [](const cpu::CrossEntropyArgs& a) noexcept {
                           cpu::CrossEntropyArgs b = a;
                           b.scale = 1;
                           sound<K>().rows(b);
                         };
                       });
  return true;
}();

}  // namespace
}  // namespace heddle::harness::linear_cross_entropy_cases
