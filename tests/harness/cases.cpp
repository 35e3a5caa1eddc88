#include <utility>

#include "harness/harness.h"
#include "harness/values.h"

namespace heddle::harness {

namespace {

std::vector<Case>& all_cases() {
  static std::vector<Case> list;
  return list;
}

std::vector<Mutant>& all_mutants() {
  static std::vector<Mutant> list;
  return list;
}

}  // namespace

In act(Shape shape, Fill fill) {
  In in;
  in.shape = shape;
  in.fill = fill;
  return in;
}

In param(Shape shape, Fill fill) {
  In in = act(shape, fill);
  in.parameter = true;
  return in;
}

In index(Shape shape, std::int64_t bound, DType dtype) {
  In in = act(shape, Fill::index);
  in.bound = bound;
  in.index_dtype = dtype;
  in.differentiable = false;
  return in;
}

In given_index(Shape shape, std::vector<double> values, DType dtype) {
  In in = act(shape, Fill::given);
  in.index_dtype = dtype;
  in.differentiable = false;
  in.values = std::move(values);
  return in;
}

In constant(In in) {
  in.differentiable = false;
  return in;
}

void add_case(Case c) { all_cases().push_back(std::move(c)); }
const std::vector<Case>& cases() { return all_cases(); }
void add_mutant(Mutant m) { all_mutants().push_back(std::move(m)); }
const std::vector<Mutant>& mutants() { return all_mutants(); }

Fn elementwise(std::function<double(std::span<const double>)> f) {
  return [f = std::move(f)](std::span<const Tensor> inputs) {
    Shape shape = inputs[0].shape();
    for (const Tensor& x : inputs) shape = broadcast_shapes(shape, x.shape(), "elementwise");
    std::vector<std::vector<double>> columns;
    for (const Tensor& x : inputs) columns.push_back(to_doubles(views::broadcast(x, shape)));
    std::vector<double> out;
    std::vector<double> arguments(inputs.size());
    for (std::int64_t i = 0; i < elements_of(shape); ++i) {
      for (std::size_t j = 0; j < columns.size(); ++j)
        arguments[j] = columns[j][static_cast<std::size_t>(i)];
      out.push_back(f(arguments));
    }
    return Tensors{make_tensor(shape, DType::f64, out)};
  };
}

}  // namespace heddle::harness
