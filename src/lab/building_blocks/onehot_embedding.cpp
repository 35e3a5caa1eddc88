// onehot-embedding: is looking up a row the same as multiplying a one-hot vector with the table?
#include <algorithm>
#include <cmath>

#include "heddle/cost.h"
#include "heddle/tape.h"
#include "lab/experiments.h"
#include "lab/findings.h"
#include "lab/sequences.h"
#include "lab/tools.h"
#include "lab/topics.h"
#include "ops/binary/binary.h"
#include "ops/concat/concat.h"
#include "ops/embedding/embedding.h"
#include "ops/matmul/matmul.h"
#include "ops/reduce/reduce.h"
#include "ops/view/view.h"

namespace heddle::lab::onehot_embedding {

namespace {

constexpr std::int64_t kVocabulary = 1000, kWidth = 32, kTokens = 64;

Ids tokens() {
  Ids list;
  for (std::int64_t t = 0; t < kTokens; ++t)
    list.push_back(random_id({80, 0, 0}, t, static_cast<std::int32_t>(kVocabulary)));
  list[1] = list[0];  // a token that comes twice: its gradients must add up
  return list;
}

Tensor one_hot(const Findings& f, const Ids& list) {  // [T, V]
  const std::int64_t next = f.fault("next-token") ? 1 : 0;
  Tensor x = Tensor::zeros({kTokens, kVocabulary}, DType::f64);
  auto* values = x.mutable_data<double>();
  for (std::size_t t = 0; t < list.size(); ++t)
    values[static_cast<std::int64_t>(t) * kVocabulary + (list[t] + next) % kVocabulary] = 1;
  return x;
}

struct Result {
  Tensor y, gradient;  // [T, C], [V, C]
  Cost cost;           // of both passes
};

template <class F>
Result measure(const Findings& f, const F& forward) {
  Result r;
  Tensor table = normal({kVocabulary, kWidth}, 81);
  table.set_requires_grad(true);
  const CostMeter meter;
  Tape tape;
  r.y = forward(table);
  const Tensor cotangent = normal({kTokens, kWidth}, 82);
  if (f.fault("forward-only")) r.cost = meter.cost();
  tape.backward(std::span<const Tensor>(&r.y, 1), std::span<const Tensor>(&cotangent, 1));
  r.gradient = table.grad();
  if (!f.fault("forward-only")) r.cost = meter.cost();
  return r;
}

struct Overlap {
  double different = 0, equal = INFINITY;  // largest and smallest scalar product of two tokens
};

Overlap overlap_of(const Findings& f, const Ids& list, const Tensor& hot) {
  Tensor others = hot;
  if (f.fault("shuffled-vectors"))
    others = ops::concat(
        std::vector<Tensor>{ops::slice(hot, 0, 1, kTokens), ops::slice(hot, 0, 0, 1)}, 0);
  const auto rows = rows_of(ops::matmul(hot, ops::transpose(others, 0, 1)));
  Overlap overlap;
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t j = 0; j < rows.size(); ++j)
      if (list[i] != list[j])
        overlap.different = std::max(overlap.different, std::abs(rows[i][j]));
      else
        overlap.equal = std::min(overlap.equal, rows[i][j]);
  return overlap;
}

void run(Findings& f) {
  const Ids list = tokens();
  const Tensor hot = one_hot(f, list), index = ids({kTokens}, list);
  const Result product = measure(f, [&](const Tensor& table) { return ops::matmul(hot, table); });
  const Result lookup = measure(f, [&](const Tensor& table) {
    return f.fault("product-twice") ? ops::matmul(hot, table)
                                    : ops::embedding(table, index, DType::f64);
  });
  const double outputs = largest_difference(product.y, lookup.y);
  const double gradients = largest_difference(product.gradient, lookup.gradient);
  const Overlap overlap = overlap_of(f, list, hot);
  f.number("outputs", outputs, tr("product − lookup"));
  f.number("gradients", gradients, tr("gradients of the table: product − lookup"));
  f.number("overlap", overlap.different,
           tr("largest scalar product of two different one-hot vectors"));
  f.number("product_flops", product.cost.flops, tr("arithmetic of the product, both passes"));
  f.number("lookup_flops", lookup.cost.flops, tr("arithmetic of the lookup, both passes"));
  f.number("one_hot_bytes", static_cast<double>(hot.bytes()),
           tr("the 64 tokens as one-hot vectors"), mark("bytes"));
  f.number("id_bytes", static_cast<double>(index.bytes()), tr("the 64 tokens as numbers"),
           mark("bytes"));

  report::Bars bars;
  bars.y_label = tr("operations, bytes");
  bars.log_y = true;
  bars.groups = {tr("arithmetic"), tr("bytes of the tokens")};
  bars.series = {
      {tr("one-hot · table"), {product.cost.flops, static_cast<double>(hot.bytes())}},
      {tr("lookup"), {std::max(1.0, lookup.cost.flops), static_cast<double>(index.bytes())}}};
  f.figure(bars, tr("The same vectors by two ways, vocabulary 1000, width 32, 64 tokens."));
  // By hand, a multiplication and an addition each: T·V·C forward, T·V·C for the table's gradient.
  const double products = 2.0 * 2 * kTokens * kVocabulary * kWidth;
  f.control(tr("arithmetic of the product over 4·T·V·C − 1"),
            std::abs(product.cost.flops / products - 1), Relation::less, 0.01);
  f.control(tr("one-hot vectors, bytes: T·V·8"), static_cast<double>(hot.bytes()), Relation::equal,
            512000);
  f.control(tr("numbers, bytes: T·4"), static_cast<double>(index.bytes()), Relation::equal, 256);
  f.control(tr("scalar product of a token's vectors with each other"), overlap.equal,
            Relation::equal, 1);
  const bool same = f.check(tr("outputs differ by"), outputs, Relation::equal, 0);
  const bool learns = f.check(tr("gradients differ by"), gradients, Relation::less, 1e-12);
  const bool orthogonal =
      f.check(tr("one-hot vectors overlap by"), overlap.different, Relation::equal, 0);
  const bool costly =
      f.check(tr("the product costs more, times"),
              product.cost.flops / std::max(1.0, lookup.cost.flops), Relation::greater, 100);
  f.verdict(same && learns && orthogonal && costly ? Verdict::holds : Verdict::refuted);
}

}  // namespace

Experiment experiment() {
  return {
      .name = "onehot-embedding",
      .topic = topics::building_blocks,
      .title = mark("One-hot times a matrix is a lookup"),
      .claim =
          mark("One-hot vectors are orthogonal to each other, so they say nothing about meaning, "
               "and they are large and waste compute; a learned embedding replaces them."),
      .formula = "e_i · e_j = 0 quad E^T e_i = E_i",
      .source = mark("Document 004, word embedding."),
      .method = mark("64 tokens of a vocabulary of 1000, as one-hot vectors times a table and as a "
                     "lookup in Heddle: vectors, gradients of the table, arithmetic and bytes."),
      .threshold = mark(
          "Vectors equal to the bit (a sum of zeros and one number), gradients to 1e-12 (sums in "
          "another order), and 100 times the arithmetic: it should be near the vocabulary."),
      .expected = Verdict::holds,
      .because =
          mark("An embedding layer is exactly a linear layer on one-hot vectors; only the products "
               "with zero are left out. So what is learned is the same, and orthogonal inputs are "
               "no obstacle: the rows of the table may lie as they like."),
      .faults = {{"next-token",
                  mark("the one-hot vectors are those of the next tokens of the vocabulary")},
                 {"product-twice", mark("the lookup is a product too")},
                 {"forward-only", mark("the arithmetic is that of the forward pass alone")},
                 {"shuffled-vectors", mark("scalar products are taken with shuffled vectors")}},
      .run = run,
  };
}

}  // namespace heddle::lab::onehot_embedding
