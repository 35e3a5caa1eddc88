#include <algorithm>
#include <cmath>

#include "backend/cpu/threads.h"
#include "check/paths.h"
#include "check/tolerance.h"
#include "heddle/tape.h"
#include "ops/copy/copy.h"

namespace heddle::check {

namespace {

// Steps, as shares of a parameter's size. Differences over long ones are the most exact, but a jump
// of the derivative (relu, a choice of experts) may lie between two points; a gradient that is
// wrong is wrong by all of them.
constexpr double kSteps[] = {1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8};
constexpr double kTolerance = 1e-6;
// With jumps only the shortest steps are free of them, and those leave four digits.
constexpr double kToleranceWithJumps = 1e-4;
// Of the loss: differences of it cannot tell a smaller derivative from 0.
constexpr double kLeastShareOfLoss = 1e-5;

bool jumps(const model::ModelConfig& c) { return has_kinks(c) || c.moe.has_value(); }

double size_of_numbers(const Tensor& t) {
  double squares = 0;
  for (const double v : t.to_vector<double>()) squares += v * v;
  return std::sqrt(squares);
}

class Walk {
 public:
  Walk(const Subject& subject, const model::Model& model, double loss)
      : subject_(subject), model_(model), least_(kLeastShareOfLoss * std::abs(loss)) {}

  // The error of the derivative along one random direction of one parameter, relative to the size
  // such a derivative has.
  double error(const nn::Parameter& p, const Tensor& gradient, std::uint32_t stream) const {
    const double count = static_cast<double>(p.tensor.elements());
    const double size = std::max(size_of_numbers(p.tensor.detach()) / std::sqrt(count), 1e-3);
    const Tensor direction = normal(p.tensor.shape(), size, stream, DType::f64);
    double by_tape = 0;
    const std::vector<double> g = gradient.defined() ? gradient.to_vector<double>()
                                                     : std::vector<double>(direction.elements(), 0);
    const std::vector<double> v = direction.to_vector<double>();
    for (std::size_t i = 0; i < g.size(); ++i) by_tape += g[i] * v[i];
    const double usual = gradient.defined() ? size_of_numbers(gradient) * size : 0;
    double least = HUGE_VAL;
    for (const double h : kSteps) {
      // Central differences, improved once by Richardson: error of order h⁴.
      const double narrow = slope(p.tensor, v, h), wide = slope(p.tensor, v, 2 * h);
      const double by_difference = (4 * narrow - wide) / 3;
      const double scale = std::max({std::abs(by_difference), usual, least_});
      least = std::min(least, std::abs(by_tape - by_difference) / scale);
      if (least <= (jumps(subject_.config) ? kToleranceWithJumps : kTolerance)) break;
    }
    return least;
  }

 private:
  double slope(Tensor p, const std::vector<double>& v, double h) const {
    const std::vector<double> start = p.to_vector<double>();
    const auto loss_at = [&](double step) {
      double* x = p.mutable_data<double>();
      for (std::size_t i = 0; i < start.size(); ++i) x[i] = start[i] + step * v[i];
      const NoGrad no_grad;
      return model_.loss(subject_.batch, training_pass(DType::f64), subject_.label_smoothing)
          .total.item();
    };
    const double ahead = loss_at(h), behind = loss_at(-h);
    double* x = p.mutable_data<double>();
    std::copy(start.begin(), start.end(), x);
    return (ahead - behind) / (2 * h);
  }

  const Subject& subject_;
  const model::Model& model_;
  double least_;
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
  WorstError worst;
  std::uint32_t stream = 500;
  for (std::size_t i = 0; i < e.gradients.size(); ++i) {
    subject.progress("differences: " + e.gradients[i].name);
    worst.add(walk.error(model->parameters().all()[i], e.gradients[i].value, ++stream),
              e.gradients[i].name);
  }
  add_case(report, "gradients, by differences", setting, worst,
           jumps(subject.config) ? kToleranceWithJumps : kTolerance);
}

}  // namespace heddle::check
