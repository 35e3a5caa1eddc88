// residual-gradient: what arrives at the first layer of a deep stack?
#include <algorithm>
#include <cmath>
#include <numeric>

#include "heddle/tape.h"
#include "lab/experiments.h"
#include "lab/findings.h"
#include "lab/tools.h"
#include "lab/topics.h"
#include "nn/ffn/ffn.h"
#include "ops/binary/binary.h"
#include "ops/reduce/reduce.h"
#include "ops/unary/unary.h"

namespace heddle::lab::residual_gradient {

namespace {

constexpr std::int64_t kWidth = 32, kTokens = 16, kDeepest = 48;

struct Stack {
  bool residual = false;
  bool small_branches = false;  // the last product of a layer begins 1/√(2·depth) smaller
};

double size(const Tensor& x) { return std::sqrt(ops::mean_all(ops::square(x.detach())).item()); }

// The gradient at the input of `depth` feed-forward layers, for a gradient of size 1 at the output.
double gradient_at_first(const Findings& f, const Stack& stack, std::int64_t depth) {
  if (f.fault("four-layers")) depth = 4;
  nn::ParameterOptions options{.seed = 6, .dtype = DType::f64};
  if (stack.small_branches && !f.fault("large-branches"))
    options.init.branch_gain = 1 / std::sqrt(2.0 * static_cast<double>(depth));
  nn::Parameters store(options);
  Tensor x = normal({kTokens, kWidth}, 120);
  x.set_requires_grad(true);
  const Tensor cotangent = normal({kTokens, kWidth}, 121);
  Tape tape;
  Tensor y = x;
  for (std::int64_t i = 0; i < depth; ++i) {
    const nn::FeedForward layer({.kind = nn::FfnKind::gelu, .width = kWidth, .hidden = 2 * kWidth},
                                store.root() / i);
    const Tensor branch = layer.forward(y);
    y = stack.residual || f.fault("residuals-everywhere") ? ops::add(y, branch) : branch;
  }
  tape.backward(std::span<const Tensor>(&y, 1), std::span<const Tensor>(&cotangent, 1));
  return size(f.fault("gradient-of-output") ? cotangent : x.grad()) / size(cotangent);
}

struct Case {
  const char* key;
  std::string name;
  Stack stack;
  std::vector<double> gradients = {};
  double factor = 0;  // of a layer
};

// The gradient at every depth, and what a layer does to it.
report::Series measure(Findings& f, Case& c, const std::vector<double>& depths) {
  report::Series series{c.name, {}};
  for (const double depth : depths) {
    c.gradients.push_back(gradient_at_first(f, c.stack, static_cast<std::int64_t>(depth)));
    series.points.push_back({depth, c.gradients.back()});
  }
  std::vector<double> logs;
  logs.reserve(c.gradients.size());
  for (const double g : c.gradients) logs.push_back(std::log(g));
  f.number(std::string(c.key) + "_48", c.gradients.back(),
           tr("{}, 48 layers: gradient at the first", c.name));
  std::vector<double> numbers = depths;
  if (f.fault("steps-for-layers")) std::iota(numbers.begin(), numbers.end(), 1.0);
  c.factor = std::exp(fitted_line(numbers, logs).slope);
  // From 4 to 48 layers the gradient changes by the factor to the power of 44.
  f.control(tr("{}: factor, against the 44th root of what 4 to 48 layers make of it", c.name),
            std::abs(c.factor - std::pow(c.gradients.back() / c.gradients.front(), 1.0 / 44)),
            Relation::less, 0.05);
  f.number(std::string(c.key) + "_per_layer", c.factor, tr("{}: factor of a layer", c.name));
  return series;
}

void run(Findings& f) {
  Case cases[] = {{"plain", tr("without residuals"), {false, false}},
                  {"residual", tr("with residuals"), {true, false}},
                  {"scaled", tr("with residuals, branches begin smaller"), {true, true}}};
  report::LineChart chart;
  chart.x_label = tr("layers");
  chart.y_label = tr("gradient at the first layer");
  chart.log_y = true;
  std::vector<double> depths;
  for (std::int64_t depth = 4; depth <= kDeepest; depth += 4)
    depths.push_back(static_cast<double>(depth));
  for (Case& c : cases) chart.series.push_back(measure(f, c, depths));
  f.figure(chart,
           tr("A gradient of size 1 at the output, as it arrives at the input. Without residuals "
              "every layer takes its share; with them it arrives, and even grows."));
  // F(x) = -x is the exception: its derivative cancels the one.
  f.note(
      tr("The sum 1 + F′ is no guarantee: for F(x) = −x it is 0. Nothing at initialisation is near "
         "that."));
  f.control(tr("with residuals: factor of a layer"), cases[1].factor, Relation::greater, 1.05);
  f.control(tr("branches begin smaller: factor of a layer − 1"), std::abs(cases[2].factor - 1),
            Relation::less, 0.02);
  const bool fades =
      f.check(tr("without residuals, 48 layers"), cases[0].gradients.back(), Relation::less, 1e-3);
  const bool arrives =
      f.check(tr("with residuals, 48 layers"), cases[1].gradients.back(), Relation::greater, 0.5);
  const bool calm = f.check(tr("with smaller branches it grows by no more than"),
                            cases[2].gradients.back(), Relation::less, 5);
  f.verdict(fades && arrives && calm ? Verdict::holds : Verdict::refuted);
}

}  // namespace

Experiment experiment() {
  return {
      .name = "residual-gradient",
      .topic = topics::building_blocks,
      .title = mark("Residuals carry the gradient"),
      .claim =
          mark("With y = x + F(x) the gradient reaches the first layers even where F′ is small, "
               "because of the one in 1 + F′; so residuals relieve vanishing gradients."),
      .formula = "y = x + F(x) quad frac{d y}{d x} = 1 + frac{d F}{d x}",
      .source = mark("Document 004, residual connection."),
      .method =
          mark("4 to 48 of Heddle's feed-forward layers in float64 at initialisation, with and "
               "without residuals; a random gradient at the output, and what of it arrives at the "
               "input. Once more with branches that begin 1/√(2·depth) smaller, as GPT-2 does it."),
      .threshold = mark("At 48 layers less than 1e-3 without and more than 0.5 with residuals: the "
                        "numbers are many powers of ten apart."),
      .expected = Verdict::holds,
      .because = mark("Without residuals the gradient is a product of derivatives below one and "
                      "falls exponentially with the depth. With them it cannot fall like that. It "
                      "grows instead, exponentially too: what the document does not say is that "
                      "residuals want a norm or smaller branches beside them."),
      .faults = {{"residuals-everywhere", mark("the stack without residuals has them")},
                 {"four-layers", mark("every stack has 4 layers")},
                 {"large-branches", mark("branches do not begin smaller")},
                 {"gradient-of-output", mark("the gradient is taken at the output")},
                 {"steps-for-layers", mark("the factor is that of four layers")}},
      .run = run,
  };
}

}  // namespace heddle::lab::residual_gradient
