#include <algorithm>
#include <limits>

#include "harness/harness.h"
#include "harness/values.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/reduce.kernels.h"

namespace heddle::harness::reduce_cases {
namespace {

using Op = Tensor (*)(const Tensor&, int, bool);

// The definition: element by element, over dimension `dim`.
Tensor reduced(const Tensor& x, int dim, bool keep, double start, double (*join)(double, double),
               double scale) {
  Shape shape = x.shape();
  std::int64_t outer = 1, inner = 1;
  for (int i = 0; i < dim; ++i) outer *= shape[i];
  for (int i = dim + 1; i < shape.rank(); ++i) inner *= shape[i];
  const std::int64_t length = shape[dim];
  if (keep)
    shape[dim] = 1;
  else
    shape.erase(dim);
  const std::vector<double> v = to_doubles(x);
  std::vector<double> out;
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t i = 0; i < inner; ++i) {
      double value = start;
      for (std::int64_t l = 0; l < length; ++l)
        value = join(value, v[static_cast<std::size_t>((o * length + l) * inner + i)]);
      out.push_back(value * scale);
    }
  return make_tensor(shape, DType::f64, out);
}

double plus(double a, double b) { return a + b; }
double larger(double a, double b) { return std::max(a, b); }

void add(const char* name, Op op, bool is_max, bool is_mean) {
  struct Where {
    Shape shape;
    int dim;
  };
  const Where places[] = {{{5, 37}, 1}, {{37, 70}, 0},   {{3, 9, 35}, 1},
                          {{1}, 0},     {{2, 20000}, 1}, {{300, 130}, 0}};
  for (const Where& w : places)
    for (const bool keep : {false, true}) {
      Case c;
      c.op = "reduce";
      c.name = std::string(name) + to_string(w.shape) + (keep ? " keep" : "");
      c.inputs = {act(w.shape)};
      c.reduction = w.shape[w.dim];
      c.run = [=](std::span<const Tensor> in) {
        return Tensors{op(in[0], w.dim == w.shape.rank() - 1 ? -1 : w.dim, keep)};
      };
      c.reference = [=](std::span<const Tensor> in) {
        const double scale = is_mean ? 1.0 / static_cast<double>(w.shape[w.dim]) : 1.0;
        return Tensors{reduced(in[0], w.dim, keep,
                               is_max ? -std::numeric_limits<double>::infinity() : 0.0,
                               is_max ? larger : plus, scale)};
      };
      // In bf16 equal maxima are common and share the gradient, which f64 sees in the same values.
      add_case(c);
    }
}

void add_all(const char* name, const Shape& shape, Tensor (*op)(const Tensor&), bool is_mean) {
  Case c;
  c.op = "reduce";
  c.name = std::string(name) + to_string(shape);
  c.inputs = {act(shape, Fill::positive)};  // no cancellation: the tolerance is relative to the sum
  c.reduction = std::max<std::int64_t>(elements_of(shape), 1);
  c.run = [op](std::span<const Tensor> in) { return Tensors{op(in[0])}; };
  c.reference = [is_mean](std::span<const Tensor> in) {
    double total = 0;
    for (const double v : to_doubles(in[0])) total += v;
    if (is_mean) total /= static_cast<double>(in[0].elements());
    return Tensors{make_tensor({}, DType::f64, {total})};
  };
  add_case(c);
}

void add_sum_to(const char* name, const Shape& from, const Shape& to) {
  Case c;
  c.op = "reduce";
  c.name = std::string("sum_to ") + name;
  c.inputs = {act(from)};
  c.reduction = elements_of(from) / std::max<std::int64_t>(elements_of(to), 1);
  c.run = [to](std::span<const Tensor> in) { return Tensors{ops::sum_to(in[0], to)}; };
  c.reference = [to](std::span<const Tensor> in) {
    const std::vector<double> v = to_doubles(in[0]);
    // Which element of `to` each element of x belongs to, by broadcasting its numbers.
    std::vector<double> numbers;
    for (std::int64_t i = 0; i < elements_of(to); ++i) numbers.push_back(static_cast<double>(i));
    const auto home =
        to_doubles(views::broadcast(make_tensor(to, DType::f64, numbers), in[0].shape()));
    std::vector<double> out(numbers.size(), 0.0);
    for (std::size_t i = 0; i < v.size(); ++i) out[static_cast<std::size_t>(home[i])] += v[i];
    return Tensors{make_tensor(to, DType::f64, out)};
  };
  // bf16 rounds once per run of dimensions summed.
  c.slack = 3;
  add_case(c);
}

const bool registered = [] {
  add("sum", ops::sum, false, false);
  add("mean", ops::mean, false, true);
  add("max", ops::max, true, false);
  add_all("sum_all", {7, 5}, ops::sum_all, false);
  add_all("sum_all", {0, 5}, ops::sum_all, false);
  add_all("sum_all", {50021}, ops::sum_all, false);
  add_all("mean_all", {3, 11}, ops::mean_all, true);
  add_sum_to("rows", {6, 5}, {5});
  add_sum_to("both ends", {3, 5, 4}, {1, 5, 1});
  add_sum_to("scalar", {3, 5}, {});
  add_sum_to("middle", {2, 3, 9}, {2, 1, 9});

  using K = cpu::ReduceKernels;
  add_kernel_mutant<K>("reduce", "the last step is left out", [](K& k) {
    k.forward = [](const cpu::ReduceArgs& a) noexcept {
      cpu::ReduceArgs b = a;
      if (b.outer == 1 && b.length > 1) b.length -= 1;
      sound<K>().forward(b);
    };
  });
  add_kernel_mutant<K>("reduce", "the mean is a sum", [](K& k) {
    k.forward = [](const cpu::ReduceArgs& a) noexcept {
      cpu::ReduceArgs b = a;
      b.scale = 1;
      sound<K>().forward(b);
    };
  });
  return true;
}();

}  // namespace
}  // namespace heddle::harness::reduce_cases
