#include "ops/linear_cross_entropy/linear_cross_entropy.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <string>
#include <utility>

#include "ops/copy/copy.h"
#include "ops/linear_cross_entropy/linear_cross_entropy.kernels.h"
#include "ops/linear_cross_entropy/targets.h"
#include "ops/support/op.h"
#include "ops/support/product.h"

namespace heddle::ops {

namespace {

using Kernels = cpu::LinearCrossEntropyKernels;

// Rows of one chunk, about evenly cut: 4 MiB of f32 logits for vocabularies up to 2048. Above that
// the logits grow with the vocabulary, because fewer than 512 rows would make the products wait for
// memory: each chunk reads the packed weight twice and adds to the weight's gradient once.
std::int64_t logits_rows(std::int64_t rows, std::int64_t classes) {
  constexpr std::int64_t kLogits = std::int64_t{1} << 20, kLeast = 512, kWhole = 32;
  const std::int64_t most =
      std::max<std::int64_t>(kLogits / std::max<std::int64_t>(classes, 1), kLeast);
  const std::int64_t chunks = std::max<std::int64_t>((rows + most - 1) / most, 1);
  const std::int64_t even = (rows + chunks - 1) / chunks;
  return std::min(rows, (even + kWhole - 1) / kWhole * kWhole);
}

void check_options(const char* op, const CrossEntropyOptions& options) {
  const double s = options.label_smoothing;
  check_number(op, "label_smoothing", s >= 0 && s <= 1, "a number from 0 to 1", s);
}

void check_targets(const char* op, const Tensor& targets, const Tensor& x) {
  check_index({op, "targets", targets});
  Shape rows = x.shape();
  rows.erase(x.rank() - 1);
  check_shape({op, "targets", targets}, rows);
  check_same_device({op, "targets", targets}, x);
}

// 1 / rows that count, or 1; 0 where none counts.
double loss_scale(const CrossEntropyOptions& options, std::int64_t counted) {
  if (options.reduction == Reduction::sum) return 1;
  return counted == 0 ? 0 : 1 / static_cast<double>(counted);
}

// The sum of the rows' losses, in float64 and in order.
void write_loss(Tensor& loss, const Tensor& losses, double scale) {
  const auto sum = [n = losses.elements()](const auto* values) {
    return std::accumulate(values, values + n, 0.0);
  };
  if (losses.dtype() == DType::f64)
    *loss.mutable_data<double>() = sum(losses.data<double>()) * scale;
  else
    *loss.mutable_data<float>() = static_cast<float>(sum(losses.data<float>()) * scale);
}

cpu::CrossEntropyArgs row_args(const Tensor& logits, const Tensor& targets,
                               const CrossEntropyOptions& options) {
  cpu::CrossEntropyArgs args;
  args.logits_dtype = args.gradient_dtype = logits.dtype();
  args.target_dtype = targets.dtype();
  args.classes = logits.shape().back();
  args.rows = targets.elements();
  args.ignore_index = options.ignore_index;
  args.smoothing = options.label_smoothing;
  args.logits = logits.raw();
  args.targets = targets.raw();
  return args;
}

// ---- the fused op -------------------------------------------------------------------------------

// Everything of one call: where rows come from, where the gradients go.
struct Fused {
  Tensor x;        // [T, K]
  Tensor bias;     // [V] or undefined
  Tensor targets;  // [T]
  CrossEntropyOptions options;
  double scale = 1;
  Tensor packed;         // weightᵀ, [K, V]
  Tensor packed_back;    // weight, [V, K], where dx is wanted
  Tensor logits;         // [chunk, V] in the compute type
  Tensor dlogits;        // [chunk, V] in x's type; the logits themselves where that is the same
  Tensor packed_x;       // [chunk, K], where dW is wanted
  Tensor losses;         // [T]
  Tensor dx, dw, dbias;  // undefined where not wanted

  std::int64_t k() const { return x.size(1); }
  std::int64_t classes() const { return logits.size(1); }
  bool wants_gradient() const { return dx.defined() || dw.defined() || dbias.defined(); }
};

void* row_of(Tensor& t, std::int64_t row) {
  return static_cast<char*>(t.mutable_raw()) +
         static_cast<std::size_t>(row * t.strides()[0]) * size_of(t.dtype());
}

// logits = x · Wᵀ + bias
void run_logits(Fused& f, std::int64_t begin, std::int64_t end) {
  cpu::GemmJob job;
  job.m = end - begin;
  job.n = f.classes();
  job.k = f.k();
  job.a = matrix_of(views::slice(f.x, 0, begin, end));
  job.packed_b = f.packed.raw();
  job.c = f.logits.mutable_raw();
  job.c_dtype = f.logits.dtype();
  job.c_row_stride = f.classes();
  if (f.bias.defined()) job.epilogue.bias = f.bias.raw();
  kernels<cpu::ProductKernels>().run(f.x.dtype(), job);
}

void run_rows(Fused& f, std::int64_t begin, std::int64_t end) {
  const Tensor targets = views::slice(f.targets, 0, begin, end);
  cpu::CrossEntropyArgs args = row_args(f.logits, targets, f.options);
  args.scale = f.scale;
  args.losses = row_of(f.losses, begin);
  if (f.wants_gradient()) {
    args.gradient_dtype = f.dlogits.dtype();
    args.gradient = f.dlogits.mutable_raw();
  }
  kernels<Kernels>().rows(args);
}

// dx = dlogits · W
cpu::GemmJob input_gradient(Fused& f, std::int64_t begin, std::int64_t end) {
  cpu::GemmJob job;
  job.m = end - begin;
  job.n = f.k();
  job.k = f.classes();
  job.a = matrix_of(f.dlogits);
  job.packed_b = f.packed_back.raw();
  job.c = row_of(f.dx, begin);
  job.c_dtype = f.dx.dtype();
  job.c_row_stride = f.k();
  return job;
}

// dW += dlogitsᵀ · x
cpu::GemmJob weight_gradient(Fused& f, std::int64_t begin, std::int64_t end) {
  cpu::GemmJob job;
  job.m = f.classes();
  job.n = f.k();
  job.k = end - begin;
  job.a = matrix_of(views::transpose(f.dlogits, 0, 1));
  job.b = matrix_of(views::slice(f.x, 0, begin, end));
  job.room_for_b = f.packed_x.mutable_raw();
  job.c = f.dw.mutable_raw();
  job.c_dtype = f.dw.dtype();
  job.c_row_stride = f.k();
  job.epilogue.accumulate = begin > 0;
  return job;
}

// Both together: the weight's alone has too few rows for several threads where there are few
// classes.
void run_gradients(Fused& f, std::int64_t begin, std::int64_t end) {
  cpu::GemmJob jobs[2];
  std::size_t count = 0;
  if (f.dx.defined()) jobs[count++] = input_gradient(f, begin, end);
  if (f.dw.defined()) jobs[count++] = weight_gradient(f, begin, end);
  if (count > 0)
    kernels<cpu::ProductKernels>().run_all(f.x.dtype(), std::span(jobs, count), nullptr);
}

void run_chunk(Fused& f, std::int64_t begin, std::int64_t end) {
  run_logits(f, begin, end);
  run_rows(f, begin, end);
  run_gradients(f, begin, end);
  if (f.dbias.defined())
    kernels<Kernels>().column_sums({f.dlogits.dtype(), end - begin, f.classes(), begin > 0,
                                    f.dlogits.raw(), f.dbias.mutable_raw()});
}

Cost fused_cost(const Fused& f, const Tensor& weight, std::int64_t chunk) {
  const auto rows = static_cast<double>(f.x.size(0));
  const double products = 1 + (f.dx.defined() ? 1 : 0) + (f.dw.defined() ? 1 : 0);
  const double chunks = rows / static_cast<double>(std::max<std::int64_t>(chunk, 1));
  return {products * 2 * rows * count_of(weight),
          products * (bytes_of(f.x) + chunks * (bytes_of(weight) + bytes_of(f.logits)))};
}

// Room for one chunk, and the packed weight.
void allocate_workspace(Fused& f, const Tensor& weight, std::int64_t chunk) {
  const DType compute = parameter_dtype(f.x);
  const DType operand = f.x.dtype();
  const std::int64_t classes = weight.size(0);
  f.packed = packed_weight(views::transpose(weight, 0, 1), operand);
  if (f.dx.defined()) f.packed_back = packed_weight(weight, operand);
  const PurposeScope scope(Purpose::workspace);
  f.losses = Tensor::empty({f.x.size(0)}, compute, f.x.device());
  f.logits = Tensor::empty({chunk, classes}, compute, f.x.device());
  if (!f.wants_gradient()) return;
  f.dlogits =
      operand == compute ? f.logits : Tensor::empty({chunk, classes}, operand, f.x.device());
  if (f.dw.defined()) f.packed_x = packed_workspace(operand, chunk, f.k(), f.x);
}

void check_fused(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& targets,
                 const CrossEntropyOptions& options) {
  const char* const op = "linear_cross_entropy";
  check_compute({op, "x", x});
  check_rank_at_least({op, "x", x}, 1);
  check_rank({op, "weight", weight}, 2);
  check_same_device({op, "weight", weight}, x);
  const bool narrow = x.dtype() != DType::f64 && weight.dtype() == DType::bf16;
  if (!narrow) check_dtype({op, "weight", weight}, parameter_dtype(x));
  if (weight.size(1) != x.size(-1))
    fail(ErrorCode::shape_mismatch, op, "argument weight does not fit x, " + x.describe(),
         "[V, " + std::to_string(x.size(-1)) + "]", weight.describe());
  if (bias.defined()) check_parameter({op, "bias", bias}, x, {weight.size(0)});
  check_targets(op, targets, x);
  check_options(op, options);
}

// x *= factor, a scalar on x's device. Nothing to do for 1, which is what a loss usually gets.
void rescale(Tensor& x, const Tensor& factor) {
  if (!launch(x, {count_of(x), 2 * bytes_of(x)})) return;
  const double value = factor.item();
  if (value == 1) return;
  kernels<Kernels>().rescale({x.dtype(), x.elements(), value, x.mutable_raw()});
}

}  // namespace

// With dz = (softmax(z) - target distribution) / rows:
//   dx = dz·W, dW = dzᵀ·x, dbias = Σ_rows dz, all times the loss's own gradient
Tensor linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& bias,
                            const Tensor& targets, const CrossEntropyOptions& options) {
  check_fused(x, weight, bias, targets, options);
  const std::int64_t rows = targets.elements(), k = x.size(-1), classes = weight.size(0);
  const std::int64_t chunk = logits_rows(rows, classes);
  Fused f;
  f.x = as_matrix(x, rows, k);
  if (bias.defined()) f.bias = dense(bias);
  f.targets = views::reshape(dense(targets), {rows});
  f.options = options;
  const std::int64_t counted =
      count_targets("linear_cross_entropy", f.targets, classes, options.ignore_index);
  f.scale = loss_scale(options, counted);
  const DType compute = parameter_dtype(x);
  Tensor loss = Tensor::empty({}, compute, x.device());
  if (tracked({&x})) f.dx = Tensor::empty({rows, k}, x.dtype(), x.device());
  {
    // f32 also for a weight in bf16: chunks are added up. Without any chunk nothing else is
    // written.
    const PurposeScope scope(Purpose::gradients);
    const auto make = rows == 0 ? Tensor::zeros : Tensor::empty;
    if (tracked({&weight})) f.dw = make({classes, k}, compute, x.device());
    if (tracked({&bias})) f.dbias = make({classes}, compute, x.device());
  }
  allocate_workspace(f, weight, chunk);
  if (launch(loss, fused_cost(f, weight, chunk))) {
    for (std::int64_t begin = 0; begin < rows; begin += chunk)
      run_chunk(f, begin, std::min(begin + chunk, rows));
    write_loss(loss, f.losses, f.scale);
  }
  if (f.wants_gradient())
    record("linear_cross_entropy", {&x, &weight, &bias}, {&loss},
           [dx = f.dx, dw = f.dw, dbias = f.dbias, shape = x.shape(),
            dtype = weight.dtype()](VjpContext& c) mutable {
             const Tensor& g = c.cotangent();
             for (Tensor* t : {&dx, &dw, &dbias})
               if (t->defined()) rescale(*t, g);
             if (dx.defined()) c.add(0, views::reshape(dx, shape));
             if (dw.defined()) c.add(1, cast(dw, dtype));
             if (dbias.defined()) c.add(2, dbias);
           });
  return loss;
}

// dz = (softmax(z) - target distribution) · dloss / rows; the softmax is made again from z
Tensor cross_entropy(const Tensor& logits, const Tensor& targets,
                     const CrossEntropyOptions& options) {
  const char* const op = "cross_entropy";
  check_compute({op, "logits", logits});
  check_rank_at_least({op, "logits", logits}, 1);
  check_targets(op, targets, logits);
  check_options(op, options);
  const Tensor z = dense(logits);
  const Tensor t = dense(targets);
  const double scale = loss_scale(options, count_targets(op, t, z.size(-1), options.ignore_index));
  Tensor loss = Tensor::empty({}, parameter_dtype(z), z.device());
  Tensor losses;
  {
    const PurposeScope scope(Purpose::workspace);
    losses = Tensor::empty({t.elements()}, loss.dtype(), z.device());
  }
  if (launch(loss, {4 * count_of(z), bytes_of(z)})) {
    cpu::CrossEntropyArgs args = row_args(z, t, options);
    args.losses = losses.mutable_raw();
    kernels<Kernels>().rows(args);
    write_loss(loss, losses, scale);
  }
  if (tracked({&logits}))
    record(op, {&logits}, {&loss}, [z = Saved(z), t = Saved(t), options, scale](VjpContext& c) {
      Tensor dz = empty_like(z.get());
      if (launch(dz, {6 * count_of(dz), 2 * bytes_of(dz)})) {
        cpu::CrossEntropyArgs args = row_args(z.get(), t.get(), options);
        args.scale = scale * c.cotangent().item();
        args.gradient = dz.mutable_raw();
        kernels<Kernels>().rows(args);
      }
      c.add(0, dz);
    });
  return loss;
}

}  // namespace heddle::ops
