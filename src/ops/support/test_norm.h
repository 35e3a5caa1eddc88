// What the tests of rms_norm and layer_norm share.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>

#include "backend/cpu/norm.kernels.h"
#include "harness/harness.h"
#include "harness/values.h"

namespace heddle::harness {

// Faults planted into a table K of norm kernels.
template <class K>
void add_norm_mutants(const std::string& op) {
  using Forward = cpu::NormArgs;
  using Backward = cpu::NormBackwardArgs;
  add_kernel_mutant<K>(op, "eps is ten times too large", [](K& k) {
    k.forward = [](const Forward& a) noexcept {
      Forward b = a;
      b.eps *= 10;
      sound<K>().forward(b);
    };
  });
  add_kernel_mutant<K>(op, "the gain is left out of dx", [](K& k) {
    k.backward = [](const Backward& a) noexcept {
      Backward b = a;
      b.gain = nullptr;
      sound<K>().backward(b);
    };
  });
  add_kernel_mutant<K>(op, "the cotangent of the sum is dropped", [](K& k) {
    k.backward = [](const Backward& a) noexcept {
      Backward b = a;
      b.dsum = nullptr;
      sound<K>().backward(b);
    };
  });
  add_kernel_mutant<K>(op, "the last row is left out", [](K& k) {
    k.backward = [](const Backward& a) noexcept {
      Backward b = a;
      b.rows -= b.rows > 1 ? 1 : 0;
      sound<K>().backward(b);
    };
  });
  add_kernel_mutant<K>(op, "the gradient of the gain is zero", [](K& k) {
    k.backward = [](const Backward& a) noexcept {
      sound<K>().backward(a);
      if (a.dgain != nullptr)
        std::memset(a.dgain, 0,
                    static_cast<std::size_t>(a.columns) * (a.dtype == DType::f64 ? 8 : 4));
    };
  });
}

struct NormBuffers {
  Tensor x, residual, gain, bias, sum, y, mean, rstd, dx;
  Tensor dgain, dgain_partial, dbias, dbias_partial;
};

inline NormBuffers norm_buffers(std::int64_t rows, std::int64_t columns, DType dtype) {
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

inline void run_norm(const cpu::NormKernels& k, NormBuffers& b, bool stream) {
  cpu::NormArgs f;
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
  k.forward(f);
  cpu::NormBackwardArgs g;
  g.dtype = f.dtype;
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
  k.backward(g);
}

// The cases of the harness are too small to be written past the caches. The results must be the
// same bits either way, whether a row can be streamed (64), is taken together with others only
// within the caches (256), is longer than the buffer (4160) or nothing of it (50).
template <class K>
void expect_streaming_changes_nothing() {
  for (const cpu::Isa isa : cpu::available_isas())
    for (const DType dtype : {DType::f32, DType::bf16, DType::f64})
      for (const std::int64_t columns : {64, 256, 4160, 50}) {
        NormBuffers plain = norm_buffers(37, columns, dtype);
        NormBuffers past = norm_buffers(37, columns, dtype);
        run_norm(cpu::native_kernels<K>(isa), plain, false);
        run_norm(cpu::native_kernels<K>(isa), past, true);
        const std::string where = std::string(cpu::to_string(isa)) + " " +
                                  std::string(to_string(dtype)) + " " + std::to_string(columns);
        EXPECT_EQ(to_doubles(plain.sum), to_doubles(past.sum)) << where;
        EXPECT_EQ(to_doubles(plain.y), to_doubles(past.y)) << where;
        EXPECT_EQ(to_doubles(plain.dx), to_doubles(past.dx)) << where;
        EXPECT_EQ(to_doubles(plain.dgain), to_doubles(past.dgain)) << where;
        EXPECT_EQ(to_doubles(plain.dbias), to_doubles(past.dbias)) << where;
      }
}

}  // namespace heddle::harness
