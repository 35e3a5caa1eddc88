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
  f.number("outputs", outputs, {"product − lookup", "矩阵乘法 − 查表"});
  f.number("gradients", gradients,
           {"gradients of the table: product − lookup", "词表梯度：矩阵乘法 − 查表"});
  f.number("overlap", overlap.different,
           {"largest scalar product of two different one-hot vectors",
            "不同 one-hot 向量之间的最大内积"});
  f.number("product_flops", product.cost.flops,
           {"arithmetic of the product, both passes", "矩阵乘法的运算次数（前向与反向）"});
  f.number("lookup_flops", lookup.cost.flops,
           {"arithmetic of the lookup, both passes", "查表的运算次数（前向与反向）"});
  f.number("one_hot_bytes", static_cast<double>(hot.bytes()),
           {"the 64 tokens as one-hot vectors", "64 个词元的 one-hot 表示"}, "bytes");
  f.number("id_bytes", static_cast<double>(index.bytes()),
           {"the 64 tokens as numbers", "64 个词元的编号"}, "bytes");

  report::Bars bars;
  bars.y_label = f.say({"operations, bytes", "运算次数、字节"});
  bars.log_y = true;
  bars.groups = {f.say({"arithmetic", "运算次数"}), f.say({"bytes of the tokens", "词元占用字节"})};
  bars.series = {{f.say({"one-hot · table", "one-hot · 词表"}),
                  {product.cost.flops, static_cast<double>(hot.bytes())}},
                 {f.say({"lookup", "查表"}),
                  {std::max(1.0, lookup.cost.flops), static_cast<double>(index.bytes())}}};
  f.figure(bars, {"The same vectors by two ways, vocabulary 1000, width 32, 64 tokens.",
                  "用两种方式得到同样的向量：词表 1000，宽 32，64 个词元。"});
  // By hand, a multiplication and an addition each: T·V·C forward, T·V·C for the table's gradient.
  const double products = 2.0 * 2 * kTokens * kVocabulary * kWidth;
  f.control({"arithmetic of the product over 4·T·V·C − 1", "矩阵乘法运算次数与 4·T·V·C 之比 − 1"},
            std::abs(product.cost.flops / products - 1), Relation::less, 0.01);
  f.control({"one-hot vectors, bytes: T·V·8", "one-hot 字节数：T·V·8"},
            static_cast<double>(hot.bytes()), Relation::equal, 512000);
  f.control({"numbers, bytes: T·4", "编号字节数：T·4"}, static_cast<double>(index.bytes()),
            Relation::equal, 256);
  f.control({"scalar product of a token's vectors with each other", "同一词元的 one-hot 内积"},
            overlap.equal, Relation::equal, 1);
  const bool same = f.check({"outputs differ by", "输出之差"}, outputs, Relation::equal, 0);
  const bool learns =
      f.check({"gradients differ by", "梯度之差"}, gradients, Relation::less, 1e-12);
  const bool orthogonal = f.check({"one-hot vectors overlap by", "one-hot 向量之间的内积"},
                                  overlap.different, Relation::equal, 0);
  const bool costly =
      f.check({"the product costs more, times", "矩阵乘法的运算量是查表的倍数"},
              product.cost.flops / std::max(1.0, lookup.cost.flops), Relation::greater, 100);
  f.verdict(same && learns && orthogonal && costly ? Verdict::holds : Verdict::refuted);
}

}  // namespace

Experiment experiment() {
  return {
      .name = "onehot-embedding",
      .topic = topics::building_blocks,
      .title = {"One-hot times a matrix is a lookup", "one-hot 乘矩阵就是查表"},
      .claim = {"One-hot vectors are orthogonal to each other, so they say nothing about meaning, "
                "and they are large and waste compute; a learned embedding replaces them.",
                "one-hot "
                "向量两两正交，无法表达语义关系，而且维度很大、浪费计算；所以改用可学习的词嵌入。"},
      .source = {"Document 004, word embedding.", "文档 004「Word Embedding」与「输入部分细节」。"},
      .method =
          {"64 tokens of a vocabulary of 1000, as one-hot vectors times a table and as a lookup "
           "in Heddle: vectors, gradients of the table, arithmetic and bytes.",
           "词表大小 1000、64 个词元：一边用 one-hot 乘以词表矩阵，一边用 Heddle "
           "的查表，比较得到的向量、"
           "词表梯度、运算次数和字节数。"},
      .threshold =
          {"Vectors equal to the bit (a sum of zeros and one number), gradients to 1e-12 (sums in "
           "another order), and 100 times the arithmetic: it should be near the vocabulary.",
           "向量逐位相等（一个数与若干零之和）；梯度相差小于 1e-12（求和次序不同）；"
           "运算量超过 100 倍（应接近词表大小）。"},
      .expected = Verdict::holds,
      .because =
          {"An embedding layer is exactly a linear layer on one-hot vectors; only the products "
           "with "
           "zero are left out. So what is learned is the same, and orthogonal inputs are no "
           "obstacle: the rows of the table may lie as they like.",
           "词嵌入层恰好就是作用在 one-hot 上的线性层，只是省去了与零的乘法。因此学到的东西相同；"
           "输入正交也不是障碍，因为词表的各行可以任意取值。"},
      .faults = {{"next-token",
                  {"the one-hot vectors are those of the next tokens of the vocabulary",
                   "one-hot 取成了词表中的下一个词元"}},
                 {"product-twice", {"the lookup is a product too", "「查表」其实也是矩阵乘法"}},
                 {"forward-only",
                  {"the arithmetic is that of the forward pass alone", "运算次数只算了前向"}},
                 {"shuffled-vectors",
                  {"scalar products are taken with shuffled vectors", "内积取自打乱后的向量"}}},
      .run = run,
  };
}

}  // namespace heddle::lab::onehot_embedding
