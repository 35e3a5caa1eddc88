// The cost of an op besides its arithmetic: ops on tensors of a few elements, with and without a
// tape. Small models live or die by this.
#include <benchmark/benchmark.h>

#include "heddle/ops.h"
#include "heddle/runtime.h"
#include "heddle/tape.h"

namespace {

using heddle::Tape;
using heddle::Tensor;
namespace ops = heddle::ops;

constexpr int kChain = 1000;  // ops on one tape, so that making the tape does not count

Tensor tiny(bool tracked) {
  Tensor t = Tensor::full({4}, 0.5);
  if (tracked) t.set_requires_grad(true);
  return t;
}

void op_without_tape(benchmark::State& state) {
  const Tensor a = tiny(false);
  const Tensor b = tiny(false);
  for (auto _ : state) benchmark::DoNotOptimize(ops::add(a, b));
}
BENCHMARK(op_without_tape);

void op_recorded(benchmark::State& state) {
  const Tensor a = tiny(true);
  const Tensor b = tiny(true);
  while (state.KeepRunningBatch(kChain)) {
    const Tape tape;
    for (int i = 0; i < kChain; ++i) benchmark::DoNotOptimize(ops::add(a, b));
  }
}
BENCHMARK(op_recorded);

void op_recorded_and_differentiated(benchmark::State& state) {
  Tensor a = tiny(true);
  const Tensor one = Tensor::full({4}, 1);
  while (state.KeepRunningBatch(kChain)) {
    Tape tape;
    Tensor y = a;
    for (int i = 0; i < kChain; ++i) y = ops::relu(y);
    tape.backward(std::span(&y, 1), std::span(&one, 1));
    a.clear_grad();
  }
}
BENCHMARK(op_recorded_and_differentiated);

// The op that small models call most: a product of a few elements.
void linear_without_tape(benchmark::State& state) {
  const Tensor x = Tensor::full({4, 4}, 0.5), weight = Tensor::full({4, 4}, 0.5),
               bias = tiny(false);
  for (auto _ : state) benchmark::DoNotOptimize(ops::linear(x, weight, bias));
}
BENCHMARK(linear_without_tape);

void linear_recorded_and_differentiated(benchmark::State& state) {
  const Tensor x = Tensor::full({4, 4}, 0.5);
  Tensor weight = Tensor::full({4, 4}, 0.1), bias = tiny(true);
  weight.set_requires_grad(true);
  while (state.KeepRunningBatch(kChain)) {
    Tape tape;
    Tensor y = x;
    for (int i = 0; i < kChain; ++i) y = ops::linear(y, weight, bias);
    tape.backward(std::span(&y, 1), std::span(&x, 1));
    weight.clear_grad();
    bias.clear_grad();
  }
}
BENCHMARK(linear_recorded_and_differentiated);

}  // namespace

BENCHMARK_MAIN();
