#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "harness/harness.h"
#include "harness/values.h"
#include "ops/norm/norm.h"
#include "ops/norm/norm.kernels.h"

namespace heddle::harness::norm_cases {
namespace {

constexpr double kEps = 1e-2;  // large enough for a wrong one to show

// 192: rows that are taken several at a time, and some that are left over.
const Shape kShapes[] = {{1},        {5, 1},   {7, 33},    {0, 5},
                         {2, 3, 67}, {5, 130}, {601, 131}, {301, 192}};

Case named(const std::string& name, const Shape& shape) {
  Case c;
  c.op = "norm";
  c.name = name + to_string(shape);
  // Sums over a row, and over all rows for gain and bias.
  c.reduction = shape.back() + elements_of(shape) / shape.back();
  return c;
}

Case layer_case(const Shape& shape) {
  Case c = named("layer_norm", shape);
  c.inputs = {act(shape), param({shape.back()}), param({shape.back()})};
  c.run = [](std::span<const Tensor> in) {
    return Tensors{ops::layer_norm(in[0], in[1], in[2], kEps)};
  };
  c.reference = [](std::span<const Tensor> in) {
    return Tensors{ops::reference::layer_norm(in[0], in[1], in[2], kEps)};
  };
  return c;
}

void add_layer_without(const char* what, bool gain, bool bias) {
  Case c = layer_case({11, 45});
  c.name += what;
  const auto with = [=](auto op, std::span<const Tensor> in) {
    return Tensors{op(in[0], gain ? in[1] : Tensor(), bias ? in[1] : Tensor(), kEps)};
  };
  if (gain || bias)
    c.inputs = {act({11, 45}), param({45})};
  else
    c.inputs = {act({11, 45})};
  c.run = [=](std::span<const Tensor> in) { return with(ops::layer_norm, in); };
  c.reference = [=](std::span<const Tensor> in) { return with(ops::reference::layer_norm, in); };
  add_case(c);
}

Case add_layer_case(const Shape& shape) {
  Case c = named("add_layer_norm", shape);
  c.inputs = {act(shape), act(shape), param({shape.back()}), param({shape.back()})};
  c.run = [](std::span<const Tensor> in) {
    const auto r = ops::add_layer_norm(in[0], in[1], in[2], in[3], kEps);
    return Tensors{r.sum, r.y};
  };
  c.reference = [](std::span<const Tensor> in) {
    const auto r = ops::reference::add_layer_norm(in[0], in[1], in[2], in[3], kEps);
    return Tensors{r.sum, r.y};
  };
  // In bf16 the norm is that of the rounded sum.
  c.slack = 2;
  return c;
}

// A row of one element: in dx, 1 - x̂² cancels to eps / (x² + eps), which is small.
double rms_slack(const Shape& shape) { return shape.back() == 1 ? 4 : 1; }

void add_rms(const Shape& shape) {
  Case c = named("rms_norm", shape);
  c.slack = rms_slack(shape);
  c.inputs = {act(shape), param({shape.back()})};
  c.run = [](std::span<const Tensor> in) { return Tensors{ops::rms_norm(in[0], in[1], kEps)}; };
  c.reference = [](std::span<const Tensor> in) {
    return Tensors{ops::reference::rms_norm(in[0], in[1], kEps)};
  };
  add_case(c);
  c.name += " without gain";
  c.inputs = {act(shape)};
  c.run = [](std::span<const Tensor> in) { return Tensors{ops::rms_norm(in[0], {}, kEps)}; };
  c.reference = [](std::span<const Tensor> in) {
    return Tensors{ops::reference::rms_norm(in[0], {}, kEps)};
  };
  add_case(c);
}

Case add_rms_case(const Shape& shape) {
  Case c = named("add_rms_norm", shape);
  c.inputs = {act(shape), act(shape), param({shape.back()})};
  c.run = [](std::span<const Tensor> in) {
    const auto r = ops::add_rms_norm(in[0], in[1], in[2], kEps);
    return Tensors{r.sum, r.y};
  };
  c.reference = [](std::span<const Tensor> in) {
    const auto r = ops::reference::add_rms_norm(in[0], in[1], in[2], kEps);
    return Tensors{r.sum, r.y};
  };
  // In bf16 the norm is that of the rounded sum.
  c.slack = 2 * rms_slack(shape);
  return c;
}

// One of the two results is not used: no cotangent arrives for it. Without the norm, parameters
// (inputs from 2 on) have no gradient.
void add_half_used(Case c, std::size_t which) {
  c.name += which == 0 ? " only the sum" : " only the norm";
  for (std::size_t i = 2; which == 0 && i < c.inputs.size(); ++i)
    c.inputs[i] = constant(c.inputs[i]);
  c.run = [which, run = c.run](std::span<const Tensor> in) { return Tensors{run(in)[which]}; };
  c.reference = [which, reference = c.reference](std::span<const Tensor> in) {
    return Tensors{reference(in)[which]};
  };
  add_case(c);
}

void add_mutants() {
  using K = cpu::NormKernels;
  using G = cpu::NormGradientKernels;
  using Forward = cpu::NormArgs;
  using Backward = cpu::NormBackwardArgs;
  add_kernel_mutant<K>("norm", "eps is ten times too large", [](K& k) {
    k.forward = [](const Forward& a) noexcept {
      Forward b = a;
      b.eps *= 10;
      sound<K>().forward(b);
    };
  });
  add_kernel_mutant<G>("norm", "the gain is left out of dx", [](G& k) {
    k.backward = [](const Backward& a) noexcept {
      Backward b = a;
      b.gain = nullptr;
      sound<G>().backward(b);
    };
  });
  add_kernel_mutant<G>("norm", "the cotangent of the sum is dropped", [](G& k) {
    k.backward = [](const Backward& a) noexcept {
      Backward b = a;
      b.dsum = nullptr;
      sound<G>().backward(b);
    };
  });
  add_kernel_mutant<G>("norm", "the last row is left out", [](G& k) {
    k.backward = [](const Backward& a) noexcept {
      Backward b = a;
      b.rows -= b.rows > 1 ? 1 : 0;
      sound<G>().backward(b);
    };
  });
  add_kernel_mutant<G>("norm", "the gradient of the gain is zero", [](G& k) {
    k.backward = [](const Backward& a) noexcept {
      sound<G>().backward(a);
      if (a.dgain != nullptr)
        std::memset(a.dgain, 0,
                    static_cast<std::size_t>(a.columns) * (a.dtype == DType::f64 ? 8 : 4));
    };
  });
  add_kernel_mutant<K>("norm", "the bias is forgotten", [](K& k) {
    k.forward = [](const Forward& a) noexcept {
      Forward b = a;
      b.bias = nullptr;
      sound<K>().forward(b);
    };
  });
  add_kernel_mutant<K>("norm", "the mean is not subtracted", [](K& k) {
    k.forward = [](const Forward& a) noexcept {
      Forward b = a;
      b.centred = false;
      sound<K>().forward(b);
    };
  });
}

const bool registered = [] {
  for (const Shape& shape : kShapes) {
    add_case(layer_case(shape));
    add_case(add_layer_case(shape));
    add_rms(shape);
    add_case(add_rms_case(shape));
  }
  add_layer_without(" without bias", true, false);
  add_layer_without(" without gain", false, true);
  add_layer_without(" without either", false, false);
  for (const std::size_t which : {0u, 1u}) {
    add_half_used(add_layer_case({9, 37}), which);
    add_half_used(add_rms_case({9, 37}), which);
  }
  add_mutants();
  return true;
}();

// Far from zero the variance must not come from E[x²] - mean².
TEST(norm_kernels, LargeMean) {
  std::vector<double> values = normals(64, 5);
  for (double& v : values) v = static_cast<double>(static_cast<float>(10000 + v));
  const auto got =
      to_doubles(ops::layer_norm(make_tensor({1, 64}, DType::f32, values), {}, {}, 1e-5));
  const auto want = to_doubles(
      ops::reference::layer_norm(make_tensor({1, 64}, DType::f64, values), {}, {}, 1e-5));
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 2e-3);
}

struct NormBuffers {
  Tensor x, residual, gain, bias, sum, y, mean, rstd, dx;
  Tensor dgain, dgain_partial, dbias, dbias_partial;
};

NormBuffers norm_buffers(std::int64_t rows, std::int64_t columns, DType dtype) {
  const DType parameter = dtype == DType::f64 ? DType::f64 : DType::f32;
  const Shape shape{rows, columns};
  NormBuffers b;
  b.x = make_tensor(shape, dtype, normals(rows * columns, 1));
  b.residual = make_tensor(shape, dtype, normals(rows * columns, 2));
  b.gain = make_tensor({columns}, parameter, normals(columns, 3));
  b.bias = make_tensor({columns}, parameter, normals(columns, 4));
  b.sum = Tensor::empty(shape, dtype);
  b.y = Tensor::empty(shape, dtype);
  b.dx = Tensor::empty(shape, dtype);
  b.mean = Tensor::empty({rows}, parameter);
  b.rstd = Tensor::empty({rows}, parameter);
  b.dgain = Tensor::empty({columns}, parameter);
  b.dbias = Tensor::empty({columns}, parameter);
  b.dgain_partial = Tensor::empty({cpu::norm_blocks(rows, columns), columns}, parameter);
  b.dbias_partial = Tensor::empty(b.dgain_partial.shape(), parameter);
  return b;
}

void run_norm(cpu::Isa isa, NormBuffers& b, bool centred, bool stream) {
  cpu::NormArgs f;
  f.centred = centred;
  f.dtype = b.x.dtype();
  f.rows = b.x.size(0);
  f.columns = b.x.size(1);
  f.eps = 1e-5;
  f.stream = stream;
  f.x = b.x.raw();
  f.residual = b.residual.raw();
  f.gain = b.gain.raw();
  f.bias = b.bias.raw();
  f.sum = b.sum.mutable_raw();
  f.y = b.y.mutable_raw();
  f.mean = b.mean.mutable_raw();
  f.rstd = b.rstd.mutable_raw();
  cpu::native_kernels<cpu::NormKernels>(isa).forward(f);
  cpu::NormBackwardArgs g;
  g.dtype = f.dtype;
  g.centred = centred;
  g.rows = f.rows;
  g.columns = f.columns;
  g.stream = stream;
  g.x = f.sum;
  g.gain = f.gain;
  g.mean = f.mean;
  g.rstd = f.rstd;
  g.dy = f.x;
  g.dsum = f.residual;
  g.dx = b.dx.mutable_raw();
  g.dgain_partial = b.dgain_partial.mutable_raw();
  g.dbias_partial = b.dbias_partial.mutable_raw();
  g.dgain = b.dgain.mutable_raw();
  g.dbias = b.dbias.mutable_raw();
  cpu::native_kernels<cpu::NormGradientKernels>(isa).backward(g);
}

// The cases of the harness are too small to be written past the caches. The results must be the
// same bits either way, whether a row can be streamed (64), is taken together with others only
// within the caches (256), is longer than the buffer (4160) or nothing of it (50).
void expect_streaming_changes_nothing(cpu::Isa isa, DType dtype, std::int64_t columns,
                                      bool centred) {
  NormBuffers plain = norm_buffers(37, columns, dtype);
  NormBuffers past = norm_buffers(37, columns, dtype);
  run_norm(isa, plain, centred, false);
  run_norm(isa, past, centred, true);
  SCOPED_TRACE(std::string(cpu::to_string(isa)) + " " + std::string(to_string(dtype)) + " " +
               std::to_string(columns) + (centred ? " centred" : ""));
  EXPECT_EQ(to_doubles(plain.sum), to_doubles(past.sum));
  EXPECT_EQ(to_doubles(plain.y), to_doubles(past.y));
  EXPECT_EQ(to_doubles(plain.dx), to_doubles(past.dx));
  EXPECT_EQ(to_doubles(plain.dgain), to_doubles(past.dgain));
  EXPECT_EQ(to_doubles(plain.dbias), to_doubles(past.dbias));
}

TEST(norm_kernels, StreamingChangesNothing) {
  for (const cpu::Isa isa : cpu::available_isas())
    for (const DType dtype : {DType::f32, DType::bf16, DType::f64})
      for (const std::int64_t columns : {64, 256, 4160, 50})
        for (const bool centred : {false, true})
          expect_streaming_changes_nothing(isa, dtype, columns, centred);
}

TEST(norm_calls, WrongLayerNormsAreRefused) {
  const Tensor x = Tensor::zeros({2, 3});
  const Tensor p = Tensor::zeros({3});
  EXPECT_THROW(ops::layer_norm({}, p, p, kEps), Error);
  EXPECT_THROW(ops::layer_norm(Tensor::zeros({}), {}, {}, kEps), Error);
  EXPECT_THROW(ops::layer_norm(Tensor::zeros({2, 0}), {}, {}, kEps), Error);
  EXPECT_THROW(ops::layer_norm(x, Tensor::zeros({4}), p, kEps), Error);
  EXPECT_THROW(ops::layer_norm(x, p, Tensor::zeros({1, 3}), kEps), Error);
  EXPECT_THROW(ops::layer_norm(x, p, Tensor::zeros({3}, DType::f64), kEps), Error);
  EXPECT_THROW(ops::layer_norm(x, p, p, -1), Error);
  EXPECT_THROW(ops::add_layer_norm(x, {}, p, p, kEps), Error);
  EXPECT_THROW(ops::add_layer_norm(x, Tensor::zeros({3, 2}), p, p, kEps), Error);
}

TEST(norm_calls, WrongRmsNormsAreRefused) {
  const Tensor x = Tensor::zeros({2, 3});
  const Tensor gain = Tensor::zeros({3});
  EXPECT_THROW(ops::rms_norm({}, gain, kEps), Error);
  EXPECT_THROW(ops::rms_norm(Tensor::zeros({}), {}, kEps), Error);
  EXPECT_THROW(ops::rms_norm(Tensor::zeros({2, 0}), {}, kEps), Error);
  EXPECT_THROW(ops::rms_norm(Tensor::zeros({2, 3}, DType::i32), gain, kEps), Error);
  EXPECT_THROW(ops::rms_norm(x, Tensor::zeros({4}), kEps), Error);
  EXPECT_THROW(ops::rms_norm(x, Tensor::zeros({3}, DType::bf16), kEps), Error);
  EXPECT_THROW(ops::rms_norm(x, Tensor::zeros({3}, DType::f32, Device::meta), kEps), Error);
  EXPECT_THROW(ops::rms_norm(x, gain, -1), Error);
  EXPECT_THROW(ops::add_rms_norm(x, {}, gain, kEps), Error);
  EXPECT_THROW(ops::add_rms_norm(x, Tensor::zeros({3}), gain, kEps), Error);
  EXPECT_THROW(ops::add_rms_norm(x, Tensor::zeros({2, 3}, DType::f64), gain, kEps), Error);
}

}  // namespace
}  // namespace heddle::harness::norm_cases
