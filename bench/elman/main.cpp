// An Elman layer beside a matrix product of the same machine: how much of it a scan reaches.
//
//   bench_elman            torch_rnn.py beside this file measures PyTorch's nn.RNN alike
//
// Layer: input product for all steps, scan; "both" with the gradients of x and all weights. The
// best of many rounds is shown, because neighbours only ever add time.
#include <time.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <span>

#include "backend/cpu/threads.h"
#include "heddle/ops.h"
#include "heddle/tape.h"

namespace {

using heddle::DType;
using heddle::Tensor;

// With one thread (HEDDLE_THREADS=1) this is the thread's own time, which stands still while
// another process has the core; with several it is the time on the wall.
double now() {
  timespec t{};
  clock_gettime(heddle::cpu::thread_count() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double best_of(const std::function<void()>& work) {
  constexpr double kSeconds = 0.5;
  double best = 1e9, spent = 0;
  for (int round = 0; round < 5 || spent < kSeconds; ++round) {
    const double begin = now();
    work();
    const double took = now() - begin;
    spent += took;
    best = std::min(best, took);
  }
  return best;
}

Tensor normal(const heddle::Shape& shape, double deviation, std::uint32_t stream, DType dtype) {
  Tensor t = heddle::ops::random_normal(shape, 0, deviation, {1, 1, stream}, dtype);
  t.set_requires_grad(true);
  return t;
}

struct Size {
  std::int64_t batch, steps, width;
};

struct Layer {
  Tensor x, in, bias, recurrent, cotangent;

  Layer(const Size& s, DType dtype)
      : x(normal({s.batch, s.steps, s.width}, 1, 1, dtype)),
        in(normal({s.width, s.width}, 0.05, 2, DType::f32)),
        bias(normal({s.width}, 0.05, 3, DType::f32)),
        recurrent(normal({s.width, s.width}, 0.05, 4, DType::f32)),
        cotangent(normal({s.batch, s.steps, s.width}, 1, 5, dtype).detach()) {}

  Tensor forward() const {
    return heddle::ops::elman(heddle::ops::linear(x, in, bias), recurrent).y;
  }
  void both() {
    for (Tensor* t : {&x, &in, &bias, &recurrent}) t->clear_grad();
    heddle::Tape tape;
    const Tensor y = forward();
    tape.backward(std::span(&y, 1), std::span(&cotangent, 1));
  }
};

double product_rate(DType dtype) {
  const Tensor a = normal({1024, 1024}, 1, 6, dtype).detach();
  const Tensor b = normal({1024, 1024}, 1, 7, dtype).detach();
  return 2.0 * 1024 * 1024 * 1024 / best_of([&] { heddle::ops::matmul(a, b); });
}

void measure(const Size& s, DType dtype) {
  Layer layer(s, dtype);
  const double peak = product_rate(dtype);
  const double work = 2.0 * static_cast<double>(s.batch * s.steps * s.width * s.width);
  const double scan = best_of([&] { heddle::ops::elman(layer.x.detach(), layer.recurrent); });
  const double forward = best_of([&] { layer.forward(); });
  const double both = best_of([&] { layer.both(); });
  std::printf("%-4s %5lld %5lld %5lld  %9.2f %9.2f %9.1f  %5.0f%% %5.0f%% %5.0f%%\n",
              dtype == DType::f32 ? "f32" : "bf16", static_cast<long long>(s.batch),
              static_cast<long long>(s.steps), static_cast<long long>(s.width), 1e3 * forward,
              1e3 * both, 1e6 * scan / static_cast<double>(s.steps), 100 * work / scan / peak,
              100 * 2 * work / forward / peak, 100 * 6 * work / both / peak);
}

}  // namespace

int main() {
  std::printf("threads: %d; shares are of a product of 1024 x 1024 x 1024\n",
              heddle::cpu::thread_count());
  std::printf("type batch steps width  forward ms   both ms  scan us/step   scan  forward both\n");
  constexpr std::array<Size, 8> kSizes = {{{64, 32, 256},
                                           {64, 128, 256},
                                           {64, 256, 256},
                                           {64, 32, 512},
                                           {64, 128, 512},
                                           {64, 256, 512},
                                           {16, 128, 256},
                                           {1, 128, 512}}};
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const Size& size : kSizes) measure(size, dtype);
  return 0;
}
