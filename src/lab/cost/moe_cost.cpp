// moe-cost: what a mixture of experts costs, and who gets the tokens.
#include <algorithm>
#include <cmath>

#include "heddle/cost.h"
#include "heddle/tape.h"
#include "lab/experiments.h"
#include "lab/findings.h"
#include "lab/tools.h"
#include "lab/topics.h"
#include "model/model.h"
#include "nn/ffn/moe.h"
#include "ops/binary/binary.h"
#include "ops/copy/copy.h"
#include "ops/reduce/reduce.h"
#include "ops/unary/unary.h"
#include "optim/optimizer.h"

namespace heddle::lab::moe_cost {

namespace {

constexpr std::int64_t kWidth = 32, kHidden = 128, kTokens = 512;
constexpr nn::FfnConfig kExpert = {.kind = nn::FfnKind::gelu, .width = kWidth, .hidden = kHidden};

struct Size {
  double parameters = 0, flops = 0;
};

template <class Layer>
Size size_of_layer(const nn::Parameters& store, const Layer& layer) {
  const Tensor x = ops::cast(normal({kTokens, kWidth}, 130), DType::f32);
  const CostMeter meter;
  layer.forward(x);
  return {static_cast<double>(store.count()), meter.cost().flops};
}

Size dense() {
  nn::Parameters store({.seed = 1});
  return size_of_layer(store, nn::FeedForward(kExpert, store.root()));
}

Size mixture(const Findings& f, std::int64_t experts, std::int64_t active) {
  if (f.fault("all-experts-active")) active = experts;
  nn::Parameters store({.seed = 1});
  const nn::MoeConfig config{.expert = kExpert, .experts = experts, .active = active, .balance = 0};
  return size_of_layer(store, nn::MixtureOfExperts(config, store.root()));
}

// How far parameters and arithmetic are from E and A times those of the dense layer, relative.
struct Deviation {
  double parameters = 0, flops = 0;
  double experts_of_a_model = 0;  // parameters that 8 experts add to a model of two layers
};

Deviation measure_costs(Findings& f) {
  const Size one = dense();
  Deviation worst;
  report::LineChart chart;
  chart.x_label = tr("experts E");
  chart.y_label = tr("times the dense layer");
  chart.log_x = chart.log_y = true;
  chart.series = {{tr("parameters"), {}}};
  for (const std::int64_t active : {1, 2, 4}) {
    report::Series series{tr("arithmetic, A = {}", active), {}};
    for (std::int64_t experts = active; experts <= 32; experts *= 2) {
      const Size s = f.fault("dense-layer") ? dense() : mixture(f, experts, active);
      const auto e = static_cast<double>(experts), a = static_cast<double>(active);
      const double parameters = s.parameters / one.parameters, flops = s.flops / one.flops;
      worst.parameters = std::max(worst.parameters, std::abs(parameters / e - 1));
      worst.flops = std::max(worst.flops, std::abs(flops / a - 1));
      series.points.push_back({e, flops});
      if (active == 1) chart.series[0].points.push_back({e, parameters});
      if (experts == 8)
        f.number("flops_8_" + std::to_string(active), flops,
                 tr("E = 8, A = {}: arithmetic, times the dense layer", active));
    }
    chart.series.push_back(series);
  }
  const Size eight = mixture(f, 8, 2);
  worst.experts_of_a_model = 2 * (eight.parameters - one.parameters);
  f.number("parameters_8", eight.parameters / one.parameters,
           tr("E = 8: parameters, times the dense layer"));
  f.figure(chart, tr("Parameters grow with the experts, arithmetic with the active ones; what the "
                     "lines of the arithmetic rise is the router."));
  return worst;
}

double whole_model(bool experts) {
  model::ModelConfig c;
  c.layers = 2;
  c.width = kWidth;
  c.attention.heads = 2;
  c.sizes.vocabulary = 64;
  c.sizes.context = 16;
  if (experts) c.moe = nn::MoeOptions{.experts = 8, .active = 2};
  return static_cast<double>(model::build_model(c, {.device = Device::meta})->parameters().count());
}

// Tokens with a large common part, as the vectors inside of a model have one: the router likes the
// same few experts for all of them.
Tensor tokens(std::uint32_t stream) {
  const Tensor common = normal({1, kWidth}, 131, 1.0);
  return ops::cast(ops::add(normal({kTokens, kWidth}, stream), common), DType::f32);
}

// The largest share of the choices that falls on one of 8 experts, two for each token, after
// training the layer to imitate a fixed random layer. steps = 0: as it begins.
double largest_share(const Findings& f, double balance, std::int64_t steps) {
  if (f.fault("untrained")) steps = 0;
  if (f.fault("balance-left-out")) balance = 0;
  nn::Parameters teacher_store({.seed = 2}), store({.seed = 3});
  const nn::FeedForward teacher(kExpert, teacher_store.root());
  const nn::MoeConfig config{.expert = kExpert, .experts = 8, .active = 2, .balance = balance};
  const nn::MixtureOfExperts layer(config, store.root());
  recipe::TrainConfig rule;
  rule.steps = rule.batch = 1;
  optim::Optimizer optimizer(rule, store);
  for (std::int64_t step = 1; step <= steps; ++step) {
    const Tensor x = tokens(1000 + static_cast<std::uint32_t>(step));
    Tensor wanted;
    {
      const NoGrad no_grad;
      wanted = teacher.forward(x);
    }
    Tape tape;
    const nn::MoeResult r = layer.forward(x);
    Tensor loss = ops::mean_all(ops::square(ops::sub(r.y, wanted)));
    if (r.balance.defined()) loss = ops::add(loss, r.balance);
    tape.backward(loss);
    optimizer.step(step, 3e-3, optimizer.gradient_norm());
  }
  const NoGrad no_grad;
  const std::vector<std::int64_t> load = layer.forward(tokens(999)).load.to_vector<std::int64_t>();
  return static_cast<double>(*std::max_element(load.begin(), load.end())) /
         static_cast<double>(kTokens * config.active);
}

void run(Findings& f) {
  const Deviation worst = measure_costs(f);
  f.number("parameters_off", worst.parameters, tr("parameters − E times, relative, at most"));
  f.number("flops_off", worst.flops, tr("arithmetic − A times, relative, at most"));
  const double plain = whole_model(false), with_experts = whole_model(!f.fault("dense-model"));
  f.number("whole_model", with_experts / plain,
           tr("E = 8: parameters of a whole small model, times"));
  constexpr std::int64_t steps = 150;
  const double begin = largest_share(f, 0, 0), without = largest_share(f, 0, steps),
               with = largest_share(f, 0.1, steps);
  f.number("share_begin", begin, tr("largest share of an expert (of 8), untrained"));
  f.number("share_without", without, tr("the same after 150 steps without balance loss"));
  f.number("share_with", with, tr("the same with balance loss"));
  f.control(tr("parameters of the whole model − those that the experts add"),
            with_experts - plain - worst.experts_of_a_model, Relation::equal, 0);
  const bool parameters =
      f.check(tr("parameters differ from E times by"), worst.parameters, Relation::less, 0.1);
  const bool flops =
      f.check(tr("arithmetic differs from A times by"), worst.flops, Relation::less, 0.2);
  // The text on the router, beside the claim, which is about cost alone.
  f.control(tr("largest share with balance loss"), with, Relation::less, 0.3);
  f.control(tr("without it"), without, Relation::greater, with);
  f.control(tr("and it grows in training from"), begin, Relation::less, without);
  f.verdict(parameters && flops ? Verdict::holds : Verdict::refuted);
}

}  // namespace

Experiment experiment() {
  return {
      .name = "moe-cost",
      .topic = topics::cost,
      .title = mark("Mixture of experts: parameters × E, compute × A"),
      .claim = mark("E experts of which each token uses A multiply the parameters by E and the "
                    "compute by A only."),
      .formula = "y = sum_{e=1}^A g_e F_e(x)",
      .source = mark("Document 002, mixture of experts."),
      .method =
          mark("Heddle's mixture (width 32, hidden 128) against one dense layer: parameters "
               "counted, arithmetic by Heddle's meter on 512 tokens, E up to 32, A = 1, 2, 4. The "
               "router's balance: the largest share of an expert when the layer learns to imitate "
               "a random layer for 150 steps, with and without the balance loss."),
      .threshold =
          mark("Parameters within 10 % of E times and arithmetic within 20 % of A times: the "
               "router and the moving of tokens are extra. Shares: below 0.3 with balance loss "
               "(alike would be 0.125), and more without; they do not decide about the cost."),
      .expected = Verdict::holds,
      .because = mark("A token visits A experts, whatever their number. It is the feed-forward "
                      "layer that is multiplied, not the model: attention and embeddings stay. And "
                      "the router wants to be watched, or few experts get most of the tokens."),
      .faults = {{"all-experts-active", mark("every token visits all experts")},
                 {"dense-layer", mark("the dense layer is measured in place of the mixture")},
                 {"dense-model", mark("the whole model has no experts")},
                 {"untrained", mark("the router is not trained")},
                 {"balance-left-out", mark("the balance loss is left out")}},
      .run = run,
  };
}

}  // namespace heddle::lab::moe_cost
