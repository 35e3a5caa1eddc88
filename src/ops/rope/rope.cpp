#include "ops/rope/rope.h"

#include <cmath>
#include <string>

#include "backend/cpu/threads.h"
#include "ops/copy/copy.h"
#include "ops/rope/rope.kernels.h"
#include "ops/support/index.h"
#include "ops/support/op.h"

namespace heddle::ops {

namespace {

// Checks tables and positions; returns the positions in row-major order (undefined when not given).
Tensor checked_positions(const Tensor& x, std::int64_t rows, const RopeOptions& options) {
  const std::int64_t batch = x.size(0), tokens = x.size(1);
  if (!options.positions.defined()) {
    const std::int64_t first = options.first_position;
    if (tokens > 0 && (first < 0 || first > rows - tokens))
      fail(ErrorCode::out_of_range, "rope", "argument first_position",
           std::to_string(tokens) + " positions in a table of " + std::to_string(rows),
           std::to_string(first));
    return {};
  }
  const Arg given{"rope", "positions", options.positions};
  check_condition(options.first_position == 0, "rope", "first_position", "0 beside positions",
                  std::to_string(options.first_position));
  check_index(given);
  check_same_device(given, x);
  const Shape wanted = options.positions.rank() == 1 ? Shape{tokens} : Shape{batch, tokens};
  check_shape(given, wanted);
  Tensor positions = dense(options.positions);
  check_indices({"rope", "positions", positions}, rows);
  return positions;
}

void check_tables(const Tensor& x, const Tensor& cos, const Tensor& sin) {
  check_compute({"rope", "x", x});
  check_rank({"rope", "x", x}, 4);
  check_rank({"rope", "cos", cos}, 2);
  check_parameter({"rope", "cos", cos}, x, cos.shape());
  check_parameter({"rope", "sin", sin}, x, cos.shape());
  if (2 * cos.size(1) > x.size(3))
    fail(ErrorCode::shape_mismatch, "rope", "argument cos",
         "at most " + std::to_string(x.size(3) / 2) + " columns, half of x's width",
         cos.describe());
}

// Everything of a rotation but its input.
struct Rotation {
  Pairing pairing;
  std::int64_t first_position;
  Tensor positions, cos, sin;  // contiguous
};

// Strides are no obstacle as long as the elements of a head lie side by side: queries and keys are
// slices of one product.
Tensor rotated(const Tensor& input, const Rotation& r, double direction) {
  const bool side_by_side = input.size(3) <= 1 || input.strides()[3] == 1;
  const Tensor x = side_by_side ? input : dense(input);
  Tensor y = empty_like(x);  // [B, T, H, D]
  if (!launch(y, {3 * count_of(y), 2 * bytes_of(y)})) return y;
  cpu::RopeArgs args;
  args.dtype = x.dtype();
  args.interleaved = r.pairing == Pairing::interleaved;
  args.batch = x.size(0);
  args.tokens = x.size(1);
  args.heads = x.size(2);
  args.width = x.size(3);
  args.rotated = 2 * r.cos.size(1);
  args.batch_stride = x.strides()[0];
  args.token_stride = x.strides()[1];
  args.head_stride = x.strides()[2];
  args.first_position = r.first_position;
  if (r.positions.defined()) {
    args.position_dtype = r.positions.dtype();
    args.position_step = r.positions.rank() == 2 ? x.size(1) : 0;
    args.positions = r.positions.raw();
  }
  args.direction = direction;
  args.cos = r.cos.raw();
  args.sin = r.sin.raw();
  args.x = x.raw();
  args.y = y.mutable_raw();
  kernels<cpu::RopeKernels>().rotate(args);
  return y;
}

}  // namespace

// dx1 = dy1·c + dy2·s, dx2 = dy2·c - dy1·s: the rotation by the negative angle
Tensor rope(const Tensor& x, const Tensor& cos, const Tensor& sin, const RopeOptions& options) {
  if (is_half(x)) return to_half(rope(wide(x), cos, sin, options));
  check_tables(x, cos, sin);
  const Tensor positions = checked_positions(x, cos.size(0), options);
  const Rotation r{options.pairing, options.first_position, positions, dense(cos), dense(sin)};
  if (tracked({&cos, &sin}))
    fail(ErrorCode::autograd, "rope", "arguments cos and sin have no gradient",
         "tables that do not require one, or detach()", cos.describe());
  Tensor y = rotated(x, r, 1);
  if (tracked({&x}))
    record("rope", {&x}, {&y},
           [pairing = r.pairing, first = r.first_position, p = Saved(positions), c = Saved(r.cos),
            s = Saved(r.sin)](VjpContext& context) {
             const Rotation back{pairing, first, p.get(), c.get(), s.get()};
             context.add(0, rotated(context.cotangent(), back, -1));
           });
  return y;
}

RopeTables rope_tables(std::int64_t positions, std::int64_t rotated, double base, DType dtype,
                       Device device) {
  check_condition(positions >= 0, "rope_tables", "positions", "0 or more",
                  std::to_string(positions));
  check_condition(rotated >= 0 && rotated % 2 == 0, "rope_tables", "rotated",
                  "an even number, 0 or more", std::to_string(rotated));
  check_condition(std::isfinite(base) && base > 0, "rope_tables", "base", "a number above 0",
                  std::to_string(base));
  if (dtype != DType::f32 && dtype != DType::f64)
    fail(ErrorCode::dtype_mismatch, "rope_tables", "argument dtype", "f32 or f64",
         to_string(dtype));
  const Shape shape{positions, rotated / 2};
  RopeTables tables{Tensor::empty(shape, dtype, device), Tensor::empty(shape, dtype, device)};
  const std::int64_t pairs = rotated / 2;
  if (!launch(tables.cos, {2 * count_of(tables.cos), 2 * bytes_of(tables.cos)})) return tables;
  const auto fill = [&]<class T>(T* cos, T* sin) {
    cpu::parallel_ranges(positions, 64, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t p = first; p < last; ++p)
        for (std::int64_t i = 0; i < pairs; ++i) {
          // In double for either type: at position 100 000 a float angle is off by 0.004.
          const double exponent = -2 * static_cast<double>(i) / static_cast<double>(rotated);
          const double angle = static_cast<double>(p) * std::pow(base, exponent);
          cos[p * pairs + i] = static_cast<T>(std::cos(angle));
          sin[p * pairs + i] = static_cast<T>(std::sin(angle));
        }
    });
  };
  if (dtype == DType::f64)
    fill(tables.cos.mutable_data<double>(), tables.sin.mutable_data<double>());
  else
    fill(tables.cos.mutable_data<float>(), tables.sin.mutable_data<float>());
  return tables;
}

}  // namespace heddle::ops
