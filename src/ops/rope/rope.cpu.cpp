// rope on the CPU.
#include <cmath>

#include "backend/cpu/kernels.h"
#include "backend/cpu/threads.h"
#include "ops/rope/rope.call.h"
#include "ops/rope/rope.kernels.h"
#include "ops/support/cpu.h"

namespace heddle::cpu {

namespace {

void run_rope(ops::RopeCall& c) {
  check_f64("rope", c.x.dtype());
  RopeArgs args;
  args.dtype = c.x.dtype();
  args.interleaved = c.pairing == ops::Pairing::interleaved;
  args.batch = c.x.size(0);
  args.tokens = c.x.size(1);
  args.heads = c.x.size(2);
  args.width = c.x.size(3);
  args.rotated = 2 * c.cos.size(1);
  args.batch_stride = c.x.strides()[0];
  args.token_stride = c.x.strides()[1];
  args.head_stride = c.x.strides()[2];
  args.first_position = c.first_position;
  if (c.positions.defined()) {
    args.position_dtype = c.positions.dtype();
    args.position_step = c.positions.rank() == 2 ? c.x.size(1) : 0;
    args.positions = c.positions.raw();
  }
  args.direction = c.direction;
  args.cos = c.cos.raw();
  args.sin = c.sin.raw();
  args.x = c.x.raw();
  args.y = c.y.mutable_raw();
  kernels<RopeKernels>().rotate(args);
}

template <class T>
void fill_rope_tables(const ops::RopeTablesCall& c) {
  const std::int64_t positions = c.cos.size(0), pairs = c.cos.size(1);
  T* const cos = c.cos.mutable_data<T>();
  T* const sin = c.sin.mutable_data<T>();
  parallel_ranges(positions, 64, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t p = first; p < last; ++p)
      for (std::int64_t i = 0; i < pairs; ++i) {
        // In double for either type: at position 100 000 a float angle is off by 0.004.
        const double exponent = -2 * static_cast<double>(i) / static_cast<double>(2 * pairs);
        const double angle = static_cast<double>(p) * std::pow(c.base, exponent);
        cos[p * pairs + i] = static_cast<T>(std::cos(angle));
        sin[p * pairs + i] = static_cast<T>(std::sin(angle));
      }
  });
}

void run_rope_tables(ops::RopeTablesCall& c) {
  if (c.cos.dtype() == DType::f64)
    fill_rope_tables<double>(c);
  else
    fill_rope_tables<float>(c);
}

}  // namespace

void add_rope_routines() {
  add<ops::RopeCall>({run_rope});
  add<ops::RopeTablesCall>({run_rope_tables});
}

}  // namespace heddle::cpu
