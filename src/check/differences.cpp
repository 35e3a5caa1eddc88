#include <algorithm>
#include <cmath>

#include "backend/cpu/threads.h"
#include "check/paths.h"
#include "check/tolerance.h"
#include "heddle/tape.h"
#include "language/language.h"
#include "ops/copy/copy.h"

namespace heddle::check {

namespace {

constexpr const char* kPath = mark("gradients, by differences");

// Steps, as shares of a parameter's size, each half of the one before. Differences over long ones
// have the least rounding in them, but the loss may bend (a cap far below the scores) or its
// derivative jump (relu, a choice of experts) between two points; a gradient that is wrong is wrong
// by all of them.
constexpr double kLongestStep = 2e-3;
constexpr int kSteps = 18;
constexpr double kTolerance = 1e-6;
// With jumps only the shortest steps are free of them, and those leave four digits.
constexpr double kToleranceWithJumps = 1e-4;
// Where differences themselves are less certain than that, they prove nothing.
constexpr double kMostUncertainty = 1e-2;
// Of the loss: differences of it cannot tell a smaller derivative from 0.
constexpr double kLeastShareOfLoss = 1e-5;

double tolerance_of(const model::ModelConfig& c) {
  return has_kinks(c) || c.moe ? kToleranceWithJumps : kTolerance;
}

double loss_of(const Subject& subject, const model::Model& model) {
  const NoGrad no_grad;
  return model.loss(subject.batch, training_pass(DType::f64), subject.label_smoothing).total.item();
}

double size_of_numbers(const Tensor& t) {
  double squares = 0;
  for (const double v : t.to_vector<double>()) squares += v * v;
  return std::sqrt(squares);
}

// How far the loss may be off by its own rounding: how far it moves when every weight moves by the
// last bit.
double noise_of_loss(const Subject& subject, double loss) {
  constexpr std::uint32_t kDraws = 4;
  double most = epsilon(DType::f64) * std::abs(loss);
  for (std::uint32_t draw = 1; draw <= kDraws; ++draw) {
    const auto moved = subject.model(Jitter{epsilon(DType::f64), draw});
    most = std::max(most, std::abs(loss_of(subject, *moved) - loss));
  }
  return most;
}

// A derivative along one random direction, relative to the size such a derivative has.
struct Derivative {
  double error = HUGE_VAL;        // of the tape's against that by differences
  double uncertainty = HUGE_VAL;  // of the latter
};

class Walk {
 public:
  Walk(const Subject& subject, const model::Model& model, double loss)
      : subject_(subject),
        model_(model),
        least_(kLeastShareOfLoss * std::abs(loss)),
        noise_(noise_of_loss(subject, loss)) {}

  Derivative compare(const nn::Parameter& p, const Tensor& gradient, std::uint32_t stream) const {
    const double count = static_cast<double>(p.tensor.elements());
    const double size = std::max(size_of_numbers(p.tensor.detach()) / std::sqrt(count), 1e-3);
    const std::vector<double> v =
        normal(p.tensor.shape(), size, stream, DType::f64).to_vector<double>();
    double by_tape = 0;
    const std::vector<double> g =
        gradient.defined() ? gradient.to_vector<double>() : std::vector<double>(v.size(), 0);
    for (std::size_t i = 0; i < g.size(); ++i) by_tape += g[i] * v[i];
    const double usual = gradient.defined() ? size_of_numbers(gradient) * size : 0;
    return compare(by_tape, usual, [&](double h) { return slope(p.tensor, v, h); });
  }

 private:
  // Central differences have an error of order h². Those of two steps together leave one of order
  // h⁴, those of three h⁶ (Richardson). How far the former moved with the last step is more than
  // what is left where the loss is smooth at that length; and the noise of the loss is in every
  // difference. The step where both together are least decides, unless one agrees.
  template <class Slope>
  Derivative compare(double by_tape, double usual, const Slope& slope_over) const {
    Derivative best;
    double h = kLongestStep, wide = slope_over(h), before = 0;
    for (int step = 1; step < kSteps; ++step) {
      h /= 2;
      const double narrow = slope_over(h);
      const double two = (4 * narrow - wide) / 3, three = (16 * two - before) / 15;
      const double by_difference = step == 1 ? two : three;
      const double scale = std::max({std::abs(by_difference), usual, least_});
      Derivative now{std::abs(by_tape - by_difference) / scale};
      if (now.error <= tolerance_of(subject_.config)) return now;
      if (step > 1) now.uncertainty = (std::abs(two - before) + 4 * noise_ / h) / scale;
      if (now.uncertainty < best.uncertainty) best = now;
      wide = narrow;
      before = two;
    }
    return best;
  }

  double slope(Tensor p, const std::vector<double>& v, double h) const {
    const std::vector<double> start = p.to_vector<double>();
    const auto loss_at = [&](double step) {
      double* x = p.mutable_data<double>();
      for (std::size_t i = 0; i < start.size(); ++i) x[i] = start[i] + step * v[i];
      return loss_of(subject_, model_);
    };
    const double ahead = loss_at(h), behind = loss_at(-h);
    double* x = p.mutable_data<double>();
    std::copy(start.begin(), start.end(), x);
    return (ahead - behind) / (2 * h);
  }

  const Subject& subject_;
  const model::Model& model_;
  double least_, noise_;
};

}  // namespace

void check_differences(const Subject& subject, Report& report) {
  Setting setting = best_setting(DType::f64);
  setting.threads = cpu::thread_count();
  setting.use();
  const auto model = subject.model(DType::f64);
  const Evaluation e =
      evaluate(*model, subject.batch, DType::f64, {.label_smoothing = subject.label_smoothing});
  const Walk walk(subject, *model, e.loss.item());
  const double alone = tolerance_of(subject.config);
  WorstError worst;
  double limit = alone;
  std::size_t uncertain = 0;
  std::uint32_t stream = 500;
  for (std::size_t i = 0; i < e.gradients.size(); ++i) {
    subject.progress(tr("differences: {}", e.gradients[i].name));
    const Derivative c = walk.compare(model->parameters().all()[i], e.gradients[i].value, ++stream);
    // NaN and infinity are wrong, however uncertain.
    if (std::isfinite(c.error) && c.error > alone && c.uncertainty > kMostUncertainty) {
      ++uncertain;
      continue;
    }
    const double most = c.error > alone ? std::max(alone, c.uncertainty) : alone;
    if (c.error / most <= worst.error / limit) continue;
    worst = {c.error, e.gradients[i].name};
    limit = most;
  }
  add_case(report, kPath, setting, worst, limit);
  if (uncertain > 0) note_uncompared(report, kPath, setting, uncertain, e.gradients.size());
}

}  // namespace heddle::check
