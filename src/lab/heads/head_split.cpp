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

  f.number("output_size", largest(together), tr("largest number of the four-head output"));
  f.number("heads_apart", heads_apart, tr("one layer of 4 heads − sum of 4 layers of one head"));
  f.number("projected_again", projected_again, "(X·W_q)·W₁ − X·(W_q·W₁)");

  report::Bars bars;
  bars.y_label = tr("largest absolute value");
  bars.log_y = true;
  bars.groups = {tr("output"), tr("cut − per head"), tr("twice − once")};
  bars.series = {{"", {largest(together), heads_apart, projected_again}}};
  f.figure(bars, tr("The differences are rounding in float64; the scale is logarithmic."));

  f.control(tr("a row of W_q in the wrong head changes the output by"),
            heads_apart_by(f, all, x, 1), Relation::greater, 0.01);
  f.control(tr("W₁ without W_q changes the projection by"), projected_apart(f, x, w_q, w_1, w_1),
            Relation::greater, 0.01);
  f.control(tr("largest number of the output"), largest(together), Relation::greater, 0.5);
  const bool same = f.check(tr("cutting differs from projecting per head by"), heads_apart,
                            Relation::less, kSame);
  const bool folds = f.check(tr("a second projection differs from one projection by"),
                             projected_again, Relation::less, kSame);
  f.verdict(same && folds ? Verdict::holds : Verdict::refuted);
}

}  // namespace

Experiment experiment() {
  return {
      .name = "head-split",
      .topic = topics::heads,
      .title = mark("Cutting Q, K and V into heads"),
      .claim = mark("Heads may be made by cutting the projected Q, K and V into pieces; that is "
                    "the same as giving each head a projection of its own."),
      .formula = "X W_q = [X W_{q,1}, …, X W_{q,h}]",
      .source = mark("Document 004, multi-head attention: heads by a second matrix per head, with "
                     "the remark that cutting the global Q, K, V does it too."),
      .method =
          mark("A layer with 4 heads (it cuts) against 4 layers with one head each, made of the "
               "rows of W_q, W_k, W_v and the columns of W_o that belong to the head, summed. And "
               "a second projection of Q against one projection by the product of both matrices."),
      .threshold = mark("1e-12: rounding in float64 stays below 1e-13 here, a real difference "
                        "would be of the size of the outputs."),
      .expected = Verdict::holds,
      .because = mark("A product with W_q computes its columns independently, so the piece of Q "
                      "that belongs to a head is X times the piece of W_q. A further matrix behind "
                      "Q adds nothing either: a product of two matrices is a matrix."),
      .faults = {{"rows-of-the-next-head",
                  mark("the first head alone has the next head's rows of W_q")},
                 {"sum-twice", mark("the sum of the heads is compared with itself")},
                 {"projection-twice", mark("the second projection is compared with itself")}},
      .run = run,
  };
}

}  // namespace heddle::lab::head_split
