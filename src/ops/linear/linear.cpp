#include "ops/linear/linear.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/cpu/gemm/turns.h"
#include "backend/cpu/threads.h"
#include "ops/binary/binary.h"
#include "ops/copy/copy.h"
#include "ops/linear/linear.kernels.h"
#include "ops/matmul/matmul.h"
#include "ops/support/op.h"
#include "ops/support/product.h"
#include "ops/unary/unary.h"
#include "ops/view/view.h"

namespace heddle::ops {

namespace {

// Rows of x packed at a time for the weight's gradient. Longer ones are added up in the product, so
// that the packed copy of x stays small; the weight's gradient goes through memory once for each.
constexpr std::int64_t kGradientRows = 4096;

cpu::Activation kernel_activation(Activation a) {
  switch (a) {
    case Activation::none: return cpu::Activation::none;
    case Activation::relu: return cpu::Activation::relu;
    case Activation::gelu: return cpu::Activation::gelu;
    case Activation::gelu_tanh: return cpu::Activation::gelu_tanh;
    case Activation::silu: return cpu::Activation::silu;
  }
  return cpu::Activation::none;
}

std::int64_t rows_before_last(const Shape& shape) {
  std::int64_t rows = 1;
  for (int i = 0; i + 1 < shape.rank(); ++i) rows *= shape[i];
  return rows;
}

Shape with_last(Shape shape, std::int64_t size) {
  shape[shape.rank() - 1] = size;
  return shape;
}

double product_flops(std::int64_t m, std::int64_t n, std::int64_t k) {
  return 2 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
}

struct Sizes {
  std::int64_t rows = 0, n = 0, k = 0;
  double flops() const { return product_flops(rows, n, k); }
};

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

// What the forward product writes, and the tensors its epilogue reads.
struct Forward {
  Tensor y, slope;  // slope: the activation's derivative; undefined when nobody asks for it
  Tensor bias, residual;
  cpu::Activation activation = cpu::Activation::none;
};

// What the activation was, as its output goes backward.
struct Slope {
  Tensor tensor;      // the derivative; undefined without activation
  bool relu = false;  // the output of a relu instead, of which only the sign is asked
};

struct SumGradient {
  Tensor dsum;   // [rows, N]
  Tensor dbias;  // [N], where wanted
};

// Elementwise gradients that do not depend on each other, run together.
class SumGradients {
 public:
  // dsum = dy · slope, dbias = Σ_rows dsum; both are there after run().
  SumGradient add(const Tensor& cotangent, const Slope& slope, bool wants_bias) {
    const std::int64_t n = cotangent.shape().back();
    const std::int64_t rows = rows_before_last(cotangent.shape());
    const bool active = slope.tensor.defined();
    if (!active && !wants_bias) return {as_matrix(cotangent, rows, n), Tensor()};
    const Tensor dy = views::reshape(dense(cotangent), {rows, n});
    SumGradient g{active ? empty_like(dy) : dy, Tensor()};
    Tensor partial;
    if (wants_bias) {
      g.dbias = Tensor::empty({n}, parameter_dtype(dy), dy.device());
      const PurposeScope scope(Purpose::workspace);
      partial = Tensor::empty({cpu::linear_blocks(rows, n), n}, parameter_dtype(dy), dy.device());
    }
    needed_.insert(needed_.end(), {dy, slope.tensor, partial});
    if (!launch(dy, {(active ? 2 : 1) * count_of(dy), (active ? 3 : 1) * bytes_of(dy)})) return g;
    cpu::LinearGradientArgs args;
    args.dtype = dy.dtype();
    args.relu = slope.relu;
    args.rows = rows;
    args.columns = n;
    args.dy = dy.raw();
    args.slope = raw_or_null(slope.tensor);
    if (active) args.dsum = g.dsum.mutable_raw();
    args.partial = raw_or_null(partial);
    args.dbias = raw_or_null(g.dbias);
    all_.push_back(args);
    return g;
  }
  void run() {
    cpu::parallel_chunks(blocks(), [&](std::int64_t block) { run_block(block); });
    finish();
  }

  // The same in parts, to run beside something else: all blocks, on any thread, then finish().
  std::int64_t blocks() const {
    std::int64_t all = 0;
    for (const cpu::LinearGradientArgs& a : all_) all += cpu::linear_blocks(a.rows, a.columns);
    return all;
  }
  void run_block(std::int64_t block) const noexcept {
    for (const cpu::LinearGradientArgs& a : all_) {
      const std::int64_t own = cpu::linear_blocks(a.rows, a.columns);
      if (block < own) return kernels<cpu::LinearKernels>().block(a, block);
      block -= own;
    }
  }
  void finish() {
    for (const cpu::LinearGradientArgs& a : all_) kernels<cpu::LinearKernels>().finish(a);
    all_.clear();
    needed_.clear();
  }

 private:
  std::vector<cpu::LinearGradientArgs> all_;
  std::vector<Tensor> needed_;
};

// Products that GemmPath::run_all() can run together, and the tensors they need until then.
class Products {
 public:
  explicit Products(DType operand) : operand_(operand) { needed_.reserve(3 * jobs_.size()); }
  void add(const cpu::GemmJob& job, std::initializer_list<Tensor> needed) {
    if (count_ == jobs_.size()) run();
    jobs_[count_++] = job;
    needed_.insert(needed_.end(), needed);
  }
  void run() {
    if (count_ == 1) kernels<cpu::ProductKernels>().run(operand_, jobs_[0]);
    if (count_ > 1) run_with(nullptr);
    clear();
  }
  // And sums that they do not read beside them.
  void run(SumGradients& sums) {
    const auto block = [&](std::int64_t i) { sums.run_block(i); };
    const cpu::Beside beside{sums.blocks(), block};
    if (beside.chunks > 0) {
      run_with(&beside);
      clear();
    } else {
      run();
    }
    sums.finish();
  }

 private:
  void run_with(const cpu::Beside* beside) {
    kernels<cpu::ProductKernels>().run_all(operand_, std::span(jobs_).first(count_), beside);
  }
  void clear() {
    count_ = 0;
    needed_.clear();
  }

  DType operand_;
  std::array<cpu::GemmJob, cpu::kTogether> jobs_;
  std::size_t count_ = 0;
  std::vector<Tensor> needed_;
};

void add_forward(Products& products, const Tensor& x, const Tensor& weight, Forward& f) {
  const Sizes s{rows_before_last(x.shape()), weight.size(0), weight.size(1)};
  const Tensor input = as_matrix(x, s.rows, s.k);
  const Tensor packed = packed_weight(views::transpose(weight, 0, 1), x.dtype());  // [K, N]
  const double bytes =
      bytes_of(x) + bytes_of(packed) +
      bytes_of(f.y) * (1 + (f.slope.defined() ? 1 : 0) + (f.residual.defined() ? 1 : 0));
  if (!launch(f.y, {s.flops(), bytes})) return;
  cpu::GemmJob job;
  job.m = s.rows;
  job.n = s.n;
  job.k = s.k;
  job.a = matrix_of(input);
  job.packed_b = packed.raw();
  job.c = f.y.mutable_raw();
  job.c_dtype = f.y.dtype();
  job.c_row_stride = s.n;
  job.epilogue.activation = f.activation;
  if (f.bias.defined()) job.epilogue.bias = f.bias.raw();
  if (f.slope.defined()) job.epilogue.derivative = f.slope.mutable_raw();
  if (f.residual.defined()) job.epilogue.residual = f.residual.raw();
  job.epilogue.residual_stride = s.n;
  products.add(job, {input, packed, f.bias, f.residual});
}

// What becomes of dsum · W on its way to dx.
struct InputGradient {
  bool more = false;  // dx += it
  Tensor factor;      // dx = it · factor, elementwise; undefined: none
};

// dx = dsum · W
void add_input_gradient(Products& products, const Tensor& dsum, const Tensor& weight, Tensor& dx,
                        const InputGradient& way = {}) {
  const Sizes s{dsum.size(0), weight.size(0), weight.size(1)};
  const Tensor packed = packed_weight(weight, dsum.dtype());  // [N, K]
  const double passes = 1 + (way.more ? 1 : 0) + (way.factor.defined() ? 1 : 0);
  if (!launch(dx, {s.flops(), bytes_of(dsum) + bytes_of(packed) + passes * bytes_of(dx)})) return;
  cpu::GemmJob job;
  job.m = s.rows;
  job.n = s.k;
  job.k = s.n;
  job.a = matrix_of(dsum);
  job.packed_b = packed.raw();
  job.c = dx.mutable_raw();
  job.c_dtype = dx.dtype();
  job.c_row_stride = s.k;
  job.epilogue.factor = raw_or_null(way.factor);
  if (way.more) job.epilogue.residual = job.c;  // every element is read before it is written
  job.epilogue.residual_stride = s.k;
  products.add(job, {dsum, packed, way.factor});
}

// Room for the rows of x that a weight's gradient takes at a time, packed.
Tensor room_for_rows(const Tensor& x, std::int64_t rows, DType dtype) {
  // bf16 cannot be added to.
  const std::int64_t step = dtype == DType::bf16 ? rows : std::min(rows, kGradientRows);
  return packed_workspace(x.dtype(), step, x.shape().back(), x);
}

// dW[n, k] = Σ_rows dsum[row, n] · x[row, k]; `packed` is room_for_rows().
Tensor add_weight_gradient(Products& products, const Tensor& dsum, const Tensor& input, DType dtype,
                           Tensor& packed) {
  const Sizes s{dsum.size(0), dsum.size(1), input.shape().back()};
  const Tensor x = as_matrix(input, s.rows, s.k);
  Tensor dw = Tensor::empty({s.n, s.k}, dtype, x.device());
  if (!launch(dw, {s.flops(), bytes_of(dsum) + bytes_of(x) + bytes_of(dw)})) return dw;
  if (s.rows <= kGradientRows || dtype == DType::bf16) {
    products.add(transposed_job(dsum, x, packed, dw), {dsum, x, packed});
    return dw;
  }
  for (std::int64_t begin = 0; begin < s.rows; begin += kGradientRows) {
    const std::int64_t end = std::min(begin + kGradientRows, s.rows);
    transposed_product(views::slice(dsum, 0, begin, end), views::slice(x, 0, begin, end), packed,
                       dw, begin > 0);
  }
  return dw;
}

struct Kept {
  Saved x, weight, slope;
  bool relu;
};

void backward(VjpContext& c, const Kept& kept) {
  const Tensor dy = cast(c.cotangent(), kept.x.get().dtype());  // of a wide y it is f32
  if (c.needs(3)) c.add(3, dy);
  if (!c.needs(0) && !c.needs(1) && !c.needs(2)) return;
  SumGradients sums;
  const Slope slope{kept.slope.get(), kept.relu};
  const SumGradient g = sums.add(dy, slope, c.needs(2));
  if (slope.tensor.defined()) sums.run();  // products read its result
  const Tensor& x = kept.x.get();
  const Tensor& weight = kept.weight.get();
  Products products(dy.dtype());
  Tensor dx, dw;
  if (c.needs(0)) {
    dx = empty_like(x);
    add_input_gradient(products, g.dsum, weight, dx);
  }
  if (c.needs(1)) {
    Tensor packed = room_for_rows(x, g.dsum.size(0), weight.dtype());
    dw = add_weight_gradient(products, g.dsum, x, weight.dtype(), packed);
  }
  products.run(sums);
  if (c.needs(2)) c.add(2, g.dbias);
  if (dx.defined()) c.add(0, dx);
  if (dw.defined()) c.add(1, dw);
}

struct KeptMany {
  Saved x;
  std::vector<Saved> weights;
};

// Input 0 is x, 1 + 2i and 2 + 2i are the weight and the bias of output i.
//   dx = Σ_i dy_i·W_i, dW_i = dy_iᵀ·x, dbias_i = Σ_rows dy_i
// dx grows product by product; x is packed once for all weights.
void backward_many(VjpContext& c, const KeptMany& kept) {
  const Tensor& x = kept.x.get();
  const int count = static_cast<int>(kept.weights.size());
  const auto weight = [&](int i) { return kept.weights[static_cast<std::size_t>(i)].get(); };
  SumGradients sums;
  std::vector<SumGradient> gradients(kept.weights.size());
  for (int i = 0; i < count; ++i)
    if (c.cotangent(i).defined())
      gradients[static_cast<std::size_t>(i)] = sums.add(c.cotangent(i), {}, c.needs(2 + 2 * i));
  const auto dy = [&](int i) { return gradients[static_cast<std::size_t>(i)].dsum; };
  Products products(x.dtype());
  Tensor dx;
  for (int i = 0; i < count; ++i) {
    const Tensor dsum = dy(i);
    if (!dsum.defined() || !c.needs(0)) continue;
    const bool more = dx.defined();
    if (!more) dx = empty_like(x);
    add_input_gradient(products, dsum, weight(i), dx, {more, {}});
  }
  std::vector<std::pair<int, Tensor>> weight_gradients;
  Tensor packed;
  DType packed_for = DType::f32;
  for (int i = 0; i < count; ++i) {
    const Tensor dsum = dy(i);
    if (!dsum.defined() || !c.needs(1 + 2 * i)) continue;
    const DType dtype = weight(i).dtype();
    if (!packed.defined() || packed_for != dtype) packed = room_for_rows(x, dsum.size(0), dtype);
    packed_for = dtype;
    weight_gradients.emplace_back(1 + 2 * i, add_weight_gradient(products, dsum, x, dtype, packed));
  }
  products.run(sums);
  if (dx.defined()) c.add(0, dx);
  for (const auto& [input, dw] : weight_gradients) c.add(input, dw);
  for (int i = 0; i < count; ++i)
    if (const Tensor& dbias = gradients[static_cast<std::size_t>(i)].dbias; dbias.defined())
      c.add(2 + 2 * i, dbias);
}

struct KeptPair {
  Saved x, first, slope, hidden, second;
};

// Inputs: x, first weight and bias, second weight and bias. With h = activation(sum) between them:
//   dsum = (dy·W2) · activation'(sum), dW2 = dyᵀ·h, dbias2 = Σ_rows dy
//   dx = dsum·W1, dW1 = dsumᵀ·x, dbias1 = Σ_rows dsum
void backward_pair(VjpContext& c, const KeptPair& kept) {
  const Tensor& x = kept.x.get();
  const Tensor& hidden = kept.hidden.get();
  const Tensor cotangent = c.cotangent();
  const std::int64_t rows = rows_before_last(cotangent.shape());
  const Tensor dy = as_matrix(cotangent, rows, cotangent.shape().back());
  const bool below = c.needs(0) || c.needs(1) || c.needs(2);
  Products products(dy.dtype());
  SumGradients sums;
  const auto weight_gradient = [&](const Tensor& dsum, const Tensor& input, const Tensor& weight) {
    Tensor packed = room_for_rows(input, rows, weight.dtype());
    return add_weight_gradient(products, dsum, input, weight.dtype(), packed);
  };

  const SumGradient second = sums.add(dy, {}, c.needs(4));
  Tensor dsum, dw;
  if (below) {
    dsum = Tensor::empty({rows, hidden.shape().back()}, hidden.dtype(), hidden.device());
    add_input_gradient(products, dy, kept.second.get(), dsum, {false, kept.slope.get()});
  }
  if (c.needs(3)) dw = weight_gradient(dy, hidden, kept.second.get());
  products.run(sums);
  if (c.needs(3)) c.add(3, dw);
  if (c.needs(4)) c.add(4, second.dbias);
  if (!below) return;

  const SumGradient first = sums.add(dsum, {}, c.needs(2));
  Tensor dx;
  if (c.needs(0)) {
    dx = empty_like(x);
    add_input_gradient(products, dsum, kept.first.get(), dx);
  }
  if (c.needs(1)) dw = weight_gradient(dsum, x, kept.first.get());
  products.run(sums);
  if (c.needs(0)) c.add(0, dx);
  if (c.needs(1)) c.add(1, dw);
  if (c.needs(2)) c.add(2, first.dbias);
}

// One layer without a tape of its own; `slope`: keep the activation's derivative.
Forward forward_one(const Tensor& x, const LinearWeights& layer, Activation activation,
                    bool slope) {
  Forward f;
  f.activation = kernel_activation(activation);
  if (layer.bias.defined()) f.bias = dense(layer.bias);
  f.y = Tensor::empty(with_last(x.shape(), layer.weight.size(0)), x.dtype(), x.device());
  if (slope && activation != Activation::none) f.slope = empty_like(f.y);
  Products products(x.dtype());
  add_forward(products, x, layer.weight, f);
  products.run();
  return f;
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

// With sum = x·Wᵀ + bias and dsum = dy · activation'(sum), whose second factor the product's
// epilogue keeps beside y:
//   dx = dsum·W, dW = dsumᵀ·x, dbias = Σ_rows dsum, dresidual = dy
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias,
              const LinearOptions& options) {
  if (is_half(x)) return linear_of_halves(x, weight, bias, options);
  check_layer("linear", x, weight, bias);
  check_options(x, weight, options);
  const Tensor& residual = options.residual;
  Forward f;
  f.activation = kernel_activation(options.activation);
  if (bias.defined()) f.bias = dense(bias);
  if (residual.defined()) f.residual = dense(residual);
  const DType result = options.wide ? parameter_dtype(x) : x.dtype();
  f.y = Tensor::empty(with_last(x.shape(), weight.size(0)), result, x.device());
  const bool on_tape = tracked({&x, &weight, &bias, &residual});
  const bool from_output = f.activation == cpu::Activation::relu && !residual.defined();
  if (on_tape && f.activation != cpu::Activation::none && !from_output) f.slope = empty_like(f.y);
  Products products(x.dtype());
  add_forward(products, x, weight, f);
  products.run();
  if (on_tape) {
    const Kept kept{Saved(x), Saved(weight), Saved(from_output ? f.y.detach() : f.slope),
                    from_output};
    record("linear", {&x, &weight, &bias, &residual}, {&f.y},
           [kept](VjpContext& c) { backward(c, kept); });
  }
  return f.y;
}

std::vector<Tensor> linear_many(const Tensor& x, std::span<const LinearWeights> weights) {
  if (is_half(x)) {
    std::vector<Tensor> all = linear_many(wide(x), weights);
    for (Tensor& y : all) y = to_half(y);
    return all;
  }
  check_compute({"linear_many", "x", x});
  std::vector<Forward> all(weights.size());
  Products products(x.dtype());
  std::vector<const Tensor*> inputs = {&x};
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const auto& [weight, bias] = weights[i];
    check_layer_of("linear_many", x, weights[i],
                   [i] { return "weights[" + std::to_string(i) + "]"; });
    if (bias.defined()) all[i].bias = dense(bias);
    all[i].y = Tensor::empty(with_last(x.shape(), weight.size(0)), x.dtype(), x.device());
    add_forward(products, x, weight, all[i]);
    inputs.push_back(&weight);
    inputs.push_back(&bias);
  }
  products.run();
  std::vector<Tensor> outputs;
  outputs.reserve(all.size());
  for (const Forward& f : all) outputs.push_back(f.y);
  if (weights.empty() || !tracked(inputs)) return outputs;
  KeptMany kept{Saved(x), {}};
  for (const LinearWeights& w : weights) kept.weights.emplace_back(w.weight);
  std::vector<Tensor*> results;
  results.reserve(outputs.size());
  for (Tensor& y : outputs) results.push_back(&y);
  auto vjp = [kept](VjpContext& c) { backward_many(c, kept); };
  autograd::record_vjp("linear_many", inputs, results,
                       std::make_unique<autograd::LambdaVjp<decltype(vjp)>>(std::move(vjp)));
  return outputs;
}

Tensor linear_pair(const Tensor& x, const LinearWeights& first, Activation activation,
                   const LinearWeights& second) {
  if (is_half(x)) return to_half(linear_pair(wide(x), first, activation, second));
  check_compute({"linear_pair", "x", x});
  check_layer_of("linear_pair", x, first, [] { return std::string("first"); });
  const bool on_tape = tracked({&x, &first.weight, &first.bias, &second.weight, &second.bias});
  const Forward f = forward_one(x, first, activation, on_tape);
  check_layer_of("linear_pair", f.y, second, [] { return std::string("second"); });
  Tensor y = forward_one(f.y, second, Activation::none, false).y;
  if (on_tape) {
    const KeptPair kept{Saved(x), Saved(first.weight), Saved(f.slope), Saved(f.y),
                        Saved(second.weight)};
    record("linear_pair", {&x, &first.weight, &first.bias, &second.weight, &second.bias}, {&y},
           [kept](VjpContext& c) { backward_pair(c, kept); });
  }
  return y;
}

Tensor reference::linear(const Tensor& x, const Tensor& weight, const Tensor& bias,
                         const LinearOptions& options) {
  const Shape flat{rows_before_last(x.shape()), x.size(-1)};
  Tensor y = matmul(reshape(x, flat), transpose(weight, 0, 1));
  if (bias.defined()) y = add(y, bias);
  switch (options.activation) {
    case Activation::none: break;
    case Activation::relu: y = relu(y); break;
    case Activation::gelu: y = gelu(y); break;
    case Activation::gelu_tanh: y = gelu_tanh(y); break;
    case Activation::silu: y = silu(y); break;
  }
  y = reshape(y, with_last(x.shape(), weight.size(0)));
  return options.residual.defined() ? add(y, options.residual) : y;
}

}  // namespace heddle::ops
