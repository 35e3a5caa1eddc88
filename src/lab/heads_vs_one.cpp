// heads-vs-one: two heads, or one head with the parameters of both side by side?
#include <cmath>

#include "lab/experiments.h"
#include "lab/findings.h"
#include "lab/tools.h"
#include "lab/topics.h"
#include "ops/concat/concat.h"
#include "ops/view/view.h"

namespace heddle::lab::heads_vs_one {

namespace {

constexpr std::int64_t kWidth = 16, kHeads = 2, kHeadWidth = kWidth / kHeads, kTokens = 7;

// The same parameters read as one head: they lie side by side already.
nn::Attention as_one_head(const Findings& f, const nn::Attention& two, double scale) {
  nn::AttentionConfig config = two.config();
  config.heads = 1;
  config.scale = f.fault("own-scale-always") ? 0 : scale;
  nn::Attention one = attention_layer(config, 0);
  const nn::AttentionParameters& p = two.parameters();
  one.for_each_parameter([&](std::string_view name, Tensor& t) {
    t = name == "q.weight"   ? p.q.detach()
        : name == "k.weight" ? p.k.detach()
        : name == "v.weight" ? p.v.detach()
                             : p.out.detach();
  });
  return one;
}

// Both heads get the first one's queries and keys.
void make_heads_alike(nn::Attention& two) {
  two.for_each_parameter([&](std::string_view name, Tensor& t) {
    if (name != "q.weight" && name != "k.weight") return;
    const Tensor first = ops::slice(t.detach(), 0, 0, kHeadWidth);
    t = ops::concat(std::vector<Tensor>{first, first}, 0);
  });
}

double apart(const Findings& f, const nn::Attention& two, const nn::Attention& one,
             const Tensor& x) {
  const Tensor y = two.forward(x);
  if (f.fault("same-output-twice")) return largest_difference(y, y);
  // Of other tokens, which are as large.
  const Tensor read = f.fault("other-tokens") ? normal(x.shape(), 52, 1.5) : x;
  return largest_difference(y, one.forward(read));
}

report::HeatMap map_of(const Findings& f, const nn::Attention& layer, std::int64_t head,
                       const Tensor& x) {
  report::HeatMap map;
  map.x_label = f.say({"key", "键"});
  map.y_label = f.say({"query", "查询"});
  map.values = rows_of(ops::reshape(layer.weights(x, {.head = head, .first = 0, .count = kTokens}),
                                    {kTokens, kTokens}));
  map.limit = 0.6;
  return map;
}

void run(Findings& f) {
  const Tensor x = normal({1, kTokens, kWidth}, 51, 1.5);
  nn::Attention two = attention_layer({.width = kWidth, .heads = kHeads}, 5);
  const double scale = 1 / std::sqrt(double{kHeadWidth});
  const nn::Attention one = as_one_head(f, two, 0), matched = as_one_head(f, two, scale);
  const double output_size = largest(two.forward(x));
  const double own_scale = apart(f, two, one, x), same_scale = apart(f, two, matched, x);
  f.figure(map_of(f, two, 0, x),
           {"Two heads: the map of the first.", "双头：第一个头的注意力图。"});
  f.figure(map_of(f, two, 1, x),
           {"Two heads: the map of the second.", "双头：第二个头的注意力图。"});
  f.figure(map_of(f, matched, 0, x),
           {"One head, scale matched: one map for all, from the sum of both heads' scores.",
            "单头（缩放相同）：只有一张图，来自两个头得分之和。"});

  // The score of the one head is the sum of the heads' scores. So with heads that are alike it is
  // twice theirs, and half of the scale makes one head compute what two do.
  if (!f.fault("heads-not-alike")) make_heads_alike(two);
  const double control = apart(f, two, as_one_head(f, two, scale / 2), x);

  f.number("output_size", output_size,
           {"largest number of the two-head output", "双头输出的最大绝对值"});
  f.number("own_scale", own_scale,
           {"two heads − one head, each with its own 1/√d", "双头 − 单头，各用自己的 1/√d"});
  f.number("same_scale", same_scale,
           {"two heads − one head with the scale of the two", "双头 − 单头，缩放与双头相同"});
  f.number("alike", control,
           {"two heads with equal scores − one head, half the scale",
            "两个头得分相同时 − 单头（缩放减半）"});
  f.control({"largest number of the output", "输出的最大绝对值"}, output_size, Relation::greater,
            0.5);
  f.control({"difference when both heads score alike", "两个头得分相同时的差"}, control,
            Relation::less, 1e-12);
  const bool differ = f.check({"difference with each its own scale", "各用自己缩放时的差"},
                              own_scale, Relation::greater, 0.01);
  const bool still = f.check({"difference with the same scale", "缩放相同时的差"}, same_scale,
                             Relation::greater, 0.01);
  f.verdict(!differ ? Verdict::refuted : still ? Verdict::holds : Verdict::conditional);
}

}  // namespace

Experiment experiment() {
  return {
      .name = "heads-vs-one",
      .topic = topics::heads,
      .title = {"Two heads against one wide head", "双头与一个更宽的单头"},
      .claim =
          {"Two heads and one head with the concatenated parameters give different outputs, "
           "because one head forms only one set of weights (not just because its scale differs).",
           "双头与把参数拼接起来的单头输出不同，原因是单头只形成一组注意力权重"
           "（而不仅是缩放因子不同）。"},
      .source = {"Document 000, 2.2(b). Both answers say “different”; the student's reason is the "
                 "scale √d_k alone, the other's is the single attention map.",
                 "文档 000 的 2.2(b)。两个解答都说「不同」：学生的理由仅是缩放 √d_k，"
                 "另一个的理由是单头只计算一次注意力。"},
      .method = {"Heddle's layer with 2 heads and with 1, the same parameter tensors; then the one "
                 "head with the scale of the two. As a control, heads with equal scores, for which "
                 "one head with half of the scale must do the same.",
                 "用同一组参数张量构造双头层与单头层；再让单头使用双头的缩放。"
                 "对照：两个头得分相同时，缩放减半的单头必须给出相同输出。"},
      .threshold = {"A difference counts above 0.01, on outputs near 1; rounding is near 1e-15.",
                    "输出约为 1，差异大于 0.01 才算不同；舍入误差约 1e-15。"},
      .expected = Verdict::holds,
      .because =
          {"One wide head adds the heads' scores, q·k = q₁·k₁ + q₂·k₂, and gives both halves "
           "of the values the same weights. The student's reason is wrong: with the scale "
           "matched the outputs still differ.",
           "宽单头把两个头的得分相加，q·k = q₁·k₁ + q₂·k₂，并对两半值使用同一组权重。"
           "学生给出的理由不对：缩放相同后输出仍然不同。"},
      .faults = {{"own-scale-always",
                  {"the one head keeps its own scale where another is meant",
                   "单头没有换用指定的缩放"}},
                 {"same-output-twice",
                  {"the output of two heads is compared with itself", "拿双头输出与它自己比较"}},
                 {"other-tokens", {"the one head reads other tokens", "单头读入的是别的词元"}},
                 {"heads-not-alike",
                  {"in the control the heads are not made alike", "对照中两个头的得分并不相同"}}},
      .run = run,
  };
}

}  // namespace heddle::lab::heads_vs_one
