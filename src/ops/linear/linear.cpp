#include "ops/linear/linear.h"

#include <array>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ops/binary/binary.h"
#include "ops/copy/copy.h"
#include "ops/linear/linear.call.h"
#include "ops/matmul/matmul.h"
#include "ops/support/op.h"
#include "ops/unary/unary.h"
#include "ops/view/view.h"

namespace heddle::ops {

namespace {

Shape with_last(Shape shape, std::int64_t size) {
  shape[shape.rank() - 1] = size;
  return shape;
}

std::int64_t rows_before_last(const Shape& shape) {
  std::int64_t rows = 1;
  for (int i = 0; i + 1 < shape.rank(); ++i) rows *= shape[i];
  return rows;
}

Tensor as_rows(const Tensor& x) {
  return x.rank() == 2 ? x : as_matrix(x, rows_before_last(x.shape()), x.shape().back());
}

void check_layer(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  check_compute({op, "x", x});
  check_rank_at_least({op, "x", x}, 1);
  check_rank({op, "weight", weight}, 2);
  check_same_device({op, "weight", weight}, x);
  const bool narrow = x.dtype() != DType::f64 && weight.dtype() == DType::bf16;
  if (!narrow) check_dtype({op, "weight", weight}, parameter_dtype(x));
  if (weight.size(1) != x.size(-1))
    fail(ErrorCode::shape_mismatch, op, "argument weight does not fit x, " + x.describe(),
         "[N, " + std::to_string(x.size(-1)) + "]", weight.describe());
  if (bias.defined()) check_parameter({op, "bias", bias}, x, {weight.size(0)});
}

// One layer of several: an error says which.
template <class Name>
void check_layer_of(const char* op, const Tensor& x, const LinearWeights& layer, Name name) {
  try {
    check_layer(op, x, layer.weight, layer.bias);
  } catch (const Error& e) {
    fail(e.code(), op, name() + ": " + e.problem(), e.expected(), e.got());
  }
}

void check_options(const Tensor& x, const Tensor& weight, const LinearOptions& options) {
  if (options.wide && (options.residual.defined() || options.activation != Activation::none))
    fail(ErrorCode::invalid_argument, "linear", "option wide", "neither activation nor residual",
         options.residual.defined() ? "a residual" : "an activation");
  if (options.residual.defined()) {
    check_dtype({"linear", "residual", options.residual}, x.dtype());
    check_shape({"linear", "residual", options.residual}, with_last(x.shape(), weight.size(0)));
    check_same_device({"linear", "residual", options.residual}, x);
  }
}

Tensor empty_result(const Tensor& x, const Tensor& weight, DType dtype) {
  return Tensor::empty(with_last(x.shape(), weight.size(0)), dtype, x.device());
}

// y = rows · Wᵀ + bias
Product forward_product(const Tensor& rows, const Tensor& weight, const Tensor& bias,
                        const Tensor& y) {
  Product p;
  p.a = rows;                            // [rows, K]
  p.b = views::transpose(weight, 0, 1);  // [K, N]
  p.of_weight = true;
  p.bias = dense_or_none(bias);
  p.c = y;
  return p;
}

void run(Product& product) { launch(ProductsCall{std::span(&product, 1), {}}); }

// dx = dsum · W
Product input_gradient(const Tensor& dsum, const Tensor& weight, const Tensor& dx) {
  Product p;
  p.a = dsum;
  p.b = weight;
  p.of_weight = true;
  p.c = dx;
  return p;
}

// dW[n, k] = Σ_rows dsum[row, n] · x[row, k]
Product weight_gradient(const Tensor& dsum, const Tensor& x, DType dtype) {
  Product p;
  p.a = views::transpose(dsum, 0, 1);
  p.b = x;  // [rows, K]
  p.c = Tensor::empty({dsum.size(1), x.size(1)}, dtype, x.device());
  return p;
}

// The slope of the activation, kept for the backward pass.
struct Slope {
  Tensor tensor;      // what the product wrote as its derivative; undefined without activation
  bool relu = false;  // the output of a relu instead, of which only the sign is asked
  Activation activation = Activation::none;
  Tensor bias = {};
};

// Nothing is left to do where it has neither slope nor dbias: dsum is the cotangent then. Where
// nobody else wants the cotangent, dsum may take its place.
RowSums row_sums(const Tensor& cotangent, const Slope& slope, bool wants_bias,
                 bool in_place = false) {
  RowSums s;
  if (!slope.tensor.defined() && !wants_bias) {
    s.dsum = as_rows(cotangent);
    return s;
  }
  s.dy = as_rows(dense(cotangent));
  s.slope = slope.tensor;
  s.of_relu = slope.relu;
  s.activation = slope.activation;
  s.bias = dense_or_none(slope.bias);
  s.dsum = slope.tensor.defined() && !in_place ? empty_like(s.dy) : s.dy;
  if (wants_bias) s.dbias = Tensor::empty({s.dy.size(1)}, parameter_dtype(s.dy), s.dy.device());
  return s;
}

struct LayerGradient {
  Tensor dx, dw, dbias;  // undefined where not wanted
};

struct WantedOfLayer {
  bool x, weight;
};

// For one layer, whose dbias `sums` makes, if anything: dx = dsum·W, elementwise · factor where
// that is defined, and dW = dsumᵀ·x. Their temporaries are released at the end of this function.
LayerGradient layer_gradient(RowSums sums, const Tensor& x, const Tensor& weight,
                             const WantedOfLayer& wanted, const Tensor& factor = {}) {
  LayerGradient g;
  g.dbias = sums.dbias;
  const Tensor dsum = sums.dsum;
  if (sums.slope.defined()) {  // the products read its result
    launch(ProductsCall{{}, std::span(&sums, 1)});
    sums = {};
  }
  std::array<Product, 2> products;
  std::size_t count = 0;
  if (wanted.x) {
    g.dx = empty_like(x);
    products[count] = input_gradient(dsum, weight, g.dx);
    products[count++].factor = factor;
  }
  if (wanted.weight) {
    products[count] = weight_gradient(dsum, as_rows(x), weight.dtype());
    g.dw = products[count++].c;
  }
  const std::span<RowSums> beside(&sums, sums.dbias.defined() ? 1 : 0);
  if (count > 0 || !beside.empty()) launch(ProductsCall{std::span(products).first(count), beside});
  return g;
}

// The slope, as the tape keeps it.
struct KeptSlope {
  Saved tensor, bias;
  bool relu;
  Activation activation;

  Slope get() const { return {tensor.get(), relu, activation, bias.get()}; }
};

struct Kept {
  Saved x, weight;
  KeptSlope slope;
};

void backward(VjpContext& c, const Kept& kept) {
  const Tensor& x = kept.x.get();
  const Tensor dy = cast(c.cotangent(), x.dtype());  // of a wide y it is f32
  if (c.needs(3)) c.add(3, dy);
  if (!c.needs(0) && !c.needs(1) && !c.needs(2)) return;
  const LayerGradient g = layer_gradient(row_sums(dy, kept.slope.get(), c.needs(2)), x,
                                         kept.weight.get(), {c.needs(0), c.needs(1)});
  if (g.dbias.defined()) c.add(2, g.dbias);
  if (g.dx.defined()) c.add(0, g.dx);
  if (g.dw.defined()) c.add(1, g.dw);
}

struct KeptMany {
  Saved x;
  std::vector<Saved> weights;
};

struct Gradient {
  int input;
  Tensor tensor;
};

// Input 0 is x, 1 + 2i and 2 + 2i are the weight and the bias of output i.
//   dx = Σ_i dy_i·W_i, dW_i = dy_iᵀ·x, dbias_i = Σ_rows dy_i
// dx grows product by product.
std::vector<Gradient> gradients_of_many(const VjpContext& c, const KeptMany& kept) {
  const Tensor& x = kept.x.get();
  const auto weight = [&](int i) { return kept.weights[static_cast<std::size_t>(i)].get(); };
  const int layers = static_cast<int>(kept.weights.size());
  std::vector<Gradient> gradients;
  std::vector<RowSums> sums;
  std::vector<std::pair<int, Tensor>> dsums;  // of the layers whose outputs were used
  for (int i = 0; i < layers; ++i) {
    if (!c.cotangent(i).defined()) continue;
    RowSums s = row_sums(c.cotangent(i), {}, c.needs(2 + 2 * i));
    dsums.emplace_back(i, s.dsum);
    if (!s.dbias.defined()) continue;
    gradients.push_back({2 + 2 * i, s.dbias});
    sums.push_back(std::move(s));
  }
  std::vector<Product> products;
  products.reserve(2 * dsums.size());
  if (c.needs(0) && !dsums.empty()) {
    const Tensor dx = empty_like(x);
    for (const auto& [i, dsum] : dsums) {
      products.push_back(input_gradient(dsum, weight(i), dx));
      if (products.size() > 1) products.back().residual = dx;
    }
    gradients.push_back({0, dx});
  }
  const Tensor rows = as_rows(x);  // one for all: it is prepared once
  for (const auto& [i, dsum] : dsums) {
    if (!c.needs(1 + 2 * i)) continue;
    products.push_back(weight_gradient(dsum, rows, weight(i).dtype()));
    gradients.push_back({1 + 2 * i, products.back().c});
  }
  if (!products.empty() || !sums.empty()) launch(ProductsCall{products, sums});
  return gradients;
}

struct KeptPair {
  Saved x, first, hidden, second;
  KeptSlope slope;
};

// Inputs: x, first weight and bias, second weight and bias. With h = activation(sum) between them:
//   dsum = (dy·W2) · activation'(sum), dW2 = dyᵀ·h, dbias2 = Σ_rows dy
//   dx = dsum·W1, dW1 = dsumᵀ·x, dbias1 = Σ_rows dsum
void backward_pair(VjpContext& c, const KeptPair& kept) {
  const bool below = c.needs(0) || c.needs(1) || c.needs(2);
  const Slope slope = kept.slope.get();
  const bool on_the_way = multiplies_on_the_way(c.cotangent().device());
  const LayerGradient second =
      layer_gradient(row_sums(c.cotangent(), {}, c.needs(4)), kept.hidden.get(), kept.second.get(),
                     {below, c.needs(3)}, on_the_way ? slope.tensor : Tensor());
  if (c.needs(3)) c.add(3, second.dw);
  if (c.needs(4)) c.add(4, second.dbias);
  if (!below) return;
  const LayerGradient first =
      layer_gradient(row_sums(second.dx, on_the_way ? Slope{} : slope, c.needs(2), true),
                     kept.x.get(), kept.first.get(), {c.needs(0), c.needs(1)});
  if (c.needs(0)) c.add(0, first.dx);
  if (c.needs(1)) c.add(1, first.dw);
  if (c.needs(2)) c.add(2, first.dbias);
}

// Wide results stay as they are made.
Tensor linear_of_halves(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const LinearOptions& options) {
  LinearOptions o = options;
  if (options.residual.defined()) check_dtype({"linear", "residual", options.residual}, x.dtype());
  o.residual = wide(options.residual);
  const Tensor y = linear(wide(x), weight, bias, o);
  return options.wide ? y : to_half(y);
}

}  // namespace

// With sum = x·Wᵀ + bias and dsum = dy · activation'(sum), whose second factor the product stores
// along with y:
//   dx = dsum·W, dW = dsumᵀ·x, dbias = Σ_rows dsum, dresidual = dy
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias,
              const LinearOptions& options) {
  if (is_half(x)) return linear_of_halves(x, weight, bias, options);
  check_layer("linear", x, weight, bias);
  check_options(x, weight, options);
  if (!has_routine<ProductsCall>(x)) return reference::linear(x, weight, bias, options);
  const Tensor& residual = options.residual;
  Tensor y = empty_result(x, weight, options.wide ? parameter_dtype(x) : x.dtype());
  const bool on_tape = tracked({&x, &weight, &bias, &residual});
  const bool from_output = options.activation == Activation::relu && !residual.defined();
  Tensor slope;
  if (on_tape && options.activation != Activation::none && !from_output) slope = empty_like(y);
  {
    Product p = forward_product(as_rows(x), weight, bias, y);
    p.activation = options.activation;
    p.derivative = slope;
    p.residual = dense_or_none(residual);
    run(p);
  }
  if (on_tape) {
    const Kept kept{Saved(x), Saved(weight),
                    KeptSlope{Saved(from_output ? y.detach() : slope), Saved(bias), from_output,
                              options.activation}};
    record("linear", {&x, &weight, &bias, &residual}, {&y},
           [kept](VjpContext& c) { backward(c, kept); });
  }
  return y;
}

std::vector<Tensor> linear_many(const Tensor& x, std::span<const LinearWeights> weights) {
  if (is_half(x)) {
    std::vector<Tensor> all = linear_many(wide(x), weights);
    for (Tensor& y : all) y = to_half(y);
    return all;
  }
  check_compute({"linear_many", "x", x});
  for (std::size_t i = 0; i < weights.size(); ++i)
    check_layer_of("linear_many", x, weights[i],
                   [i] { return "weights[" + std::to_string(i) + "]"; });
  std::vector<Tensor> outputs;
  outputs.reserve(weights.size());
  if (weights.empty()) return outputs;
  if (!has_routine<ProductsCall>(x)) {
    for (const auto& [weight, bias] : weights)
      outputs.push_back(reference::linear(x, weight, bias, {}));
    return outputs;
  }
  {
    const Tensor rows = as_rows(x);
    std::vector<Product> products;
    products.reserve(weights.size());
    for (const auto& [weight, bias] : weights) {
      outputs.push_back(empty_result(x, weight, x.dtype()));
      products.push_back(forward_product(rows, weight, bias, outputs.back()));
    }
    launch(ProductsCall{products, {}});
  }
  std::vector<const Tensor*> inputs = {&x};
  inputs.reserve(1 + 2 * weights.size());
  for (const auto& [weight, bias] : weights) {
    inputs.push_back(&weight);
    inputs.push_back(&bias);
  }
  if (!tracked(inputs)) return outputs;
  KeptMany kept{Saved(x), {}};
  kept.weights.reserve(weights.size());
  for (const LinearWeights& w : weights) kept.weights.emplace_back(w.weight);
  std::vector<Tensor*> results;
  results.reserve(outputs.size());
  for (Tensor& y : outputs) results.push_back(&y);
  auto vjp = [kept](VjpContext& c) {
    for (const Gradient& g : gradients_of_many(c, kept)) c.add(g.input, g.tensor);
  };
  autograd::record_vjp("linear_many", inputs, results,
                       std::make_unique<autograd::LambdaVjp<decltype(vjp)>>(std::move(vjp)));
  return outputs;
}

Tensor linear_pair(const Tensor& x, const LinearWeights& first, Activation activation,
                   const LinearWeights& second) {
  if (is_half(x)) return to_half(linear_pair(wide(x), first, activation, second));
  check_compute({"linear_pair", "x", x});
  check_layer_of("linear_pair", x, first, [] { return std::string("first"); });
  const auto check_second = [&](const Tensor& hidden) {
    check_layer_of("linear_pair", hidden, second, [] { return std::string("second"); });
  };
  if (!has_routine<ProductsCall>(x)) {
    LinearOptions options;
    options.activation = activation;
    const Tensor hidden = reference::linear(x, first.weight, first.bias, options);
    check_second(hidden);
    return reference::linear(hidden, second.weight, second.bias, {});
  }
  const bool on_tape = tracked({&x, &first.weight, &first.bias, &second.weight, &second.bias});
  const Tensor hidden = empty_result(x, first.weight, x.dtype());
  Tensor slope;
  if (on_tape && activation != Activation::none) slope = empty_like(hidden);
  {
    Product p = forward_product(as_rows(x), first.weight, first.bias, hidden);
    p.activation = activation;
    p.derivative = slope;
    run(p);
  }
  check_second(hidden);
  Tensor y = empty_result(hidden, second.weight, x.dtype());
  {
    Product p = forward_product(as_rows(hidden), second.weight, second.bias, y);
    run(p);
  }
  if (on_tape) {
    const KeptPair kept{Saved(x), Saved(first.weight), Saved(hidden), Saved(second.weight),
                        KeptSlope{Saved(slope), Saved(first.bias), false, activation}};
    record("linear_pair", {&x, &first.weight, &first.bias, &second.weight, &second.bias}, {&y},
           [kept](VjpContext& c) { backward_pair(c, kept); });
  }
  return y;
}

// The weight is rounded to x's type; sums, and everything computed from them, are in f32 when x is
// bf16.
Tensor reference::linear(const Tensor& x, const Tensor& weight, const Tensor& bias,
                         const LinearOptions& options) {
  const DType sums = parameter_dtype(x);
  const Tensor rows = cast(reshape(x, {rows_before_last(x.shape()), x.size(-1)}), sums);
  Tensor y = matmul(rows, transpose(cast(cast(weight, x.dtype()), sums), 0, 1));
  if (bias.defined()) y = add(y, bias);
  switch (options.activation) {
    case Activation::none: break;
    case Activation::relu: y = relu(y); break;
    case Activation::gelu: y = gelu(y); break;
    case Activation::gelu_tanh: y = gelu_tanh(y); break;
    case Activation::silu: y = silu(y); break;
  }
  y = reshape(y, with_last(x.shape(), weight.size(0)));
  if (options.residual.defined()) y = add(y, cast(options.residual, sums));
  return options.wide ? y : cast(y, x.dtype());
}

}  // namespace heddle::ops
