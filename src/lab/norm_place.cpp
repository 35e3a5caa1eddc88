// norm-place: norms before or behind the branches, and whether the learning rate must be warmed up.
#include <algorithm>
#include <cmath>
#include <string>

#include "heddle/tape.h"
#include "lab/experiments.h"
#include "lab/findings.h"
#include "lab/sequences.h"
#include "lab/tools.h"
#include "lab/topics.h"
#include "ops/reduce/reduce.h"
#include "ops/unary/unary.h"

namespace heddle::lab::norm_place {

namespace {

constexpr std::int64_t kLayers = 12, kSteps = 200, kWarmup = 100, kLength = 16;
constexpr std::int32_t kVocabulary = 16;

// An easy task, so that whoever does not learn it does not train: each token has a fixed partner.
model::Batch partners(std::int64_t rows, const RandomKey& key) {
  Ids tokens, targets;
  for (std::int64_t i = 0; i < rows * kLength; ++i) {
    tokens.push_back(random_id(key, i, kVocabulary));
    targets.push_back((5 * tokens.back() + 3) % kVocabulary);
  }
  return batch_of(tokens, targets, rows);
}

// As the first Transformer was initialised: Xavier, and no smaller branches in deep stacks.
std::unique_ptr<model::Model> stack_of(model::NormPlace place, std::int64_t layers) {
  model::ModelConfig c;
  c.layers = layers;
  c.width = 32;
  c.ffn_width = 64;
  c.attention.heads = 2;
  c.attention.position = nn::RopePosition{};
  c.norm_place = place;
  c.init = nn::InitRule::xavier;
  c.init_branches = false;
  c.sizes.vocabulary = kVocabulary;
  c.sizes.context = kLength;
  return model::build_model(c, {.seed = 1});
}

// The length of the loss's gradient by the parameters of each layer, before any training.
std::vector<double> gradients(const model::Model& model) {
  Tape tape;
  tape.backward(model.loss(partners(64, {3, 0, 0}), {}, 0).total);
  std::vector<double> squares(kLayers, 0);
  const std::string prefix = "layers.";
  for (const nn::Parameter& p : model.parameters().all()) {
    if (p.name.rfind(prefix, 0) != 0 || !p.tensor.grad().defined()) continue;
    const auto layer = std::stoul(p.name.substr(prefix.size()));
    squares[layer] += ops::sum_all(ops::square(p.tensor.grad())).item();
  }
  for (double& s : squares) s = std::sqrt(s);
  return squares;
}

std::vector<double> losses(const Findings& f, model::NormPlace place, bool warm,
                           std::int64_t layers) {
  train::TrainConfig rule;
  rule.steps = f.fault("hardly-trained") ? 10 : kSteps;
  rule.batch = 16;
  rule.learning_rate = 3e-3;
  rule.schedule = train::ScheduleKind::constant;
  rule.warmup = warm && !f.fault("warm-up-left-out") ? kWarmup : 0;
  rule.warmup = std::min(rule.warmup, rule.steps - 1);
  rule.beta2 = 0.999;
  rule.clip = 0;
  return train_on(*stack_of(place, layers), partners, rule);
}

void measure_gradients(Findings& f) {
  const std::vector<double> pre = gradients(*stack_of(model::NormPlace::pre, kLayers));
  using model::NormPlace;
  const NormPlace behind = f.fault("same-gradients") ? NormPlace::pre : NormPlace::post;
  const std::vector<double> post = gradients(*stack_of(behind, kLayers));
  f.number("pre_last_over_first", pre.back() / pre.front(),
           {"pre-norm: gradient of the last layer over the first's",
            "前归一化：最后一层与第一层的梯度之比"});
  f.number("post_last_over_first", post.back() / post.front(),
           {"post-norm: the same", "后归一化：同一比值"});
  f.number("last_post_over_pre", post.back() / pre.back(),
           {"last layer: post-norm's gradient over pre-norm's",
            "最后一层：后归一化与前归一化的梯度之比"});
  f.control({"pre-norm: the last layer's gradient over the first's",
             "前归一化：最后一层与第一层的梯度之比"},
            pre.back() / pre.front(), Relation::less, 0.6);
  f.control({"post-norm: the same", "后归一化：同一比值"}, post.back() / post.front(),
            Relation::greater, 0.9);
  f.control({"last layer: post-norm's gradient over pre-norm's",
             "最后一层：后归一化与前归一化的梯度之比"},
            post.back() / pre.back(), Relation::greater, 1.5);
  report::LineChart chart;
  chart.x_label = f.say({"layer", "层"});
  chart.y_label = f.say({"gradient at initialisation", "初始化时的梯度"});
  chart.series = {{f.say({"pre-norm", "前归一化"}), {}}, {f.say({"post-norm", "后归一化"}), {}}};
  for (std::size_t i = 0; i < pre.size(); ++i) {
    chart.series[0].points.push_back({static_cast<double>(i + 1), pre[i]});
    chart.series[1].points.push_back({static_cast<double>(i + 1), post[i]});
  }
  f.figure(chart,
           {"Before training: with pre-norm the last layers change least, with post-norm they "
            "are pulled as hard as the first.",
            "训练之前：前归一化时越靠后的层梯度越小；后归一化时后面的层受到的拉力与前面一样大。"});
}

void run(Findings& f) {
  using model::NormPlace;
  measure_gradients(f);
  struct Case {
    const char* key;
    Text name;
    NormPlace place;
    bool warm;
    std::int64_t layers = kLayers;
    double loss = 0;
  };
  Case cases[] = {
      {"pre", {"pre-norm", "前归一化"}, NormPlace::pre, false},
      {"pre_warm", {"pre-norm, warm-up", "前归一化 + 预热"}, NormPlace::pre, true},
      {"post", {"post-norm", "后归一化"}, NormPlace::post, false},
      {"post_warm", {"post-norm, warm-up", "后归一化 + 预热"}, NormPlace::post, true},
      {"pre_shallow", {"pre-norm, 6 layers", "前归一化，6 层"}, NormPlace::pre, false, 6},
      {"post_shallow", {"post-norm, 6 layers", "后归一化，6 层"}, NormPlace::post, false, 6}};
  report::LineChart chart;
  chart.x_label = f.say({"step", "步数"});
  chart.y_label = f.say({"loss", "损失"});
  for (Case& c : cases) {
    const NormPlace place = f.fault("pre-norm-always") ? NormPlace::pre : c.place;
    const std::vector<double> curve = losses(f, place, c.warm, c.layers);
    c.loss = final_loss(curve);
    chart.series.push_back({f.say(c.name), smoothed(curve, 5)});
    f.number(c.key, c.loss,
             {c.name.en + ": loss after 200 steps", c.name.zh + "：200 步之后的损失"});
  }
  f.figure(chart, {"12 layers, learning rate 0.003 from the first step or after a warm-up of 100 "
                   "steps; 6 layers without. Guessing has a loss of ln 16 = 2.77.",
                   "12 层，学习率 0.003，从第一步起就用或经过 100 步预热；6 "
                   "层的不预热。瞎猜的损失为 ln 16 = 2.77。"});
  const bool pre =
      f.check({"pre-norm without warm-up", "前归一化，无预热"}, cases[0].loss, Relation::less, 0.5);
  const bool post = f.check({"post-norm without warm-up", "后归一化，无预热"}, cases[2].loss,
                            Relation::greater, 1.5);
  const bool warmed =
      f.check({"post-norm with warm-up", "后归一化，有预热"}, cases[3].loss, Relation::less, 0.5);
  f.control({"6 layers, without warm-up: the worse of both", "6 层、无预热：两者中较差的"},
            std::max(cases[4].loss, cases[5].loss), Relation::less, 0.5);
  f.control({"pre-norm with warm-up", "前归一化，有预热"}, cases[1].loss, Relation::less, 0.5);
  f.verdict(pre && post && warmed ? Verdict::holds : Verdict::refuted);
}

}  // namespace

Experiment experiment() {
  return {
      .name = "norm-place",
      .topic = topics::training,
      .title = {"Norms before or behind the branches", "前归一化与后归一化"},
      .claim = {"Pre-norm is easier and more stable to train; post-norm wants care, such as a "
                "warm-up of the "
                "learning rate.",
                "前归一化训练起来更容易、更稳定；后归一化需要更谨慎地调节，例如学习率预热。"},
      .source = {"Document 004, pre-norm and post-norm; document 002, pre-norm Transformer.",
                 "文档 004「Pre-Norm 与 Post-Norm」；文档 002「Pre-Norm Transformer」。"},
      .method =
          {"Decoders with 12 layers, initialised as the first Transformer (Xavier), on a task made "
           "of random "
           "numbers: 16 tokens, each with a fixed partner to name. Gradients of each layer before "
           "training; then 200 steps of Adam at 0.003, with and without 100 steps of warm-up; "
           "and 6 layers, without.",
           "12 层解码器，按最初的 Transformer 初始化（Xavier），任务由随机数构造：16 "
           "种词元各有一个固定搭档，要求说出它。"
           "先测训练前每层的梯度；再用 Adam（0.003）训练 200 步，有、无 100 "
           "步预热各一次；另有不预热的 6 层网络。"},
      .threshold = {"Trained: a loss below 0.5; not trained: above 1.5, near the 2.77 of guessing.",
                    "学会：损失低于 0.5；没学会：高于 1.5，接近瞎猜的 2.77。"},
      .expected = Verdict::holds,
      .because =
          {"A norm behind the sum rescales the residual path itself in every layer, so there is no "
           "clean "
           "way from the loss to the first layer, and the first large steps of Adam wreck the deep "
           "stack. Small steps at the beginning let it settle. With the norm inside the branches "
           "the "
           "path is free. Shallower stacks (6 layers) train either way.",
           "归一化放在相加之后，等于每层都在缩放残差通路本身，从损失到第一层没有畅通的路径，Adam "
           "开头的大步会把深层网络推坏；"
           "开头用小步就能稳住。归一化放进分支里，通路就是畅通的。较浅的网络（6 "
           "层）两种放法都能训练。"},
      .faults = {{"same-gradients", {"both gradients are pre-norm's", "两组梯度都来自前归一化"}},
                 {"pre-norm-always",
                  {"every model is trained with pre-norm", "训练的模型全是前归一化"}},
                 {"warm-up-left-out", {"there is no warm-up", "漏掉了预热"}},
                 {"hardly-trained", {"training takes 10 steps", "只训练了 10 步"}}},
      .slow = true,
      .run = run,
  };
}

}  // namespace heddle::lab::norm_place
