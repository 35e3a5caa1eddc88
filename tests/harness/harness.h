// The op harness. An op's test.cpp holds a table of cases; from it the harness runs every check
// over every instruction set, element type, memory layout and thread count. See
// docs/architecture.md, "How ops are proved".
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/cpu/isa.h"
#include "backend/cpu/kernels.h"
#include "heddle/tape.h"
#include "heddle/tensor.h"

namespace heddle::harness {

// The contents of a case's input.
enum class Fill {
  normal,    // standard normal
  positive,  // 0.5 to 2
  off_zero,  // normal, but no closer to 0 than 0.1 (for functions with a kink there)
  index,     // integers in [0, bound)
  given,     // the values of the case
};

struct In {
  Shape shape;
  Fill fill = Fill::normal;
  bool parameter = false;  // stays f32 when the activations are bf16 or f16
  bool differentiable = true;
  std::int64_t bound = 0;  // of indices
  DType index_dtype = DType::i64;
  std::vector<double> values;  // Fill::given
};

In act(Shape shape, Fill fill = Fill::normal);    // an activation: takes the type under test
In param(Shape shape, Fill fill = Fill::normal);  // a parameter: f32, f64 in f64
In index(Shape shape, std::int64_t bound, DType dtype = DType::i64);
In given_index(Shape shape, std::vector<double> values, DType dtype = DType::i64);
In constant(In in);  // the same, but its gradient is not wanted

using Tensors = std::vector<Tensor>;
using Fn = std::function<Tensors(std::span<const Tensor>)>;

struct Case {
  std::string op;    // as in ops.def
  std::string name;  // unique within the op
  std::vector<In> inputs;
  Fn run;                      // the op
  Fn reference;                // its definition; called with f64 tensors only
  std::int64_t reduction = 1;  // how many terms an output element sums: widens the tolerance
  double slack = 1;            // further widening; the reason is given next to it
  double step = 1e-3;          // of finite differences; smaller where kinks are close together
  bool gradient = true;        // false: the op has none
  bool bf16 = true;            // false: the op does not take bf16
  bool f16 = true;             // false: nor f16, although it takes bf16
  bool strided = true;         // false: inputs must be contiguous (in-place ops)
  bool cost_by_shape = true;   // false: operations depend on values, which meta does not know
};

void add_case(Case c);
const std::vector<Case>& cases();

// The scalar function f applied to every element of the broadcast inputs: the definition of an
// elementwise op.
Fn elementwise(std::function<double(std::span<const double>)> f);

// A fault planted into the kernels of an op: the checks of that op must find it.
struct Mutant {
  std::string op;
  std::string name;
  std::function<void()> plant;
  std::function<void()> remove;
};

void add_mutant(Mutant m);
const std::vector<Mutant>& mutants();

// Plants a copy of the op's kernel table (for the best instruction set) after `change` had its way.
// The changed entries are captureless lambdas; they reach the sound kernels through sound<K>().
template <class K>
const K& sound() {
  return cpu::native_kernels<K>(cpu::available_isas().back());
}

template <class K>
void add_kernel_mutant(std::string op, std::string name, void (*change)(K&)) {
  add_mutant({std::move(op), std::move(name),
              [change] {
                static K table;
                table = sound<K>();
                change(table);
                cpu::planted_kernels<K> = &table;
              },
              [] { cpu::planted_kernels<K> = nullptr; }});
}

// A target of computation: a device, on the CPU with each of its instruction sets.
struct Target {
  Device device;
  std::optional<cpu::Isa> isa = {};  // of the CPU

  std::string name() const;
};

// Every target that this build and this machine have: the CPU's, the mock device of the tests, and
// GPUs.
std::vector<Target> targets();

// One string for every fault found; empty when all is well.
using Faults = std::vector<std::string>;

Faults check_float64(const Case& c);   // the op in f64 against its definition
Faults check_gradient(const Case& c);  // vjp in f64 against differences of the definition
Faults check_kernels(
    const Case& c);  // every target × dtype × layout, forward and gradient, guarded
Faults check_threads(const Case& c);  // 1, 2, 3, 8 threads, every isa: the same bits
Faults check_meta(const Case& c);     // shapes, types and peak bytes, of each device it imitates

}  // namespace heddle::harness
