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
#include "train/optimizer.h"

namespace heddle::lab::moe_cost {

namespace {

constexpr std::int64_t kWidth = 32, kHidden = 128, kTokens = 512;
constexpr nn::FfnConfig kExpert = {.kind = nn::FfnKind::gelu, .width = kWidth, .hidden = kHidden};

struct Size {
  double parameters = 0, flops = 0;
};

template <class Layer>
Size size_of_layer(const nn::ParameterStore& store, const Layer& layer) {
  const Tensor x = ops::cast(normal({kTokens, kWidth}, 130), DType::f32);
  const CostMeter meter;
  layer.forward(x);
  return {static_cast<double>(store.count()), meter.cost().flops};
}

Size dense() {
  nn::ParameterStore store({.seed = 1});
  return size_of_layer(store, nn::FeedForward(kExpert, store.root()));
}

Size mixture(const Findings& f, std::int64_t experts, std::int64_t active) {
  if (f.fault("all-experts-active")) active = experts;
  nn::ParameterStore store({.seed = 1});
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
  chart.x_label = f.say({"experts E", "专家数 E"});
  chart.y_label = f.say({"times the dense layer", "相对于稠密层的倍数"});
  chart.log_x = chart.log_y = true;
  chart.series = {{f.say({"parameters", "参数量"}), {}}};
  for (const std::int64_t active : {1, 2, 4}) {
    report::Series series{f.say({"arithmetic, A = ", "运算量，A = "}) + std::to_string(active), {}};
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
                 {"E = 8, A = " + std::to_string(active) + ": arithmetic, times the dense layer",
                  "E = 8、A = " + std::to_string(active) + "：运算量是稠密层的倍数"});
    }
    chart.series.push_back(series);
  }
  const Size eight = mixture(f, 8, 2);
  worst.experts_of_a_model = 2 * (eight.parameters - one.parameters);
  f.number("parameters_8", eight.parameters / one.parameters,
           {"E = 8: parameters, times the dense layer", "E = 8：参数量是稠密层的倍数"});
  f.figure(chart,
           {"Parameters grow with the experts, arithmetic with the active ones; what the lines "
            "of the arithmetic rise is the router.",
            "参数量随专家数增长，运算量随激活的专家数增长；运算量曲线略微上升的部分来自路由器。"});
  return worst;
}

double whole_model(bool experts) {
  model::ModelConfig c;
  c.layers = 2;
  c.width = kWidth;
  c.attention.heads = 2;
  c.sizes.vocabulary = 64;
  c.sizes.context = 16;
  if (experts) c.moe = model::MoeOptions{.experts = 8, .active = 2};
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
  nn::ParameterStore teacher_store({.seed = 2}), store({.seed = 3});
  const nn::FeedForward teacher(kExpert, teacher_store.root());
  const nn::MoeConfig config{.expert = kExpert, .experts = 8, .active = 2, .balance = balance};
  const nn::MixtureOfExperts layer(config, store.root());
  train::TrainConfig rule;
  rule.steps = rule.batch = 1;
  train::Optimizer optimizer(rule, store);
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
  const std::vector<std::int64_t> load = layer.forward(tokens(999)).load;
  return static_cast<double>(*std::max_element(load.begin(), load.end())) /
         static_cast<double>(kTokens * config.active);
}

void run(Findings& f) {
  const Deviation worst = measure_costs(f);
  f.number("parameters_off", worst.parameters,
           {"parameters − E times, relative, at most", "参数量与 E 倍的最大相对偏差"});
  f.number("flops_off", worst.flops,
           {"arithmetic − A times, relative, at most", "运算量与 A 倍的最大相对偏差"});
  const double plain = whole_model(false), with_experts = whole_model(!f.fault("dense-model"));
  f.number("whole_model", with_experts / plain,
           {"E = 8: parameters of a whole small model, times", "E = 8：整个小模型的参数量倍数"});
  constexpr std::int64_t steps = 150;
  const double begin = largest_share(f, 0, 0), without = largest_share(f, 0, steps),
               with = largest_share(f, 0.1, steps);
  f.number(
      "share_begin", begin,
      {"largest share of an expert (of 8), untrained", "训练前，单个专家（共 8 个）的最大份额"});
  f.number("share_without", without,
           {"the same after 150 steps without balance loss", "无均衡损失训练 150 步之后"});
  f.number("share_with", with, {"the same with balance loss", "有均衡损失训练 150 步之后"});
  f.control({"parameters of the whole model − those that the experts add",
             "整个模型增加的参数量 − 各专家增加的参数量"},
            with_experts - plain - worst.experts_of_a_model, Relation::equal, 0);
  const bool parameters = f.check({"parameters differ from E times by", "参数量与 E 倍之差"},
                                  worst.parameters, Relation::less, 0.1);
  const bool flops = f.check({"arithmetic differs from A times by", "运算量与 A 倍之差"},
                             worst.flops, Relation::less, 0.2);
  // What the text says of the router beside the claim, which is about cost alone.
  f.control({"largest share with balance loss", "有均衡损失时的最大份额"}, with, Relation::less,
            0.3);
  f.control({"without it", "无均衡损失时"}, without, Relation::greater, with);
  f.control({"and it grows in training from", "且训练中由此值增大"}, begin, Relation::less,
            without);
  f.verdict(parameters && flops ? Verdict::holds : Verdict::refuted);
}

}  // namespace

Experiment experiment() {
  return {
      .name = "moe-cost",
      .topic = topics::cost,
      .title = {"Mixture of experts: parameters × E, compute × A", "混合专家：参数 × E，计算 × A"},
      .claim = {"E experts of which each token uses A multiply the parameters by E and the compute "
                "by A only.",
                "E 个专家、每个词元只用其中 A 个：参数量增加到 E 倍，计算量只增加到 A 倍。"},
      .source = {"Document 002, mixture of experts.", "文档 002「Mixture of Experts (MoE)」。"},
      .method =
          {"Heddle's mixture (width 32, hidden 128) against one dense layer: parameters counted, "
           "arithmetic by Heddle's meter on 512 tokens, E up to 32, A = 1, 2, 4. The router's "
           "balance: the largest share of an expert when the layer learns to imitate a "
           "random layer for 150 steps, with and without the balance loss.",
           "将 Heddle 的混合专家层（宽 32、隐层 128）与一个稠密层比较：统计参数量，用 Heddle "
           "的计数器统计 512 个词元的运算量，"
           "E 到 32，A = 1、2、4。路由均衡：让该层用 150 "
           "步学习模仿一个随机层，有、无均衡损失各一次，看单个专家的最大份额。"},
      .threshold =
          {"Parameters within 10 % of E times and arithmetic within 20 % of A times: the "
           "router and the moving of tokens are extra. Shares: below 0.3 with balance "
           "loss (alike would be 0.125), and more without; they do not decide about the cost.",
           "参数量与 E 倍相差不超过 10%，运算量与 A 倍相差不超过 20%：路由器和词元搬运是额外开销。"
           "份额：有均衡损失时小于 0.3（完全均匀为 "
           "0.125），没有时更大；这一项不参与对开销的判定。"},
      .expected = Verdict::holds,
      .because =
          {"A token visits A experts, whatever their number. It is the feed-forward layer that is "
           "multiplied, not the model: attention and embeddings stay. And the router wants to "
           "be watched, or few experts get most of the tokens.",
           "无论专家有多少，每个词元只经过 A "
           "个。但被放大的是前馈层而不是整个模型：注意力和词嵌入不变。"
           "路由器也需要约束，否则少数专家会拿走大部分词元。"},
      .faults = {{"all-experts-active",
                  {"every token visits all experts", "每个词元都经过所有专家"}},
                 {"dense-layer",
                  {"the dense layer is measured in place of the mixture",
                   "测的是稠密层而不是混合专家层"}},
                 {"dense-model", {"the whole model has no experts", "整个模型里没有专家"}},
                 {"untrained", {"the router is not trained", "路由器没有训练"}},
                 {"balance-left-out", {"the balance loss is left out", "漏掉了均衡损失"}}},
      .run = run,
  };
}

}  // namespace heddle::lab::moe_cost
