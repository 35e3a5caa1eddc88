// How fast the routines are: medians of the time of one call among many.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>

#include "backend/copy.call.h"
#include "cuda/sides.h"
#include "cuda/timing.h"
#include "ops/adamw/adamw.call.h"
#include "ops/binary/binary.call.h"
#include "ops/clip_grad/clip_grad.call.h"
#include "ops/dropout/dropout.call.h"
#include "ops/embedding/embedding.call.h"
#include "ops/glu/glu.call.h"
#include "ops/linear/linear.call.h"
#include "ops/linear_cross_entropy/linear_cross_entropy.call.h"
#include "ops/matmul/matmul.call.h"
#include "ops/norm/norm.call.h"
#include "ops/random/random.call.h"
#include "ops/reduce/reduce.call.h"
#include "ops/rope/rope.call.h"
#include "ops/unary/unary.call.h"
#include "tensor/engine.h"

namespace heddle::cuda_tests {

namespace {

using backend::launch;

const Device kGpu = Device::cuda(0);

void product(const char* what, DType dtype, std::int64_t m, std::int64_t n, std::int64_t k,
             bool a_turned, bool b_turned) {
  Tensor a = noise(a_turned ? Shape{k, m} : Shape{m, k}, dtype);
  Tensor b = noise(b_turned ? Shape{n, k} : Shape{k, n}, dtype);
  if (a_turned) a = views::transpose(a, 0, 1);
  if (b_turned) b = views::transpose(b, 0, 1);
  Tensor y = Tensor::empty({m, n}, dtype, kGpu);
  const double s = seconds([&] { launch(ops::MatmulCall{a, b, 0, y}); }, 10);
  std::printf("%-28s %s %5lld x %5lld x %5lld  %8.1f TFLOP/s\n", what,
              std::string(to_string(dtype)).c_str(), static_cast<long long>(m),
              static_cast<long long>(n), static_cast<long long>(k),
              2e-12 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) / s);
}

void moved(const char* what, double bytes, const std::function<void()>& call) {
  std::printf("%-28s %8.2f TB/s\n", what, 1e-12 * bytes / seconds(call, 20));
}

void bandwidths() {
  const std::int64_t count = std::int64_t{1} << 28;
  const double n = static_cast<double>(count);
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const double width = static_cast<double>(size_of(dtype));
    const Tensor a = noise({count}, dtype), b = noise({count}, dtype);
    Tensor y = Tensor::empty({count}, dtype, kGpu), sum = Tensor::empty({1}, dtype, kGpu);
    std::printf("-- %s\n", std::string(to_string(dtype)).c_str());
    moved("copy", 2 * width * n, [&] { launch(backend::CopyCall{a, y}); });
    moved("add", 3 * width * n, [&] { launch(ops::BinaryCall{ops::Binary::add, a, b, y}); });
    moved("sum of all", width * n,
          [&] { launch(ops::ReduceCall{ops::Reduce::sum, {1, count, 1}, 1, a, sum}); });
    Tensor rows = Tensor::empty({count / 1024}, dtype, kGpu);
    moved("sums of rows of 1024", width * n,
          [&] { launch(ops::ReduceCall{ops::Reduce::sum, {count / 1024, 1024, 1}, 1, a, rows}); });
    Tensor columns = Tensor::empty({1024}, dtype, kGpu);
    moved("sums of columns", width * n, [&] {
      launch(ops::ReduceCall{ops::Reduce::sum, {1, count / 1024, 1024}, 1, a, columns});
    });
  }
}

constexpr std::int64_t kTokens = 32768, kWidth = 768;  // of GPT-2

Tensor empty_like(const Tensor& x) { return Tensor::empty(x.shape(), x.dtype(), kGpu); }

// Norms of a residual stream, forward with the sum and backward with a gradient of it.
void norm(const std::string& what, const Shape& shape, DType dtype, bool centred) {
  const Tensor x = noise(shape, dtype), residual = noise(shape, dtype), none;
  const Tensor gain = noise({shape.back()}, DType::f32), bias = noise({shape.back()}, DType::f32);
  Tensor sum = empty_like(x), y = empty_like(x), dx = empty_like(x);
  Tensor rstd = Tensor::empty({shape[0]}, DType::f32, kGpu), mean;
  if (centred) mean = empty_like(rstd);
  Tensor dgain = empty_like(gain), dbias;
  if (centred) dbias = empty_like(bias);
  const double bytes = static_cast<double>(x.bytes());
  const std::string name = what + " " + to_string(shape);
  moved((name + ", forward").c_str(), 4 * bytes, [&] {
    launch(
        ops::NormCall{centred, 1e-5, x, residual, gain, centred ? bias : none, sum, y, mean, rstd});
  });
  moved((name + ", backward").c_str(), 4 * bytes, [&] {
    launch(ops::NormBackwardCall{centred, sum, gain, mean, rstd, y, residual, dx, dgain, dbias});
  });
}

void norms() {
  for (const Shape& shape :
       {Shape{2 * kTokens, kWidth}, Shape{kTokens, 384}, Shape{kTokens, 2048}}) {
    norm("layer_norm bf16", shape, DType::bf16, true);
    norm("rms_norm bf16", shape, DType::bf16, false);
  }
  norm("layer_norm f32", {kTokens, kWidth}, DType::f32, true);
}

void elements() {
  const Tensor x = noise({kTokens, 4 * kWidth}, DType::bf16), dy = noise(x.shape(), DType::bf16);
  Tensor y = empty_like(x);
  const double bytes = static_cast<double>(x.bytes());
  moved("gelu_tanh bf16", 2 * bytes,
        [&] { launch(ops::UnaryCall{ops::Unary::gelu_tanh, 0, x, y}); });
  moved("gelu_tanh bf16, backward", 3 * bytes,
        [&] { launch(ops::UnaryBackwardCall{ops::Unary::gelu_tanh, 0, x, dy, y}); });
  const std::int64_t all = x.elements();
  moved("glu bf16", 3 * bytes, [&] { launch(ops::GluCall{{1, all, all}, x, dy, y}); });
  const RandomKey key{1, 2, 3};
  moved("dropout bf16", 2 * bytes, [&] { launch(ops::DropoutCall{6554, 1.1, key, x, y}); });
  const Tensor heads = noise({32, 1024, 12, 64}, DType::bf16), none;
  const Tensor cos = noise({1024, 32}, DType::f32), sin = noise({1024, 32}, DType::f32);
  Tensor turned = empty_like(heads);
  moved("rope bf16", 2 * static_cast<double>(heads.bytes()),
        [&] { launch(ops::RopeCall{ops::Pairing::half, 0, 1, none, cos, sin, heads, turned}); });
}

// Ids 0 to rows - 1 again and again.
Tensor ids_of(std::int64_t count, std::int64_t rows) {
  std::vector<std::int64_t> ids(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int64_t>(i) * 7919 % rows;
  return Tensor::from<std::int64_t>({count}, std::span<const std::int64_t>(ids), kGpu);
}

void embeddings() {
  for (const std::int64_t rows : {std::int64_t{65}, std::int64_t{50304}}) {
    const Tensor table = noise({rows, kWidth}, DType::f32), ids = ids_of(kTokens, rows);
    Tensor y = Tensor::empty({kTokens, kWidth}, DType::bf16, kGpu), dtable = empty_like(table);
    const std::string name = "embedding of " + std::to_string(rows);
    const double read = 4.0 * static_cast<double>(y.elements());
    moved(name.c_str(), read + static_cast<double>(y.bytes()),
          [&] { launch(ops::EmbeddingCall{table, ids, y}); });
    moved((name + ", backward").c_str(), static_cast<double>(y.bytes() + dtable.bytes()),
          [&] { launch(ops::EmbeddingBackwardCall{false, ids, y, dtable}); });
  }
}

void optimisers() {
  std::vector<ops::AdamWParameter> parameters;
  std::vector<Tensor> grads;
  double bytes = 0;
  const auto add = [&](const Shape& shape) {
    ops::AdamWParameter p;
    p.weight = noise(shape, DType::f32);
    p.grad = noise(shape, DType::f32);
    p.m = Tensor::zeros(shape, DType::f32, kGpu);
    p.v = Tensor::zeros(shape, DType::f32, kGpu);
    bytes += static_cast<double>(p.weight.bytes());
    grads.push_back(p.grad);
    parameters.push_back(p);
  };
  add({50304, kWidth});
  for (int layer = 0; layer < 12; ++layer) {
    for (const std::int64_t n : {3 * kWidth, kWidth, 4 * kWidth, 4 * kWidth}) add({n, kWidth});
    for (int i = 0; i < 8; ++i) add({kWidth});
  }
  ops::AdamWOptions options;
  moved("adamw, GPT-2", 7 * bytes, [&] { launch(ops::AdamWCall{options, parameters, grads}); });
  Tensor length = Tensor::empty({}, DType::f64, kGpu);
  moved("global_norm, GPT-2", bytes, [&] { launch(ops::GlobalNormCall{grads, length}); });
}

// y = activation(x · Wᵀ + bias), then dx and dW together with the sums of dbias.
void layer(const char* what, std::int64_t tokens, std::int64_t n, std::int64_t k,
           Activation activation) {
  const Tensor x = noise({tokens, k}, DType::bf16), weight = noise({n, k}, DType::f32);
  const Tensor bias = noise({n}, DType::f32);
  ops::Product forward;
  forward.a = x;
  forward.b = views::transpose(weight, 0, 1);
  forward.of_weight = true;
  forward.bias = bias;
  forward.activation = activation;
  forward.c = Tensor::empty({tokens, n}, DType::bf16, kGpu);
  if (activation != Activation::none) forward.derivative = empty_like(forward.c);
  std::vector<ops::Product> back(2);
  back[0].a = noise({tokens, n}, DType::bf16);
  back[0].b = weight;
  back[0].of_weight = true;
  back[0].c = empty_like(x);
  back[1].a = views::transpose(back[0].a, 0, 1);
  back[1].b = x;
  back[1].c = empty_like(weight);
  ops::RowSums sums;
  sums.dy = sums.dsum = back[0].a;
  sums.dbias = empty_like(bias);
  const double flops = 2e-12 * static_cast<double>(tokens * n) * static_cast<double>(k);
  const double there = seconds([&] { launch(ops::ProductsCall{std::span(&forward, 1), {}}); }, 10);
  const double here = seconds([&] { launch(ops::ProductsCall{back, {}}); }, 10);
  const double beside = seconds([&] { launch(ops::ProductsCall{{}, std::span(&sums, 1)}); }, 10);
  std::printf("%-28s forward %6.1f, dx and dW %6.1f TFLOP/s; dbias %5.2f TB/s\n", what,
              flops / there, 2 * flops / here,
              1e-12 * static_cast<double>(sums.dy.bytes()) / beside);
}

void classifier() {
  const std::int64_t classes = 50304;
  const Tensor x = noise({kTokens, kWidth}, DType::bf16), none;
  const Tensor weight = noise({classes, kWidth}, DType::f32);
  ops::LossRows rows;
  rows.op = "measure";
  rows.targets = ids_of(kTokens, classes);
  Tensor loss = Tensor::empty({}, DType::f32, kGpu), dx = empty_like(x), dw = empty_like(weight);
  Tensor no_bias;
  const double s = seconds(
      [&] {
        launch(ops::LinearCrossEntropyCall{rows, x, weight, none, none, loss, dx, dw, no_bias});
      },
      3);
  const double flops = 6e-12 * static_cast<double>(kTokens * classes) * static_cast<double>(kWidth);
  std::printf("%-28s %6.1f TFLOP/s over three products, %.2f ms\n", "linear_cross_entropy",
              flops / s, 1e3 * s);
}

void fused() {
  norms();
  elements();
  embeddings();
  optimisers();
  layer("GPT-2 qkv", kTokens, 3 * kWidth, kWidth, Activation::none);
  layer("GPT-2 proj", kTokens, kWidth, kWidth, Activation::none);
  layer("GPT-2 up", kTokens, 4 * kWidth, kWidth, Activation::gelu_tanh);
  layer("GPT-2 down", kTokens, kWidth, 4 * kWidth, Activation::none);
  classifier();
}

}  // namespace

double seconds(const std::function<void()>& call, int times) {
  Engine& engine = engine_of(kGpu);
  call();
  engine.synchronize();
  std::vector<double> all;
  for (int round = 0; round < 5; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < times; ++i) call();
    engine.synchronize();
    all.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() /
                  times);
  }
  std::sort(all.begin(), all.end());
  return all[2];
}

Tensor noise(const Shape& shape, DType dtype) {
  static std::uint32_t streams = 0;  // others with every call
  Tensor y = Tensor::empty(shape, dtype, kGpu);
  const RandomKey key{1, 2, ++streams};
  launch(ops::RandomCall{true, 0, 1, key, y});
  return y;
}

void measure() {
  for (const FoundLibrary& l : engine_of(kGpu).libraries())
    std::printf("%s %s%s\n", l.name.c_str(), l.version.c_str(), l.absence.c_str());
  fused();
  bandwidths();
  product("a b", DType::bf16, 8192, 8192, 8192, false, false);
  product("a b'", DType::bf16, 8192, 8192, 8192, false, true);
  product("a' b", DType::bf16, 8192, 8192, 8192, true, false);
  product("GPT-2 up", DType::bf16, 32768, 3072, 768, false, true);
  product("GPT-2 up, gradient", DType::bf16, 3072, 768, 32768, true, false);
  product("a b", DType::f32, 4096, 4096, 4096, false, false);
  product("a b'", DType::f32, 4096, 4096, 4096, false, true);
  product("a b", DType::f64, 2048, 2048, 2048, false, false);
  measure_attention();
}

}  // namespace heddle::cuda_tests
