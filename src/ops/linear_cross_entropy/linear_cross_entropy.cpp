#include "ops/linear_cross_entropy/linear_cross_entropy.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "ops/copy/copy.h"
#include "ops/linear_cross_entropy/linear_cross_entropy.kernels.h"
#include "ops/linear_cross_entropy/loss_rows.h"
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

// Everything of one call: where rows come from, where the gradients go.
struct Fused {
  Tensor x;     // [T, K]
  Tensor bias;  // [V] or undefined
  LossRows rows;
  Tensor row_scales;     // [T], the losses' own gradients; undefined: they come later
  Tensor packed;         // weightᵀ, [K, V]
  Tensor packed_back;    // weight, [V, K], where dx is wanted
  Tensor logits;         // [chunk, V] in the compute type
  Tensor dlogits;        // [chunk, V] in x's type; the logits themselves where that is the same
  Tensor packed_x;       // [chunk, K], where dW is wanted
  Tensor losses;         // [T], or undefined
  Tensor dx, dw, dbias;  // undefined where not wanted

  std::int64_t k() const { return x.size(1); }
  std::int64_t classes() const { return logits.size(1); }
  std::int64_t chunk() const { return logits.size(0); }
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
  cpu::CrossEntropyArgs args = row_args(f.rows, f.logits, begin, end);
  if (f.losses.defined()) args.losses = row_of(f.losses, begin);
  if (f.row_scales.defined()) args.row_scales = views::slice(f.row_scales, 0, begin, end).raw();
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

Cost fused_cost(const Fused& f, const Tensor& weight) {
  const auto rows = static_cast<double>(f.x.size(0));
  const double products = 1 + (f.dx.defined() ? 1 : 0) + (f.dw.defined() ? 1 : 0);
  const double chunks = rows / static_cast<double>(std::max<std::int64_t>(f.chunk(), 1));
  return {products * 2 * rows * count_of(weight),
          products * (bytes_of(f.x) + chunks * (bytes_of(weight) + bytes_of(f.logits)))};
}

// Room for one chunk, and the packed weight.
void allocate_workspace(Fused& f, const Tensor& weight) {
  const DType compute = parameter_dtype(f.x);
  const DType operand = f.x.dtype();
  const std::int64_t classes = weight.size(0);
  const std::int64_t chunk = logits_rows(f.x.size(0), classes);
  f.packed = packed_weight(views::transpose(weight, 0, 1), operand);
  if (f.dx.defined()) f.packed_back = packed_weight(weight, operand);
  const PurposeScope scope(Purpose::workspace);
  f.logits = Tensor::empty({chunk, classes}, compute, f.x.device());
  if (!f.wants_gradient()) return;
  f.dlogits =
      operand == compute ? f.logits : Tensor::empty({chunk, classes}, operand, f.x.device());
  if (f.dw.defined()) f.packed_x = packed_workspace(operand, chunk, f.k(), f.x);
}

void check_classifier(const Tensor& x, const Tensor& weight, const Tensor& bias) {
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
}

// x *= factor, a scalar on x's device. Nothing to do for 1, which is what a loss usually gets.
void rescale(Tensor& x, const Tensor& factor) {
  if (!launch(x, {count_of(x), 2 * bytes_of(x)})) return;
  const double value = factor.item();
  if (value == 1) return;
  kernels<Kernels>().rescale({x.dtype(), x.elements(), value, x.mutable_raw()});
}

// All chunks.
void run_fused(Fused& f, const Tensor& launched, const Tensor& weight) {
  if (!launch(launched, fused_cost(f, weight))) return;
  const std::int64_t rows = f.x.size(0);
  for (std::int64_t begin = 0; begin < rows; begin += f.chunk())
    run_chunk(f, begin, std::min(begin + f.chunk(), rows));
}

struct WantedGradients {
  bool x, weight, bias;
};

void allocate_gradients(Fused& f, const Tensor& weight, const WantedGradients& wanted) {
  const std::int64_t rows = f.x.size(0), classes = weight.size(0);
  const DType compute = parameter_dtype(f.x);
  if (wanted.x) f.dx = Tensor::empty({rows, f.k()}, f.x.dtype(), f.x.device());
  // f32 also for a weight in bf16: chunks are added up. Without any chunk nothing else is written.
  const PurposeScope scope(Purpose::gradients);
  const auto make = rows == 0 ? Tensor::zeros : Tensor::empty;
  if (wanted.weight) f.dw = make({classes, f.k()}, compute, f.x.device());
  if (wanted.bias) f.dbias = make({classes}, compute, f.x.device());
}

// What the gradients are handed over as.
struct GradientTypes {
  Shape x;
  DType weight;
};

void add_gradients(VjpContext& c, const Tensor& dx, const Tensor& dw, const Tensor& dbias,
                   const GradientTypes& as) {
  if (dx.defined()) c.add(0, views::reshape(dx, as.x));
  if (dw.defined()) c.add(1, cast(dw, as.weight));
  if (dbias.defined()) c.add(2, dbias);
}

// One number: gradients are made at once, and scaled when the loss's own is known.
Tensor reduced_loss(Fused& f, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  Tensor loss = Tensor::empty({}, parameter_dtype(x), x.device());
  allocate_gradients(f, weight, {tracked({&x}), tracked({&weight}), tracked({&bias})});
  allocate_workspace(f, weight);
  {
    const PurposeScope scope(Purpose::workspace);
    f.losses = Tensor::empty({f.x.size(0)}, loss.dtype(), x.device());
  }
  run_fused(f, loss, weight);
  if (loss.device() != Device::meta) write_loss(loss, f.losses, f.rows.scale);
  if (f.wants_gradient())
    record("linear_cross_entropy", {&x, &weight, &bias}, {&loss},
           [dx = f.dx, dw = f.dw, dbias = f.dbias,
            as = GradientTypes{x.shape(), weight.dtype()}](VjpContext& c) mutable {
             for (Tensor* t : {&dx, &dw, &dbias})
               if (t->defined()) rescale(*t, c.cotangent());
             add_gradients(c, dx, dw, dbias, as);
           });
  return loss;
}

// What the tape keeps where losses are not put together.
struct SavedClassifier {
  SavedClassifier(const Fused& f, const Tensor& w)
      : x(f.x), weight(w), bias(f.bias), rows(f.rows) {}

  Fused get() const {
    Fused f;
    f.x = x.get();
    f.bias = bias.get();
    f.rows = rows.get();
    return f;
  }

  Saved x, weight, bias;
  SavedRows rows;
};

// One number for each row, with as many gradients of their own: the logits are made again.
Tensor loss_of_each(Fused& f, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  Shape shape = x.shape();
  shape.erase(x.rank() - 1);
  Tensor loss = Tensor::empty(shape, parameter_dtype(x), x.device());
  f.losses = views::reshape(loss, {f.x.size(0)});
  allocate_workspace(f, weight);
  run_fused(f, loss, weight);
  if (tracked({&x, &weight, &bias}))
    record("linear_cross_entropy", {&x, &weight, &bias}, {&loss},
           [saved = SavedClassifier(f, weight),
            as = GradientTypes{x.shape(), weight.dtype()}](VjpContext& c) {
             const Tensor w = saved.weight.get();
             Fused back = saved.get();
             back.row_scales = views::reshape(dense(c.cotangent()), {back.x.size(0)});
             allocate_gradients(back, w, {c.needs(0), c.needs(1), c.needs(2)});
             allocate_workspace(back, w);
             run_fused(back, back.row_scales, w);
             add_gradients(c, back.dx, back.dw, back.dbias, as);
           });
  return loss;
}

}  // namespace

// With dz of cross_entropy():
//   dx = dz·W, dW = dzᵀ·x, dbias = Σ_rows dz
Tensor linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& bias,
                            const Tensor& targets, const CrossEntropyOptions& options) {
  if (is_half(x)) return linear_cross_entropy(wide(x), weight, bias, targets, options);
  check_classifier(x, weight, bias);
  Fused f;
  f.rows = checked_loss("linear_cross_entropy", x, weight.size(0), targets, options);
  f.x = as_matrix(x, targets.elements(), x.size(-1));
  if (bias.defined()) f.bias = dense(bias);
  return options.reduction == Reduction::none ? loss_of_each(f, x, weight, bias)
                                              : reduced_loss(f, x, weight, bias);
}

}  // namespace heddle::ops
