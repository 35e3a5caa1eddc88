// The cost of linear layers beyond their matrix products.
//
//   bench_linear [rows outputs inputs]
//
// The op and the bare products of the same shapes take turns, so that a busy neighbour slows both
// down; the fastest round of each is shown.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/isa.h"
#include "heddle/ops.h"
#include "heddle/random.h"
#include "heddle/tape.h"

namespace {

using heddle::DType;
using heddle::Shape;
using heddle::Tensor;
namespace cpu = heddle::cpu;
namespace ops = heddle::ops;
namespace views = heddle::views;

constexpr int kRounds = 15;

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// One bare product C = A · B, B packed when it is made or each time.
struct Product {
  Tensor a, b, c, packed;
  bool pack_each_time = false;

  Product(Tensor left, Tensor right, DType result, bool each_time)
      : a(std::move(left)),
        b(std::move(right)),
        c(Tensor::empty({a.size(0), b.size(1)}, result)),
        pack_each_time(each_time) {
    const std::size_t bytes = path().packed_bytes(b.size(0), b.size(1));
    packed = Tensor::empty({static_cast<std::int64_t>(bytes)}, DType::u8);
    pack();
  }

  const cpu::GemmPath& path() const { return cpu::gemm_path(cpu::current_isa(), a.dtype()); }

  void pack() {
    path().pack_b(b.size(0), b.size(1), {b.raw(), b.dtype(), b.strides()[0], b.strides()[1]},
                  packed.mutable_raw());
  }

  void run() {
    if (pack_each_time) pack();
    cpu::GemmJob job;
    job.m = a.size(0);
    job.n = b.size(1);
    job.k = a.size(1);
    job.a = {a.raw(), a.dtype(), a.strides()[0], a.strides()[1]};
    job.packed_b = packed.raw();
    job.c = c.mutable_raw();
    job.c_dtype = c.dtype();
    job.c_row_stride = job.n;
    path().run(job);
  }
};

void compare(const char* name, double flops, const std::function<void()>& bare,
             const std::function<double()>& op) {
  double best_bare = 1e9, best_op = 1e9;
  for (int i = 0; i < kRounds; ++i) {
    best_bare = std::min(best_bare, seconds_of(bare));
    best_op = std::min(best_op, op());
  }
  std::printf("  %-34s bare %8.2f ms  %6.0f GFLOP/s   op %8.2f ms   %+5.1f %%\n", name,
              best_bare * 1e3, flops / best_bare / 1e9, best_op * 1e3,
              (best_op / best_bare - 1) * 100);
}

Tensor normal(const Shape& shape, DType dtype, std::uint64_t seed) {
  return ops::random_normal(shape, 0, 0.1, heddle::RandomKey{seed, 0, 0}, dtype);
}

struct Sizes {
  std::int64_t rows = 1024, n = 3072, k = 768;
  double flops() const {
    return 2 * static_cast<double>(rows) * static_cast<double>(n) * static_cast<double>(k);
  }
};

double forward_seconds(const Tensor& x, const Tensor& w, const Tensor& bias,
                       const ops::LinearOptions& options) {
  return seconds_of([&] { ops::linear(x, w, bias, options); });
}

// Forward on a tape and backward(); the time of backward() alone.
double backward_seconds(Tensor x, Tensor w, Tensor bias, const ops::LinearOptions& options,
                        const Tensor& dy) {
  for (Tensor* t : {&x, &w, &bias}) {
    t->set_requires_grad(true);
    t->clear_grad();
  }
  heddle::Tape tape;
  const Tensor y = ops::linear(x, w, bias, options);
  return seconds_of([&] { tape.backward(std::span(&y, 1), std::span(&dy, 1)); });
}

void layer(const Sizes& s, DType dtype) {
  const Tensor x = normal({s.rows, s.k}, dtype, 1);
  const Tensor w = normal({s.n, s.k}, DType::f32, 2);
  const Tensor bias = normal({s.n}, DType::f32, 3);
  const Tensor dy = normal({s.rows, s.n}, dtype, 4);
  std::printf("%s, %lld x %lld x %lld\n", heddle::to_string(dtype).data(),
              static_cast<long long>(s.rows), static_cast<long long>(s.n),
              static_cast<long long>(s.k));
  Product forward(x, views::transpose(w, 0, 1), dtype, false);
  Product input(dy, w, dtype, false);
  Product weight(views::transpose(dy, 0, 1), x, DType::f32, true);
  ops::LinearOptions plain, gelu;
  gelu.activation = ops::Activation::gelu;
  const auto both = [&] {
    input.run();
    weight.run();
  };
  compare(
      "forward", s.flops(), [&] { forward.run(); },
      [&] { return forward_seconds(x, w, {}, plain); });
  compare(
      "forward, bias and gelu", s.flops(), [&] { forward.run(); },
      [&] { return forward_seconds(x, w, bias, gelu); });
  compare("backward, bias", 2 * s.flops(), both,
          [&] { return backward_seconds(x, w, bias, plain, dy); });
  compare("backward, bias and gelu", 2 * s.flops(), both,
          [&] { return backward_seconds(x, w, bias, gelu, dy); });
  Tensor changing = ops::clone(w);
  compare(
      "forward, weight changed before", s.flops(), [&] { forward.run(); },
      [&] {
        changing.bump_version();
        return forward_seconds(x, changing, {}, plain);
      });
}

// The loss with its gradients, against its three products at full length.
void classifier(const Sizes& s, DType dtype) {
  Tensor x = normal({s.rows, s.k}, dtype, 1);
  Tensor w = normal({s.n, s.k}, DType::f32, 2);
  const Tensor targets = Tensor::zeros({s.rows}, DType::i64);
  const Tensor dz = normal({s.rows, s.n}, dtype, 4);
  Product forward(x, views::transpose(w, 0, 1), DType::f32, false);
  Product input(dz, w, dtype, false);
  Product weight(views::transpose(dz, 0, 1), x, DType::f32, true);
  x.set_requires_grad(true);
  w.set_requires_grad(true);
  compare(
      "linear_cross_entropy, all of it", 3 * s.flops(),
      [&] {
        forward.run();
        input.run();
        weight.run();
      },
      [&] {
        x.clear_grad();
        w.clear_grad();
        return seconds_of([&] {
          heddle::Tape tape;
          tape.backward(ops::linear_cross_entropy(x, w, {}, targets));
        });
      });
}

}  // namespace

int main(int argc, char** argv) {
  Sizes s;
  if (argc == 4) s = {std::atoll(argv[1]), std::atoll(argv[2]), std::atoll(argv[3])};
  for (const DType dtype : {DType::f32, DType::bf16}) {
    layer(s, dtype);
    classifier(s, dtype);
  }
  return 0;
}
