// head-split: one wide projection cut into heads, or a projection of its own for each head?
#include "lab/experiments.h"
#include "lab/findings.h"
#include "lab/tools.h"
#include "lab/topics.h"
#include "ops/binary/binary.h"
#include "ops/copy/copy.h"
#include "ops/matmul/matmul.h"
#include "ops/view/view.h"

namespace heddle::lab::head_split {

namespace {

constexpr std::int64_t kWidth = 24, kHeads = 4, kHeadWidth = kWidth / kHeads, kTokens = 11;

// Rounding of a sum of some hundred products of numbers near 1 stays below 1e-13 in float64, and a
// real difference is of the size of the outputs.
constexpr double kSame = 1e-12;

// Head h of the layer as a layer of its own: its rows of W_q, W_k and W_v, its columns of W_o.
// `shift` moves the rows of W_q: 0 for those of the head.
Tensor head_alone(const nn::Attention& all, std::int64_t head, std::int64_t shift,
                  const Tensor& x) {
  nn::AttentionConfig config = all.config();
  config.heads = 1;
  config.head_width = kHeadWidth;
  nn::Attention one = attention_layer(config, 0);
  const std::int64_t from = head * kHeadWidth, to = from + kHeadWidth;
  const nn::AttentionParameters& p = all.parameters();
  one.for_each_parameter([&](std::string_view name, Tensor& t) {
    const Tensor& whole = name == "q.weight"   ? p.q
                          : name == "k.weight" ? p.k
                          : name == "v.weight" ? p.v
                                               : p.out;
    const std::int64_t by = name == "q.weight" ? shift : 0;
    t = ops::clone(views::slice(whole.detach(), name == "out.weight" ? 1 : 0, from + by, to + by));
  });
  return one.forward(x);
}

// One layer of 4 heads against the sum of 4 layers of one head, the last one's rows of W_q moved up
// by `shift`.
double heads_apart_by(const Findings& f, const nn::Attention& all, const Tensor& x,
                      std::int64_t shift) {
  const Tensor together = all.forward(x);
  Tensor sum = Tensor::zeros(together.shape(), DType::f64);
  for (std::int64_t h = 0; h < kHeads; ++h) {
    const std::int64_t rows = f.fault("rows-of-the-next-head") && h == 0 ? kHeadWidth : 0;
    sum = ops::add(sum, head_alone(all, h, h == kHeads - 1 ? -shift : rows, x));
  }
  return largest_difference(f.fault("sum-twice") ? sum : together, sum);
}

// (X·W_q)·W₁ against X·W for a W that should be W_q·W₁.
double projected_apart(const Findings& f, const Tensor& x, const Tensor& w_q, const Tensor& w_1,
                       const Tensor& w) {
  const Tensor twice = ops::matmul(ops::matmul(x, w_q), w_1);
  return largest_difference(twice, f.fault("projection-twice") ? twice : ops::matmul(x, w));
}

void run(Findings& f) {
  const Tensor x = normal({2, kTokens, kWidth}, 1);
  const nn::Attention all = attention_layer({.width = kWidth, .heads = kHeads}, 3);
  const Tensor together = all.forward(x);

  const double heads_apart = heads_apart_by(f, all, x, 0);

  // Q·W₁ after Q = X·W_q is X·(W_q·W₁): a second projection of Q is one projection of X again.
  const Tensor w_q = ops::transpose(all.parameters().q.detach(), 0, 1);  // [C, C]
  const Tensor w_1 = normal({kWidth, kHeadWidth}, 2);
  const double projected_again = projected_apart(f, x, w_q, w_1, ops::matmul(w_q, w_1));

  f.number("output_size", largest(together),
           {"largest number of the four-head output", "四头输出中的最大绝对值"});
  f.number("heads_apart", heads_apart,
           {"one layer of 4 heads − sum of 4 layers of one head", "四头一层 − 四个单头层之和"});
  f.number("projected_again", projected_again,
           {"(X·W_q)·W₁ − X·(W_q·W₁)", "(X·W_q)·W₁ − X·(W_q·W₁)"});

  report::Bars bars;
  bars.y_label = f.say({"largest absolute value", "最大绝对值"});
  bars.log_y = true;
  bars.groups = {f.say({"output", "输出"}), f.say({"cut − per head", "切分 − 逐头"}),
                 f.say({"twice − once", "投影两次 − 一次"})};
  bars.series = {{"", {largest(together), heads_apart, projected_again}}};
  f.figure(bars, {"The differences are rounding in float64; the scale is logarithmic.",
                  "差异只是 float64 的舍入误差；纵轴为对数坐标。"});

  f.control(
      {"a row of W_q in the wrong head changes the output by", "W_q 的行错位一行时输出的变化"},
      heads_apart_by(f, all, x, 1), Relation::greater, 0.01);
  f.control({"W₁ without W_q changes the projection by", "只用 W₁ 而不用 W_q 时投影的变化"},
            projected_apart(f, x, w_q, w_1, w_1), Relation::greater, 0.01);
  f.control({"largest number of the output", "输出的最大绝对值"}, largest(together),
            Relation::greater, 0.5);
  const bool same = f.check({"cutting differs from projecting per head by", "切分与逐头投影之差"},
                            heads_apart, Relation::less, kSame);
  const bool folds =
      f.check({"a second projection differs from one projection by", "二次投影与一次投影之差"},
              projected_again, Relation::less, kSame);
  f.verdict(same && folds ? Verdict::holds : Verdict::refuted);
}

}  // namespace

Experiment experiment() {
  return {
      .name = "head-split",
      .topic = topics::heads,
      .title = {"Cutting Q, K and V into heads", "把 Q、K、V 切分成多个头"},
      .claim =
          {"Heads may be made by cutting the projected Q, K and V into pieces; that is the same "
           "as giving each head a projection of its own.",
           "多头可以直接由投影后的 Q、K、V 切分得到，这与为每个头单独做投影等价。"},
      .source =
          {"Document 004, multi-head attention: heads by a second matrix per head, with the "
           "remark that cutting the global Q, K, V does it too.",
           "文档 004「多头注意力」：用每头一个矩阵再次投影，并注明也可以直接切分全局的 Q、K、V。"},
      .method =
          {"A layer with 4 heads (it cuts) against 4 layers with one head each, made of the "
           "rows of W_q, W_k, W_v and the columns of W_o that belong to the head, summed. And "
           "a second projection of Q against one projection by the product of both matrices.",
           "将一个四头层（内部切分）与四个单头层之和比较：每个单头层取 W_q、W_k、W_v 中属于该头的"
           "行和 W_o 中对应的列。再比较「对 Q 再投影一次」与「用两矩阵之积投影一次」。"},
      .threshold = {"1e-12: rounding in float64 stays below 1e-13 here, a real difference would be "
                    "of the size of the outputs.",
                    "1e-12：此处 float64 的舍入误差小于 1e-13，而真正的差异会与输出同量级。"},
      .expected = Verdict::holds,
      .because = {"A product with W_q computes its columns independently, so the piece of Q that "
                  "belongs to a head is X times the piece of W_q. A further matrix behind Q adds "
                  "nothing either: a product of two matrices is a matrix.",
                  "与 W_q 相乘时各列互不相干，所以属于某个头的那一段 Q 就是 X 乘以 W_q 的那一段。"
                  "在 Q 之后再乘一个矩阵也不增加什么：两个矩阵之积仍是一个矩阵。"},
      .faults = {{"rows-of-the-next-head",
                  {"the first head alone has the next head's rows of W_q",
                   "单独的第一个头取了下一个头的 W_q 行"}},
                 {"sum-twice",
                  {"the sum of the heads is compared with itself", "拿各头之和与它自己比较"}},
                 {"projection-twice",
                  {"the second projection is compared with itself", "拿二次投影与它自己比较"}}},
      .run = run,
  };
}

}  // namespace heddle::lab::head_split
