#include "ops/rope/rope.h"

#include <cmath>
#include <string>

#include "ops/copy/copy.h"
#include "ops/rope/rope.call.h"
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
  check_defined(given);
  const Shape wanted = options.positions.rank() == 1 ? Shape{tokens} : Shape{batch, tokens};
  check_shape(given, wanted);
  return entered(given, rows, x);
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
  launch(RopeCall{.pairing = r.pairing,
                  .first_position = r.first_position,
                  .direction = direction,
                  .positions = r.positions,
                  .cos = r.cos,
                  .sin = r.sin,
                  .x = x,
                  .y = y});
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
  if (!has_routine<RopeCall>(x))
    return cast(reference::rope(cast(x, parameter_dtype(x)), cos, sin, options), x.dtype());
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
  if (!backend::has_routine<RopeTablesCall>(device)) {
    const RopeTables host = rope_tables(positions, rotated, base, dtype, Device::cpu);
    return {host.cos.to(device), host.sin.to(device)};
  }
  RopeTables tables{Tensor::empty(shape, dtype, device), Tensor::empty(shape, dtype, device)};
  launch(RopeTablesCall{base, tables.cos, tables.sin});
  return tables;
}

}  // namespace heddle::ops
