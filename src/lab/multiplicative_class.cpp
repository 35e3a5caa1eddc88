// multiplicative-class: does a matrix between key and query let attention learn more?
#include <fmt/format.h>

#include "lab/experiments.h"
#include "lab/findings.h"
#include "lab/tools.h"
#include "lab/topics.h"
#include "ops/copy/copy.h"
#include "ops/matmul/matmul.h"
#include "ops/view/view.h"

namespace heddle::lab::multiplicative_class {

namespace {

constexpr std::int64_t kWidth = 24, kTokens = 13;

struct Case {
  std::int64_t heads;
  bool causal;
};

// A scaled-dot layer with the parameters of a multiplicative one, W_s folded into W_q:
//   kᵀ W_s q = kᵀ W_s W_q x = kᵀ (W_s W_q) x, head by head.
nn::Attention folded(const Findings& f, const nn::Attention& multiplicative) {
  nn::AttentionConfig config = multiplicative.config();
  config.score = nn::Score::scaled_dot;
  const nn::AttentionParameters& p = multiplicative.parameters();
  const std::int64_t heads = config.heads, head_width = config.width_of_head();
  const Tensor w_q = ops::reshape(p.q.detach(), {heads, head_width, kWidth});
  Tensor w_s = p.score.detach();
  if (f.fault("ws-transposed")) w_s = ops::transpose(w_s, 1, 2);
  const Tensor product = ops::matmul(w_s, w_q);  // [H, D, C]
  nn::Attention plain = attention_layer(config, 0);
  plain.for_each_parameter([&](std::string_view name, Tensor& t) {
    t = name == "q.weight"   ? ops::reshape(product, {heads * head_width, kWidth})
        : name == "k.weight" ? p.k.detach()
        : name == "v.weight" ? p.v.detach()
                             : p.out.detach();
  });
  return plain;
}

// The other way round: scaled-dot is multiplicative with W_s = I.
nn::Attention with_identity(const Findings& f, const nn::Attention& plain) {
  const std::int64_t filled = f.fault("identity-of-one-head") ? 1 : plain.config().heads;
  nn::AttentionConfig config = plain.config();
  config.score = nn::Score::multiplicative;
  const nn::AttentionParameters& p = plain.parameters();
  nn::Attention layer = attention_layer(config, 0);
  layer.for_each_parameter([&](std::string_view name, Tensor& t) {
    if (name == "score.weight") {
      const std::int64_t d = config.width_of_head();
      Tensor identity = Tensor::zeros({config.heads, d, d}, DType::f64);
      double* data = identity.mutable_data<double>();
      for (std::int64_t h = 0; h < filled; ++h)
        for (std::int64_t i = 0; i < d; ++i) data[(h * d + i) * d + i] = 1;
      t = identity;
    } else {
      t = name == "q.weight"   ? p.q.detach()
          : name == "k.weight" ? p.k.detach()
          : name == "v.weight" ? p.v.detach()
                               : p.out.detach();
    }
  });
  return layer;
}

double apart(const Findings& f, const nn::Attention& a, const nn::Attention& b, const Tensor& x) {
  return largest_difference((f.fault("same-layer-twice") ? b : a).forward(x), b.forward(x));
}

void run(Findings& f) {
  report::Bars bars;
  bars.y_label = f.say({"largest absolute value", "最大绝对值"});
  bars.log_y = true;
  bars.series = {{f.say({"output", "输出"}), {}},
                 {f.say({"multiplicative − folded", "乘法注意力 − 折叠后"}), {}}};
  double folded_off = 0, ignored_off = 1e300, identity_off = 0;
  std::uint64_t seed = 100;
  for (const Case& c : {Case{1, false}, Case{2, false}, Case{4, true}, Case{8, true}}) {
    nn::AttentionConfig config{.width = kWidth, .score = nn::Score::multiplicative};
    config.heads = c.heads;
    config.causal = c.causal;
    const nn::Attention layer = attention_layer(config, ++seed);
    const Tensor x = normal({3, kTokens, kWidth}, static_cast<std::uint32_t>(seed));
    const nn::Attention plain = folded(f, layer);
    const double off = apart(f, layer, plain, x);
    folded_off = std::max(folded_off, off);
    identity_off = std::max(identity_off, apart(f, plain, with_identity(f, plain), x));
    // W_s does matter: without it the same parameters compute something else.
    nn::Attention without = folded(f, layer);
    without.for_each_parameter([&](std::string_view name, Tensor& t) {
      if (name == "q.weight") t = layer.parameters().q.detach();
    });
    ignored_off = std::min(ignored_off, apart(f, layer, without, x));
    bars.groups.push_back(fmt::format(
        "{} {}{}", c.heads, f.say(c.heads == 1 ? Text{"head", "头"} : Text{"heads", "头"}),
        c.causal ? f.say({", causal", "，因果"}) : ""));
    bars.series[0].values.push_back(largest(layer.forward(x)));
    bars.series[1].values.push_back(off);
  }
  f.figure(bars, {"A scaled-dot layer with W_q' = W_s·W_q computes what the multiplicative layer "
                  "does, up to rounding.",
                  "令 W_q' = W_s·W_q，点积注意力与乘法注意力的输出只差舍入误差。"});
  f.number(
      "folded_off", folded_off,
      {"multiplicative − scaled-dot with W_s·W_q", "乘法注意力 − 以 W_s·W_q 为投影的点积注意力"});
  f.number("identity_off", identity_off,
           {"scaled-dot − multiplicative with W_s = I", "点积注意力 − 取 W_s = I 的乘法注意力"});
  f.number(
      "ignored_off", ignored_off,
      {"multiplicative − scaled-dot that leaves W_s out", "乘法注意力 − 去掉 W_s 的点积注意力"});

  f.control({"leaving W_s out changes the output by", "去掉 W_s 时输出的变化"}, ignored_off,
            Relation::greater, 1e-3);
  const bool into =
      f.check({"folding W_s into W_q changes the output by", "把 W_s 并入 W_q 时输出的变化"},
              folded_off, Relation::less, 1e-12);
  const bool back = f.check({"W_s = I changes the output by", "取 W_s = I 时输出的变化"},
                            identity_off, Relation::less, 1e-12);
  f.verdict(into && back ? Verdict::refuted : Verdict::holds);
}

}  // namespace

Experiment experiment() {
  return {
      .name = "multiplicative-class",
      .topic = topics::scores,
      .title = {"Multiplicative attention: a larger class of functions?",
                "乘法注意力的函数类更大吗？"},
      .claim = {"A Transformer with multiplicative attention, kᵀ W_s q / √d, can learn functions "
                "that one with scaled dot products cannot.",
                "使用乘法注意力 kᵀ W_s q / √d 的 Transformer 能学到缩放点积注意力学不到的函数。"},
      .source = {"Document 000, 2.1(a): the second answer there says so and rejects the student's, "
                 "which says the opposite.",
                 "文档 000 的 2.1(a)：其中第二个解答如此主张，并否定了学生的相反答案。"},
      .method =
          {"Heddle's multiplicative layer against its scaled-dot layer with W_q' = W_s·W_q, "
           "for 1, 2, 4 and 8 heads, with and without causal mask; and the other way round "
           "with W_s = I.",
           "将 Heddle 的乘法注意力层与 W_q' = W_s·W_q 的点积层比较，头数 1、2、4、8，有无因果掩码；"
           "反方向取 W_s = I。"},
      .threshold = {"Equal to 1e-12 in both directions means that each class contains the other; "
                    "rounding is near 1e-15. As a control, leaving W_s out must change the output.",
                    "两个方向都在 1e-12 内相等，即两个函数类互相包含；舍入误差约 1e-15。"
                    "作为对照，去掉 W_s 必须改变输出。"},
      .expected = Verdict::refuted,
      .because =
          {"q = W_q x is linear already, and W_s W_q is again a matrix of the same shape: "
           "whatever W_s learns, W_q could have learned. Training may take another path, but "
           "the functions that can be reached are the same.",
           "q = W_q x 本就是线性的，W_s W_q 仍是同样形状的矩阵：W_s 能学到的，W_q 也能学到。"
           "训练路径可能不同，但可达到的函数相同。"},
      .faults = {{"ws-transposed", {"W_s is folded in transposed", "并入的是 W_s 的转置"}},
                 {"identity-of-one-head",
                  {"W_s = I in the first head only", "只有第一个头取 W_s = I"}},
                 {"same-layer-twice", {"a layer is compared with itself", "拿一个层与它自己比较"}}},
      .run = run,
  };
}

}  // namespace heddle::lab::multiplicative_class
