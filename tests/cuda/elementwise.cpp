// copy, unary, gated units, binary and random.
#include "backend/copy.call.h"
#include "cuda/sides.h"
#include "ops/binary/binary.call.h"
#include "ops/glu/glu.call.h"
#include "ops/random/random.call.h"
#include "ops/unary/unary.call.h"

namespace heddle::cuda_tests {

namespace {

using backend::launch;
using ops::Binary;
using ops::Unary;

constexpr DType kAll[] = {DType::f32, DType::bf16, DType::f16, DType::f64,
                          DType::i32, DType::i64,  DType::u8};
constexpr DType kComputed[] = {DType::f32, DType::bf16, DType::f64};

std::string named(const char* what, DType dtype) {
  return std::string(what) + " " + std::string(to_string(dtype));
}

Tensor transposed(const Tensor& x) { return views::transpose(x, 0, 1); }
Tensor every_second(const Tensor& x) { return views::slice(x, 1, 0, x.size(1), 2); }

void copies() {
  for (const DType from : kAll)
    for (const DType to : kAll) {
      const std::string what = named("copy to", to) + " from " + std::string(to_string(from));
      // Integers have no negative numbers in u8, and the mock device does not limit them.
      const bool limits = to == DType::u8 && from != DType::u8;
      const Sides x = limits ? positives({37, 50}, from) : normals({37, 50}, from);
      Sides plain = empty({37, 50}, to), turned = empty({50, 37}, to), wide = empty({37, 100}, to);
      Sides gaps = view(wide, every_second);
      on_each([&](std::size_t s) {
        launch(backend::CopyCall{x[s], plain[s]});
        launch(backend::CopyCall{transposed(x[s]), turned[s]});
        launch(backend::CopyCall{x[s], gaps[s]});
      });
      judge(what, plain, tolerance_of(to));
      judge(what + ", transposed", turned, tolerance_of(to));
      judge(what + ", into gaps", gaps, tolerance_of(to));
    }
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64, DType::f16}) {
    const Sides x = normals({37, 50}, dtype);
    Sides sum = normals({50, 37}, dtype);
    on_each([&](std::size_t s) { launch(backend::CopyCall{transposed(x[s]), sum[s], true}); });
    judge(named("copy, added", dtype), sum, tolerance_of(dtype));
  }
}

void unaries() {
  for (const DType dtype : kComputed)
    for (int kind = 0; kind <= static_cast<int>(Unary::softcap); ++kind) {
      const auto unary = static_cast<Unary>(kind);
      const bool positive = unary == Unary::log || unary == Unary::sqrt || unary == Unary::rsqrt;
      const Sides x = positive ? positives({3001}, dtype) : normals({3001}, dtype);
      const Sides dy = normals({3001}, dtype);
      Sides y = empty({3001}, dtype), dx = empty({3001}, dtype);
      on_each([&](std::size_t s) {
        launch(ops::UnaryCall{unary, 1.7, x[s], y[s]});
        launch(ops::UnaryBackwardCall{unary, 1.7, x[s], dy[s], dx[s]});
      });
      const std::string what = named("unary", dtype) + " " + std::to_string(kind);
      judge(what, y, tolerance_of(dtype));
      judge(what + ", backward", dx, tolerance_of(dtype, 4));
    }
}

// The mock device has no gated units: their formulas, call by call.
struct Formulas {
  const Tensor& like;

  Tensor made(Binary kind, const Tensor& a, const Tensor& b) const {
    Tensor y = Tensor::empty(a.shape(), a.dtype(), like.device());
    launch(ops::BinaryCall{kind, a, b, y});
    return y;
  }
  Tensor made(Unary kind, const Tensor& a, double p = 0) const {
    Tensor y = Tensor::empty(a.shape(), a.dtype(), like.device());
    launch(ops::UnaryCall{kind, p, a, y});
    return y;
  }
  Tensor times(const Tensor& a, const Tensor& b) const { return made(Binary::mul, a, b); }
  // dy · f'(x)
  Tensor slope(Unary kind, const Tensor& x, const Tensor& dy) const {
    Tensor dx = Tensor::empty(x.shape(), x.dtype(), like.device());
    launch(ops::UnaryBackwardCall{kind, 0, x, dy, dx});
    return dx;
  }
};

struct GatedCase {
  Gate gate;
  Unary bend;
};

// Limits that nothing passes: the clamped gate is quick_gelu(gate) · (up + 1).
void gated_units() {
  constexpr GatedCase kCases[] = {{Gate::silu, Unary::silu},
                                  {Gate::gelu, Unary::gelu},
                                  {Gate::gelu_tanh, Unary::gelu_tanh},
                                  {Gate::clamped, Unary::quick_gelu}};
  for (const DType dtype : {DType::f32, DType::f64})
    for (const auto& [gate, bend] : kCases)
      for (const std::int64_t columns : {64, 67}) {
        const Shape shape{31, columns};
        const Sides g = normals(shape, dtype), u = normals(shape, dtype),
                    dy = normals(shape, dtype);
        Sides y = empty(shape, dtype), dg = empty(shape, dtype), du = empty(shape, dtype);
        const ops::GluLayout layout{31, columns, columns};
        on_each([&](std::size_t s) {
          if (s != 1) {
            const ops::GluOptions options{gate, 100};
            launch(ops::GluCall{layout, g[s], u[s], y[s], options});
            launch(ops::GluBackwardCall{layout, g[s], u[s], dy[s], dg[s], du[s], options});
            return;
          }
          const Formulas f{g[s]};
          const Tensor up = gate == Gate::clamped ? f.made(Unary::add_number, u[s], 1) : u[s];
          y[s] = f.times(f.made(bend, g[s]), up);
          dg[s] = f.slope(bend, g[s], f.times(dy[s], up));
          du[s] = f.times(dy[s], f.made(bend, g[s]));
        });
        const std::string what = named("glu", dtype) + " " + std::to_string(static_cast<int>(gate));
        judge(what, y, tolerance_of(dtype, 4));
        judge(what + ", by gate", dg, tolerance_of(dtype, 4));
        judge(what + ", by up", du, tolerance_of(dtype, 4));
      }
}

// Beyond its limits the clamped gate is as at them, without gradients.
void limits_of_gates() {
  const Shape shape{500};
  constexpr double kLimit = 0.4;  // positives are above
  const ops::GluLayout layout{1, 500, 500};
  const ops::GluOptions options{Gate::clamped, kLimit};
  const Sides g = positives(shape, DType::f32), u = positives(shape, DType::f32);
  Sides y = empty(shape, DType::f32), dg = empty(shape, DType::f32), du = empty(shape, DType::f32);
  on_each([&](std::size_t s) {
    if (s != 1) {
      launch(ops::GluCall{layout, g[s], u[s], y[s], options});
      launch(ops::GluBackwardCall{layout, g[s], u[s], g[s], dg[s], du[s], options});
      return;
    }
    const Formulas f{g[s]};
    const Tensor none = f.made(Unary::scale, g[s], 0);
    const Tensor end = f.made(Unary::add_number, none, kLimit);
    y[s] = f.times(f.made(Unary::quick_gelu, end), f.made(Unary::add_number, end, 1));
    dg[s] = du[s] = none;
  });
  judge("glu, limits", y, tolerance_of(DType::f32, 4));
  judge("glu, limits, by gate", dg, 0);
  judge("glu, limits, by up", du, 0);
}

void binaries() {
  for (const DType dtype : kComputed)
    for (int kind = 0; kind <= static_cast<int>(Binary::prefers_b); ++kind) {
      const auto binary = static_cast<Binary>(kind);
      const std::string what = named("binary", dtype) + " " + std::to_string(kind);
      const Sides a = normals({20, 30, 7}, dtype), b = positives({20, 30, 7}, dtype);
      const Sides row = positives({7}, dtype), column = normals({20, 1, 1}, dtype);
      const Sides other = view(positives({30, 20, 7}, dtype), transposed);
      Sides y = empty({20, 30, 7}, dtype), by_row = y, by_column = y, mixed = y;
      by_row = empty({20, 30, 7}, dtype);
      by_column = empty({20, 30, 7}, dtype);
      mixed = empty({20, 30, 7}, dtype);
      on_each([&](std::size_t s) {
        launch(ops::BinaryCall{binary, a[s], b[s], y[s]});
        launch(ops::BinaryCall{binary, a[s], row[s], by_row[s]});
        launch(ops::BinaryCall{binary, column[s], row[s], by_column[s]});
        launch(ops::BinaryCall{binary, a[s], other[s], mixed[s]});
      });
      judge(what, y, tolerance_of(dtype));
      judge(what + ", a row", by_row, tolerance_of(dtype));
      judge(what + ", both broadcast", by_column, tolerance_of(dtype));
      judge(what + ", transposed", mixed, tolerance_of(dtype));
    }
}

void randoms() {
  const RandomKey key{0x123456789abcdefu, 7, 9};
  for (const DType dtype : kComputed)
    for (const bool normal : {false, true}) {
      Sides y = empty({10007}, dtype);
      on_each([&](std::size_t s) { launch(ops::RandomCall{normal, 0.25, 2.0, key, y[s]}); });
      judge(named(normal ? "normal" : "uniform", dtype), y, tolerance_of(dtype, 4));
    }
}

}  // namespace

void test_elementwise() {
  copies();
  unaries();
  gated_units();
  limits_of_gates();
  binaries();
  randoms();
}

}  // namespace heddle::cuda_tests
