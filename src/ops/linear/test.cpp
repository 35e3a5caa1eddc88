#include "backend/cpu/gemm/product_kernels.h"
#include "harness/harness.h"
#include "ops/linear/linear.h"
#include "ops/linear/linear.kernels.h"

namespace heddle::harness::linear_cases {
namespace {

using ops::Activation;
using Op = Tensor (*)(const Tensor&, const Tensor&, const Tensor&, const ops::LinearOptions&);

struct Layer {
  Shape x;  // [..., K]
  std::int64_t n = 1;
  bool bias = true;
  bool residual = false;
  Activation activation = Activation::none;
  bool wide = false;
};

Fn call(const Layer& layer, Op op) {
  return [layer, op](std::span<const Tensor> in) {
    std::size_t next = 2;
    const Tensor bias = layer.bias ? in[next++] : Tensor();
    ops::LinearOptions options;
    options.activation = layer.activation;
    options.wide = layer.wide;
    if (layer.residual) options.residual = in[next++];
    return Tensors{op(in[0], in[1], bias, options)};
  };
}

Case make_case(const std::string& name, const Layer& layer) {
  const std::int64_t k = layer.x.back();
  Shape y = layer.x;
  y[y.rank() - 1] = layer.n;
  Case c;
  c.op = "linear";
  c.name = name;
  c.inputs = {act(layer.x), param({layer.n, k})};
  if (layer.bias) c.inputs.push_back(param({layer.n}));
  if (layer.residual) c.inputs.push_back(act(y));
  c.run = call(layer, ops::linear);
  c.reference = call(layer, ops::reference::linear);
  const std::int64_t rows = k > 0 ? elements_of(layer.x) / k : 1;
  c.reduction = std::max({std::int64_t{1}, k, layer.n, rows});
  // In bf16 the f32 weight is rounded, and so are the slope of the activation and the gradient of
  // the sum.
  c.slack = layer.activation == Activation::none ? 1 : 2;
  return c;
}

// Three layers of one input: with and without bias, one of another width.
Case make_many(const std::string& name, const Shape& x) {
  const std::int64_t k = x.back();
  const auto call_each = [](auto linear) {
    return [linear](std::span<const Tensor> in) {
      const std::vector<ops::LinearWeights> weights = {
          {in[1], in[2]}, {in[3], Tensor()}, {in[4], in[5]}};
      return linear(in[0], weights);
    };
  };
  Case c;
  c.op = "linear";
  c.name = "many, " + name;
  c.inputs = {act(x), param({7, k}), param({7}), param({33, k}), param({7, k}), param({7})};
  c.run = call_each([](const Tensor& in, const std::vector<ops::LinearWeights>& weights) {
    return ops::linear_many(in, weights);
  });
  c.reference = call_each([](const Tensor& in, const std::vector<ops::LinearWeights>& weights) {
    Tensors all;
    for (const auto& w : weights) all.push_back(ops::reference::linear(in, w.weight, w.bias, {}));
    return all;
  });
  c.reduction = std::max({std::int64_t{33 + 7 + 7}, k, k > 0 ? elements_of(x) / k : 1});
  return c;
}

// Two layers with an activation between them.
Case make_pair(const std::string& name, const Shape& x, Activation activation, bool bias = true) {
  constexpr std::int64_t hidden = 35, out = 6;
  const std::int64_t k = x.back();
  const auto call_with = [=](auto pair) {
    return [=](std::span<const Tensor> in) {
      if (!bias) return Tensors{pair(in[0], {in[1], {}}, activation, {in[2], {}})};
      return Tensors{pair(in[0], {in[1], in[2]}, activation, {in[3], in[4]})};
    };
  };
  Case c;
  c.op = "linear";
  c.name = "pair, " + name;
  c.inputs = {act(x), param({hidden, k})};
  if (bias) c.inputs.push_back(param({hidden}));
  c.inputs.push_back(param({out, hidden}));
  if (bias) c.inputs.push_back(param({out}));
  using ops::LinearWeights;
  c.run =
      call_with([](const Tensor& in, const LinearWeights& first, Activation a,
                   const LinearWeights& second) { return ops::linear_pair(in, first, a, second); });
  c.reference = call_with(
      [](const Tensor& in, const LinearWeights& first, Activation a, const LinearWeights& second) {
        ops::LinearOptions options;
        options.activation = a;
        const Tensor h = ops::reference::linear(in, first.weight, first.bias, options);
        return ops::reference::linear(h, second.weight, second.bias, {});
      });
  c.reduction = std::max({hidden, k, k > 0 ? elements_of(x) / k : 1});
  c.slack = 4;  // as two layers one after the other
  return c;
}

const bool registered = [] {
  add_case(make_pair("gelu", {2, 5, 13}, Activation::gelu));
  add_case(make_pair("gelu_tanh, several blocks", {300, 40}, Activation::gelu_tanh));
  add_case(make_pair("silu, no bias", {7, 10}, Activation::silu, false));
  add_case(make_pair("relu", {7, 10}, Activation::relu));
  add_case(make_pair("no activation", {7, 10}, Activation::none));
  add_case(make_pair("no rows", {0, 4}, Activation::gelu));
  add_case(make_pair("many rows", {4100, 3}, Activation::gelu));
  Case frozen_second = make_pair("nobody wants the second layer's", {7, 10}, Activation::gelu);
  for (const std::size_t i : {3, 4}) frozen_second.inputs[i] = constant(frozen_second.inputs[i]);
  add_case(frozen_second);
  Case frozen_first = make_pair("nobody wants the first layer's", {7, 10}, Activation::gelu);
  for (const std::size_t i : {0, 1, 2}) frozen_first.inputs[i] = constant(frozen_first.inputs[i]);
  add_case(frozen_first);
  add_case(make_many("odd", {2, 5, 13}));
  add_case(make_many("no rows", {0, 4}));
  add_case(make_many("several blocks", {300, 40}));
  add_case(make_many("more rows than are packed at a time", {4100, 3}));
  add_case(make_case("1x1", {{1, 1}, 1}));
  add_case(make_case("vector", {{9}, 5}));
  add_case(make_case("odd", {{7, 13}, 5}));
  add_case(make_case("no bias", {{2, 3, 13}, 33, false}));
  add_case(make_case("no rows", {{0, 4}, 3}));
  add_case(make_case("no inputs", {{3, 0}, 5}));
  add_case(make_case("no outputs", {{3, 4}, 0}));
  add_case(make_case("residual", {{3, 2, 8}, 6, true, true}));
  add_case(make_case("relu", {{6, 19}, 21, true, false, Activation::relu}));
  add_case(make_case("relu and residual", {{6, 19}, 21, true, true, Activation::relu}));
  add_case(make_case("gelu", {{3, 5, 10}, 35, true, false, Activation::gelu}));
  add_case(make_case("gelu_tanh", {{5, 10}, 35, false, false, Activation::gelu_tanh}));
  add_case(make_case("silu", {{5, 10}, 35, true, true, Activation::silu}));
  add_case(make_case("wide", {{4, 19}, 21, true, false, Activation::none, true}));
  add_case(make_case("wide, one row", {{1, 70}, 130, false, false, Activation::none, true}));
  add_case(make_case("several blocks", {{130, 40}, 300, true, false, Activation::gelu}));
  add_case(make_case("blocks of bias sums", {{300, 6}, 200}));
  // More rows than the weight's gradient takes at a time.
  add_case(make_case("many rows", {{4100, 3}, 2}));

  Case frozen = make_case("nobody wants the weight's gradient", {{7, 13}, 5});
  frozen.inputs[1] = constant(param({5, 13}));
  add_case(frozen);

  using K = cpu::LinearGradientKernels;
  add_kernel_mutant<K>("linear", "the activation is not differentiated", [](K& k) {
    k.block = [](const cpu::LinearGradientArgs& args, std::int64_t block) noexcept {
      cpu::LinearGradientArgs a = args;
      if (a.slope != nullptr) a.slope = a.dy;
      sound<K>().block(a, block);
    };
  });
  add_kernel_mutant<K>("linear", "the first row counts twice in the bias gradient", [](K& k) {
    k.block = [](const cpu::LinearGradientArgs& args, std::int64_t block) noexcept {
      cpu::LinearGradientArgs a = args;
      const auto row = static_cast<std::size_t>(a.columns) * size_of(a.dtype);
      if (a.slope == nullptr && block > 0) a.dy = static_cast<const char*>(a.dy) - row;
      sound<K>().block(a, block);
    };
  });
  add_kernel_mutant<K>("linear", "a second block of bias sums is forgotten", [](K& k) {
    k.finish = [](const cpu::LinearGradientArgs& args) noexcept {
      cpu::LinearGradientArgs a = args;
      a.rows = std::min(a.rows, cpu::linear_block(a.rows, a.columns));
      sound<K>().finish(a);
    };
  });
  using P = cpu::ProductKernels;
  add_kernel_mutant<P>("linear", "the activation between two layers is not differentiated",
                       [](P& p) {
                         p.run_all = [](cpu::Operands t, std::span<const cpu::GemmJob> jobs,
                                        const cpu::OtherWork* other) {
                           std::vector<cpu::GemmJob> b(jobs.begin(), jobs.end());
                           for (cpu::GemmJob& job : b) job.epilogue.factor = nullptr;
                           sound<P>().run_all(t, b, other);
                         };
                       });
  add_kernel_mutant<P>("linear", "bias sums beside products are forgotten", [](P& p) {
    p.run_all = [](cpu::Operands t, std::span<const cpu::GemmJob> jobs, const cpu::OtherWork*) {
      sound<P>().run_all(t, jobs, nullptr);
    };
  });
  add_kernel_mutant<P>("linear", "the last of several products is forgotten", [](P& p) {
    p.run_all = [](cpu::Operands t, std::span<const cpu::GemmJob> jobs,
                   const cpu::OtherWork* other) {
      sound<P>().run_all(t, jobs.first(jobs.size() - 1), other);
    };
  });
  add_kernel_mutant<P>("linear", "the input's gradient is that of the last layer", [](P& p) {
    p.run_all = [](cpu::Operands t, std::span<const cpu::GemmJob> jobs,
                   const cpu::OtherWork* other) {
      std::vector<cpu::GemmJob> b(jobs.begin(), jobs.end());
      for (cpu::GemmJob& job : b) job.epilogue.residual = nullptr;
      sound<P>().run_all(t, b, other);
    };
  });
  add_kernel_mutant<P>("linear", "the residual is forgotten", [](P& p) {
    p.run = [](cpu::Operands t, const cpu::GemmJob& job) {
      cpu::GemmJob b = job;
      b.epilogue.residual = nullptr;
      sound<P>().run(t, b);
    };
  });
  add_kernel_mutant<P>("linear", "later rows replace the weight's gradient", [](P& p) {
    p.run = [](cpu::Operands t, const cpu::GemmJob& job) {
      cpu::GemmJob b = job;
      b.epilogue.accumulate = false;
      sound<P>().run(t, b);
    };
  });
  return true;
}();

}  // namespace
}  // namespace heddle::harness::linear_cases
