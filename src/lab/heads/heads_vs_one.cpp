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

report::HeatMap map_of(const nn::Attention& layer, std::int64_t head, const Tensor& x) {
  report::HeatMap map;
  map.x_label = tr("key");
  map.y_label = tr("query");
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
  f.figure(map_of(two, 0, x), tr("Two heads: the map of the first."));
  f.figure(map_of(two, 1, x), tr("Two heads: the map of the second."));
  f.figure(map_of(matched, 0, x),
           tr("One head, scale matched: one map for all, from the sum of both heads' scores."));

  // The score of the one head is the sum of the heads' scores. So with heads that are alike it is
  // twice theirs, and half of the scale makes one head compute what two do.
  if (!f.fault("heads-not-alike")) make_heads_alike(two);
  const double control = apart(f, two, as_one_head(f, two, scale / 2), x);

  f.number("output_size", output_size, tr("largest number of the two-head output"));
  f.number("own_scale", own_scale, tr("two heads − one head, each with its own 1/√d"));
  f.number("same_scale", same_scale, tr("two heads − one head with the scale of the two"));
  f.number("alike", control, tr("two heads with equal scores − one head, half the scale"));
  f.control(tr("largest number of the output"), output_size, Relation::greater, 0.5);
  f.control(tr("difference when both heads score alike"), control, Relation::less, 1e-12);
  const bool differ =
      f.check(tr("difference with each its own scale"), own_scale, Relation::greater, 0.01);
  const bool still =
      f.check(tr("difference with the same scale"), same_scale, Relation::greater, 0.01);
  f.verdict(!differ ? Verdict::refuted : still ? Verdict::holds : Verdict::conditional);
}

}  // namespace

Experiment experiment() {
  return {
      .name = "heads-vs-one",
      .topic = topics::heads,
      .title = mark("Two heads against one wide head"),
      .claim = mark(
          "Two heads and one head with the concatenated parameters give different outputs, because "
          "one head forms only one set of weights (not just because its scale differs)."),
      .formula = "[A_1 V_1, A_2 V_2] ≠ A [V_1, V_2]",
      .source = mark("Document 000, 2.2(b). Both answers say “different”; the student's reason is "
                     "the scale √d_k alone, the other's is the single attention map."),
      .method = mark("Heddle's layer with 2 heads and with 1, the same parameter tensors; then the "
                     "one head with the scale of the two. As a control, heads with equal scores, "
                     "for which one head with half of the scale must do the same."),
      .threshold =
          mark("A difference counts above 0.01, on outputs near 1; rounding is near 1e-15."),
      .expected = Verdict::holds,
      .because = mark("One wide head adds the heads' scores, q·k = q₁·k₁ + q₂·k₂, and gives both "
                      "halves of the values the same weights. The student's reason is wrong: with "
                      "the scale matched the outputs still differ."),
      .faults = {{"own-scale-always",
                  mark("the one head keeps its own scale where another is meant")},
                 {"same-output-twice", mark("the output of two heads is compared with itself")},
                 {"other-tokens", mark("the one head reads other tokens")},
                 {"heads-not-alike", mark("in the control the heads are not made alike")}},
      .run = run,
  };
}

}  // namespace heddle::lab::heads_vs_one
