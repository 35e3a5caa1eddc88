#include "ops/linear_cross_entropy/linear_cross_entropy.h"

#include <string>
#include <utility>

#include "ops/copy/copy.h"
#include "ops/linear/linear.h"
#include "ops/linear_cross_entropy/linear_cross_entropy.call.h"
#include "ops/linear_cross_entropy/loss_rows.h"
#include "ops/support/op.h"

namespace heddle::ops {

namespace {

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

// Arguments, checked.
struct Classifier {
  Tensor x;       // [T, K]
  Tensor weight;  // [V, K]
  Tensor bias;    // [V], dense, or undefined
  LossRows rows;
};

struct ClassifierGradients {
  Tensor dx, dw, dbias;  // undefined where not wanted
};

struct WantedGradients {
  bool x, weight, bias;
};

ClassifierGradients empty_gradients(const Classifier& c, const WantedGradients& wanted) {
  const std::int64_t rows = c.x.size(0), classes = c.weight.size(0), width = c.x.size(1);
  const DType compute = parameter_dtype(c.x);
  ClassifierGradients g;
  if (wanted.x) g.dx = Tensor::empty({rows, width}, c.x.dtype(), c.x.device());
  // f32 also for a weight in bf16: rows are taken in parts, which are added up. Without any row
  // nothing is written.
  const PurposeScope scope(Purpose::gradients);
  const auto make = rows == 0 ? Tensor::zeros : Tensor::empty;
  if (wanted.weight) g.dw = make({classes, width}, compute, c.x.device());
  if (wanted.bias) g.dbias = make({classes}, compute, c.x.device());
  return g;
}

// The types in which the gradients are returned.
struct GradientTypes {
  Shape x;
  DType weight;
};

void add_gradients(VjpContext& c, const ClassifierGradients& g, const GradientTypes& as) {
  if (g.dx.defined()) c.add(0, views::reshape(g.dx, as.x));
  if (g.dw.defined()) c.add(1, cast(g.dw, as.weight));
  if (g.dbias.defined()) c.add(2, g.dbias);
}

// One number: gradients are made at once, and scaled when the loss's own is known.
Tensor reduced_loss(const Classifier& args, const Tensor& x, const Tensor& bias) {
  const Tensor& weight = args.weight;
  Tensor loss = Tensor::empty({}, parameter_dtype(x), x.device());
  ClassifierGradients g =
      empty_gradients(args, {tracked({&x}), tracked({&weight}), tracked({&bias})});
  const Tensor none;
  launch(LinearCrossEntropyCall{.rows = args.rows,
                                .x = args.x,
                                .weight = weight,
                                .bias = args.bias,
                                .dlosses = none,
                                .loss = loss,
                                .dx = g.dx,
                                .dw = g.dw,
                                .dbias = g.dbias});
  if (g.dx.defined() || g.dw.defined() || g.dbias.defined())
    record("linear_cross_entropy", {&x, &weight, &bias}, {&loss},
           [g, as = GradientTypes{x.shape(), weight.dtype()}](VjpContext& c) mutable {
             for (Tensor* t : {&g.dx, &g.dw, &g.dbias})
               if (t->defined()) launch(RescaleCall{c.cotangent(), *t});
             add_gradients(c, g, as);
           });
  return loss;
}

// State that the tape keeps where losses are not reduced.
struct SavedClassifier {
  explicit SavedClassifier(const Classifier& c)
      : x(c.x), weight(c.weight), bias(c.bias), rows(c.rows) {}

  Classifier get() const { return {x.get(), weight.get(), bias.get(), rows.get()}; }

  Saved x, weight, bias;
  SavedRows rows;
};

ClassifierGradients gradients_of_each(const Classifier& args, const Tensor& dloss,
                                      const WantedGradients& wanted) {
  const Tensor dlosses = views::reshape(dense(dloss), {args.x.size(0)});
  ClassifierGradients g = empty_gradients(args, wanted);
  Tensor none;
  launch(LinearCrossEntropyCall{.rows = args.rows,
                                .x = args.x,
                                .weight = args.weight,
                                .bias = args.bias,
                                .dlosses = dlosses,
                                .loss = none,
                                .dx = g.dx,
                                .dw = g.dw,
                                .dbias = g.dbias});
  return g;
}

// One number for each row, with as many gradients of their own: the logits are made again.
Tensor loss_of_each(const Classifier& args, const Tensor& x, const Tensor& bias) {
  const Tensor& weight = args.weight;
  Shape shape = x.shape();
  shape.erase(x.rank() - 1);
  Tensor loss = Tensor::empty(shape, parameter_dtype(x), x.device());
  Tensor none;
  launch(LinearCrossEntropyCall{.rows = args.rows,
                                .x = args.x,
                                .weight = weight,
                                .bias = args.bias,
                                .dlosses = none,
                                .loss = loss,
                                .dx = none,
                                .dw = none,
                                .dbias = none});
  if (tracked({&x, &weight, &bias}))
    record("linear_cross_entropy", {&x, &weight, &bias}, {&loss},
           [saved = SavedClassifier(args),
            as = GradientTypes{x.shape(), weight.dtype()}](VjpContext& c) {
             add_gradients(c,
                           gradients_of_each(saved.get(), c.cotangent(),
                                             {c.needs(0), c.needs(1), c.needs(2)}),
                           as);
           });
  return loss;
}

// From ops that have routines of their own: all logits at once.
Tensor loss_of_logits(const Classifier& args, const Tensor& x, const Tensor& targets,
                      const Tensor& bias) {
  LinearOptions options;
  options.wide = true;
  return cross_entropy(linear(x, args.weight, bias, options), targets, args.rows.options);
}

}  // namespace

// With dz of cross_entropy():
//   dx = dz·W, dW = dzᵀ·x, dbias = Σ_rows dz
Tensor linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& bias,
                            const Tensor& targets, const CrossEntropyOptions& options) {
  if (is_half(x)) return linear_cross_entropy(wide(x), weight, bias, targets, options);
  check_classifier(x, weight, bias);
  Classifier args;
  args.weight = weight;
  args.rows = checked_loss("linear_cross_entropy", x, weight.size(0), targets, options);
  if (!has_routine<LinearCrossEntropyCall>(x)) return loss_of_logits(args, x, targets, bias);
  args.x = as_matrix(x, targets.elements(), x.size(-1));
  args.bias = dense_or_none(bias);
  return args.rows.each() ? loss_of_each(args, x, bias) : reduced_loss(args, x, bias);
}

}  // namespace heddle::ops
