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
  nn::StoreOptions options{.seed = 6, .dtype = DType::f64};
  if (stack.small_branches && !f.fault("large-branches"))
    options.init.branch_gain = 1 / std::sqrt(2.0 * static_cast<double>(depth));
  nn::ParameterStore store(options);
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
  Text name;
  Stack stack;
  std::vector<double> gradients = {};
  double factor = 0;  // of a layer
};

// The gradient at every depth, and what a layer does to it.
report::Series measure(Findings& f, Case& c, const std::vector<double>& depths) {
  report::Series series{f.say(c.name), {}};
  for (const double depth : depths) {
    c.gradients.push_back(gradient_at_first(f, c.stack, static_cast<std::int64_t>(depth)));
    series.points.push_back({depth, c.gradients.back()});
  }
  std::vector<double> logs;
  logs.reserve(c.gradients.size());
  for (const double g : c.gradients) logs.push_back(std::log(g));
  f.number(
      std::string(c.key) + "_48", c.gradients.back(),
      {c.name.en + ", 48 layers: gradient at the first", c.name.zh + "，48 层：第一层处的梯度"});
  std::vector<double> numbers = depths;
  if (f.fault("steps-for-layers")) std::iota(numbers.begin(), numbers.end(), 1.0);
  c.factor = std::exp(fitted_line(numbers, logs).slope);
  // From 4 to 48 layers the gradient changes by the factor to the power of 44.
  f.control({c.name.en + ": factor, against the 44th root of what 4 to 48 layers make of it",
             c.name.zh + "：每层倍数与 4 到 48 层变化的 44 次方根之差"},
            std::abs(c.factor - std::pow(c.gradients.back() / c.gradients.front(), 1.0 / 44)),
            Relation::less, 0.05);
  f.number(std::string(c.key) + "_per_layer", c.factor,
           {c.name.en + ": factor of a layer", c.name.zh + "：每层的倍数"});
  return series;
}

void run(Findings& f) {
  Case cases[] = {{"plain", {"without residuals", "无残差连接"}, {false, false}},
                  {"residual", {"with residuals", "有残差连接"}, {true, false}},
                  {"scaled",
                   {"with residuals, branches begin smaller", "有残差连接，分支初始更小"},
                   {true, true}}};
  report::LineChart chart;
  chart.x_label = f.say({"layers", "层数"});
  chart.y_label = f.say({"gradient at the first layer", "第一层处的梯度"});
  chart.log_y = true;
  std::vector<double> depths;
  for (std::int64_t depth = 4; depth <= kDeepest; depth += 4)
    depths.push_back(static_cast<double>(depth));
  for (Case& c : cases) chart.series.push_back(measure(f, c, depths));
  f.figure(
      chart,
      {"A gradient of size 1 at the output, as it arrives at the input. Without residuals every "
       "layer takes its share; with them it arrives, and even grows.",
       "输出端大小为 1 的梯度传到输入端还剩多少。没有残差连接时每层都损失一部分；"
       "有残差连接时不仅能传到，还会变大。"});
  // F(x) = -x is the exception: its derivative cancels the one.
  f.note(
      {"The sum 1 + F′ is no guarantee: for F(x) = −x it is 0. Nothing at initialisation is near "
       "that.",
       "1 + F′ 并不绝对可靠：若 F(x) = −x，它就是 0。但初始化时不会接近这种情况。"});
  f.control({"with residuals: factor of a layer", "有残差连接：每层的倍数"}, cases[1].factor,
            Relation::greater, 1.05);
  f.control({"branches begin smaller: factor of a layer − 1", "分支初始更小：每层的倍数 − 1"},
            std::abs(cases[2].factor - 1), Relation::less, 0.02);
  const bool fades = f.check({"without residuals, 48 layers", "无残差连接，48 层"},
                             cases[0].gradients.back(), Relation::less, 1e-3);
  const bool arrives = f.check({"with residuals, 48 layers", "有残差连接，48 层"},
                               cases[1].gradients.back(), Relation::greater, 0.5);
  const bool calm =
      f.check({"with smaller branches it grows by no more than", "分支更小时的增长不超过"},
              cases[2].gradients.back(), Relation::less, 5);
  f.verdict(fades && arrives && calm ? Verdict::holds : Verdict::refuted);
}

}  // namespace

Experiment experiment() {
  return {
      .name = "residual-gradient",
      .topic = topics::building_blocks,
      .title = {"Residuals carry the gradient", "残差连接传递梯度"},
      .claim = {"With y = x + F(x) the gradient reaches the first layers even where F′ is small, "
                "because of the "
                "one in 1 + F′; so residuals relieve vanishing gradients.",
                "对 y = x + F(x)，即使 F′ 很小，由于 1 + F′ 中的 "
                "1，梯度仍能有效传到前面的层；残差连接因此缓解梯度消失。"},
      .source = {"Document 004, residual connection.", "文档 004「Residual Connection」。"},
      .method =
          {"4 to 48 of Heddle's feed-forward layers in float64 at initialisation, with and without "
           "residuals; a random gradient at the output, and what of it arrives at the input. "
           "Once more with branches that begin 1/√(2·depth) smaller, as GPT-2 does it.",
           "用 4 到 48 个 Heddle "
           "前馈层（float64，初始状态），有、无残差连接各一次：在输出端给随机梯度，"
           "看输入端收到多少。再按 GPT-2 的做法让分支初始缩小 1/√(2·层数) 做一次。"},
      .threshold =
          {"At 48 layers less than 1e-3 without and more than 0.5 with residuals: the numbers are "
           "many powers of ten apart.",
           "48 层时，无残差小于 1e-3，有残差大于 0.5：两者相差许多个数量级。"},
      .expected = Verdict::holds,
      .because =
          {"Without residuals the gradient is a product of derivatives below one and falls "
           "exponentially with the depth. With them it cannot fall like that. It grows instead, "
           "exponentially too: what the document does not say is that residuals want a norm or "
           "smaller branches beside them.",
           "没有残差时，梯度是许多小于 1 "
           "的导数之积，随深度指数衰减；有残差就不会这样。但它反过来会指数增长："
           "文档没有说的是，残差连接需要配合归一化或更小的分支初始化。"},
      .faults = {{"residuals-everywhere",
                  {"the stack without residuals has them", "「无残差」的堆叠也有残差连接"}},
                 {"four-layers", {"every stack has 4 layers", "每个堆叠都只有 4 层"}},
                 {"large-branches", {"branches do not begin smaller", "分支初始并没有变小"}},
                 {"gradient-of-output", {"the gradient is taken at the output", "梯度取自输出端"}},
                 {"steps-for-layers",
                  {"the factor is that of four layers", "每层的倍数其实是四层的"}}},
      .run = run,
  };
}

}  // namespace heddle::lab::residual_gradient
