// permutation: what happens to the outputs when the input tokens are shuffled?
#include <cmath>
#include <numeric>
#include <variant>

#include "heddle/tape.h"
#include "lab/experiments.h"
#include "lab/findings.h"
#include "lab/sequences.h"
#include "lab/tools.h"
#include "lab/topics.h"
#include "model/model.h"
#include "ops/gather/gather.h"
#include "ops/reduce/reduce.h"
#include "ops/view/view.h"

namespace heddle::lab::permutation {

namespace {

constexpr std::int64_t kTokens = 12, kWidth = 16;
constexpr double kSame = 1e-12;  // float64 rounding through two layers is a hundred times less
constexpr double kOther = 1e-3;  // outputs are of size 1: a real difference is far above

using Order = std::vector<std::int64_t>;

Order shuffled() {  // 5 and 12 have no common factor: every place comes once
  Order order;
  for (std::int64_t i = 0; i < kTokens; ++i) order.push_back((5 * i + 3) % kTokens);
  return order;
}

Order reversed() {
  Order order(kTokens);
  std::iota(order.rbegin(), order.rend(), 0);
  return order;
}

// Row i of the result is row order[i] of x: [T, C].
Tensor permuted(const Tensor& x, const Order& order) {
  const Tensor index = Tensor::from<std::int64_t>({kTokens}, std::span<const std::int64_t>(order));
  return ops::index_select(x, index);
}

// The scores of every token, [T, classes], of a two-layer Transformer.
Tensor outputs(const model::Model& model, const Order& order) {
  Ids tokens;
  for (const std::int64_t place : order) tokens.push_back(static_cast<std::int32_t>(place));
  const model::Batch batch = batch_of(tokens, tokens, 1);
  nn::Pass pass;
  pass.precision = DType::f64;
  const NoGrad no_grad;
  const Tensor scores = model.logits(batch, pass);
  return ops::reshape(scores, {kTokens, -1});
}

std::unique_ptr<model::Model> transformer(const nn::Position& position, bool causal) {
  model::ModelConfig c;
  c.kind = causal ? model::Kind::decoder : model::Kind::encoder;
  c.task = causal ? model::Task::language : model::Task::tag;
  c.layers = 2;
  c.width = kWidth;
  c.attention.heads = 2;
  c.attention.position = position;
  c.sizes.vocabulary = kTokens;
  c.sizes.classes = causal ? 0 : 5;
  c.sizes.context = kTokens;
  return model::build_model(c, {.seed = 4, .dtype = DType::f64});
}

struct Difference {
  double moved;     // f(PX) - P f(X): 0 for an equivariant function
  double in_place;  // f(PX) - f(X): 0 for an invariant one
  double pooled;    // the same for the mean over all tokens
};

Difference difference(const Findings& f, const model::Model& model, const Order& order) {
  Order straight(kTokens);
  std::iota(straight.begin(), straight.end(), 0);
  const Tensor before = outputs(model, straight);
  const Tensor after = outputs(model, f.fault("not-shuffled") ? straight : order);
  // Back instead of along: place order[i] gets row i.
  Order inverse(kTokens);
  for (std::size_t i = 0; i < order.size(); ++i)
    inverse[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  const Tensor moved = permuted(before, f.fault("moved-back") ? inverse : order);
  return {largest_difference(after, moved), largest_difference(after, before),
          largest_difference(ops::mean(after, 0), ops::mean(before, 0))};
}

struct Encoding {
  const char* key;
  const char* name;
  nn::Position position;
  bool causal = false;
};

const std::vector<Encoding>& encodings() {
  static const std::vector<Encoding> all = {
      {"sinusoidal", mark("sinusoidal"), nn::SinusoidalPosition{}},
      {"learned", mark("learned"), nn::LearnedPosition{}},
      {"t5", mark("T5"), nn::T5Position{}},
      {"alibi", mark("ALiBi"), nn::AlibiPosition{}},
      {"rope", mark("RoPE"), nn::RopePosition{}},
      {"causal", mark("causal mask alone"), nn::NoPosition{}, true}};
  return all;
}

// The effect of every encoding on a shuffle and a reversal: all break the symmetry, or the test
// sees no difference where there is one.
void measure_encodings(Findings& f, const Difference& without) {
  report::Bars bars;
  bars.y_label = tr("f(PX) − P f(X), largest");
  bars.log_y = true;
  bars.groups = {tr("none")};
  bars.series = {
      {tr("shuffled"), {without.moved}},
      {tr("reversed"), {difference(f, *transformer(nn::NoPosition{}, false), reversed()).moved}}};
  double least = INFINITY, least_reversed = INFINITY, alibi_reversed = INFINITY;
  for (const Encoding& e : encodings()) {
    const auto model =
        transformer(f.fault("one-encoding") ? encodings().front().position : e.position, e.causal);
    const double shuffle = difference(f, *model, shuffled()).moved;
    const double reverse = difference(f, *model, reversed()).moved;
    if (std::holds_alternative<nn::AlibiPosition>(e.position))
      alibi_reversed = reverse;
    else
      least_reversed = std::min(least_reversed, reverse);
    f.number(std::string(e.key) + "_shuffled", shuffle, tr("{}: f(PX) − P f(X)", tr(e.name)));
    f.number(std::string(e.key) + "_reversed", reverse, tr("{}, order reversed", tr(e.name)));
    least = std::min(least, shuffle);
    bars.groups.push_back(tr(e.name));
    bars.series[0].values.push_back(shuffle);
    bars.series[1].values.push_back(reverse);
  }
  f.figure(
      bars,
      tr("How far the outputs are from having moved with their tokens. ALiBi without a causal mask "
         "knows distances but no direction: it takes a reversed sentence for the same one."));
  f.control(tr("the weakest encoding breaks the symmetry by"), least, Relation::greater, kOther);
  f.control(tr("a reversal changes it by, all but ALiBi"), least_reversed, Relation::greater,
            kOther);
  f.control(tr("a reversal under ALiBi, which knows no direction"), alibi_reversed, Relation::less,
            kSame);
}

void run(Findings& f) {
  nn::Position none = nn::NoPosition{};
  if (f.fault("positions-left-in")) none = nn::SinusoidalPosition{};
  const Difference d = difference(f, *transformer(none, false), shuffled());
  f.number("moved", d.moved, tr("no positions: f(PX) − P f(X)"));
  f.number("in_place", d.in_place, tr("no positions: f(PX) − f(X)"));
  f.number("pooled", d.pooled, tr("no positions: the same for the mean over tokens"));
  measure_encodings(f, d);
  const bool changes = f.counter(tr("shuffling changes the outputs in their places by"), d.in_place,
                                 Relation::greater, kOther);
  // The truth instead. The proof is in the documents, so a failure here would be Heddle's.
  f.control(tr("moved along with their tokens they differ by"), d.moved, Relation::less, kSame);
  f.control(tr("their mean changes by"), d.pooled, Relation::less, kSame);
  f.verdict(changes ? Verdict::refuted : Verdict::holds);
}

}  // namespace

Experiment experiment() {
  return {
      .name = "permutation",
      .topic = topics::positions,
      .title = mark("Shuffled tokens: invariant or equivariant?"),
      .claim = mark("Self-attention without positions is permutation-invariant: shuffling the "
                    "input leaves the result unchanged."),
      .formula = "f(P X) = f(X)",
      .source = mark("Document 004, positional encoding. Document 002 and the proof in 003, 2(a), "
                     "say equivariant; the comment below that proof says invariant again."),
      .method = mark("A two-layer Transformer in float64 on 12 tokens and on the same tokens "
                     "shuffled: outputs compared place by place (invariant), token by token "
                     "(equivariant) and as a mean. Then the same with each position encoding, and "
                     "with a causal mask alone; shuffled and reversed."),
      .threshold = mark("Equal: 1e-12, above rounding in float64. Different: 1e-3, while outputs "
                        "are of size 1. The claim falls when outputs change in their places; that "
                        "they move with their tokens and that encodings break this are controls."),
      .expected = Verdict::refuted,
      .because = mark("Every token compares itself with the same set of others wherever it stands, "
                      "so its output moves with it: the layer is equivariant. Only after pooling "
                      "over the tokens nothing is left of the order. Every position encoding "
                      "breaks this, and so does a causal mask."),
      .faults = {{"not-shuffled", mark("the tokens are not shuffled")},
                 {"moved-back", mark("outputs are moved back instead of along with their tokens")},
                 {"positions-left-in", mark("the model without positions has sinusoidal ones")},
                 {"one-encoding", mark("all models have the first encoding")}},
      .run = run,
  };
}

}  // namespace heddle::lab::permutation
