// multiplicative-class: does a matrix between key and query let attention learn more?
#include <fmt/format.h>

#include <algorithm>

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

std::string label_of(const Case& c) {
  if (c.heads == 1) return tr("1 head");
  return c.causal ? tr("{} heads, causal", c.heads) : tr("{} heads", c.heads);
}

void run(Findings& f) {
  report::Bars bars;
  bars.y_label = tr("largest absolute value");
  bars.log_y = true;
  bars.series = {{tr("output"), {}}, {tr("multiplicative − folded"), {}}};
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
    bars.groups.push_back(label_of(c));
    bars.series[0].values.push_back(largest(layer.forward(x)));
    bars.series[1].values.push_back(off);
  }
  f.figure(bars, tr("A scaled-dot layer with W_q' = W_s·W_q computes what the multiplicative layer "
                    "does, up to rounding."));
  f.number("folded_off", folded_off, tr("multiplicative − scaled-dot with W_s·W_q"));
  f.number("identity_off", identity_off, tr("scaled-dot − multiplicative with W_s = I"));
  f.number("ignored_off", ignored_off, tr("multiplicative − scaled-dot that leaves W_s out"));

  f.control(tr("leaving W_s out changes the output by"), ignored_off, Relation::greater, 1e-3);
  // Either of the two alone would leave the classes different.
  const bool same = f.counter(tr("folding W_s into W_q, and W_s = I, change the output by at most"),
                              std::max(folded_off, identity_off), Relation::less, 1e-12);
  f.verdict(same ? Verdict::refuted : Verdict::holds);
}

}  // namespace

Experiment experiment() {
  return {
      .name = "multiplicative-class",
      .topic = topics::scores,
      .title = mark("Multiplicative attention: a larger class of functions?"),
      .claim = mark("A Transformer with multiplicative attention, kᵀ W_s q / √d, can learn "
                    "functions that one with scaled dot products cannot."),
      .formula = "s(k, q) = frac{k^T W_s q}{sqrt{d}}",
      .source = mark("Document 000, 2.1(a): the second answer there says so and rejects the "
                     "student's, which says the opposite."),
      .method = mark(
          "Heddle's multiplicative layer against its scaled-dot layer with W_q' = W_s·W_q, for 1, "
          "2, 4 and 8 heads, with and without causal mask; and the other way round with W_s = I."),
      .threshold =
          mark("Equal to 1e-12 in both directions means that each class contains the other; "
               "rounding is near 1e-15. As a control, leaving W_s out must change the output."),
      .expected = Verdict::refuted,
      .because = mark("q = W_q x is linear already, and W_s W_q is again a matrix of the same "
                      "shape: whatever W_s learns, W_q could have learned. Training may take "
                      "another path, but the functions that can be reached are the same."),
      .faults = {{"ws-transposed", mark("W_s is folded in transposed")},
                 {"identity-of-one-head", mark("W_s = I in the first head only")},
                 {"same-layer-twice", mark("a layer is compared with itself")}},
      .run = run,
  };
}

}  // namespace heddle::lab::multiplicative_class
