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
  Text name;
  nn::Position position;
  bool causal = false;
};

const std::vector<Encoding>& encodings() {
  static const std::vector<Encoding> all = {
      {"sinusoidal", {"sinusoidal", "正余弦"}, nn::SinusoidalPosition{}},
      {"learned", {"learned", "可学习"}, nn::LearnedPosition{}},
      {"t5", {"T5", "T5"}, nn::T5Position{}},
      {"alibi", {"ALiBi", "ALiBi"}, nn::AlibiPosition{}},
      {"rope", {"RoPE", "RoPE"}, nn::RopePosition{}},
      {"causal", {"causal mask alone", "仅因果掩码"}, nn::NoPosition{}, true}};
  return all;
}

// What every encoding does to a shuffle and to a reversal: all break the symmetry, or the test sees
// no difference where there is one.
void measure_encodings(Findings& f, const Difference& without) {
  report::Bars bars;
  bars.y_label = f.say({"f(PX) − P f(X), largest", "f(PX) − P f(X) 的最大绝对值"});
  bars.log_y = true;
  bars.groups = {f.say({"none", "无位置编码"})};
  bars.series = {{f.say({"shuffled", "打乱"}), {without.moved}},
                 {f.say({"reversed", "逆序"}),
                  {difference(f, *transformer(nn::NoPosition{}, false), reversed()).moved}}};
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
    f.number(std::string(e.key) + "_shuffled", shuffle,
             {e.name.en + ": f(PX) − P f(X)", e.name.zh + "：f(PX) − P f(X)"});
    f.number(std::string(e.key) + "_reversed", reverse,
             {e.name.en + ", order reversed", e.name.zh + "，逆序"});
    least = std::min(least, shuffle);
    bars.groups.push_back(f.say(e.name));
    bars.series[0].values.push_back(shuffle);
    bars.series[1].values.push_back(reverse);
  }
  f.figure(bars,
           {"How far the outputs are from having moved with their tokens. ALiBi without a causal "
            "mask knows distances but no direction: it takes a reversed sentence for the same one.",
            "输出偏离「随词元一起移动」的程度。不带因果掩码的 ALiBi 只知道距离、不知道方向："
            "把句子整个倒过来，它看不出区别。"});
  f.control({"the weakest encoding breaks the symmetry by", "最弱的位置编码对等变性的破坏"}, least,
            Relation::greater, kOther);
  f.control({"a reversal changes it by, all but ALiBi", "逆序对等变性的破坏（ALiBi 除外，取最小）"},
            least_reversed, Relation::greater, kOther);
  f.control(
      {"a reversal under ALiBi, which knows no direction", "逆序对 ALiBi 的影响（它不辨方向）"},
      alibi_reversed, Relation::less, kSame);
}

void run(Findings& f) {
  nn::Position none = nn::NoPosition{};
  if (f.fault("positions-left-in")) none = nn::SinusoidalPosition{};
  const Difference d = difference(f, *transformer(none, false), shuffled());
  f.number("moved", d.moved, {"no positions: f(PX) − P f(X)", "无位置编码：f(PX) − P f(X)"});
  f.number("in_place", d.in_place, {"no positions: f(PX) − f(X)", "无位置编码：f(PX) − f(X)"});
  f.number("pooled", d.pooled,
           {"no positions: the same for the mean over tokens", "无位置编码：对全部词元取平均之后"});
  measure_encodings(f, d);
  const bool changes = f.check(
      {"shuffling changes the outputs in their places by", "打乱输入后，各位置上的输出变化"},
      d.in_place, Relation::greater, kOther);
  // What is true instead. The proof is in the documents, so a failure here would be Heddle's.
  f.control({"moved along with their tokens they differ by", "让输出随词元一起移动后的差异"},
            d.moved, Relation::less, kSame);
  f.control({"their mean changes by", "输出平均值的变化"}, d.pooled, Relation::less, kSame);
  f.verdict(changes ? Verdict::refuted : Verdict::holds);
}

}  // namespace

Experiment experiment() {
  return {
      .name = "permutation",
      .topic = topics::positions,
      .title = {"Shuffled tokens: invariant or equivariant?", "打乱词元：不变还是等变？"},
      .claim = {"Self-attention without positions is permutation-invariant: shuffling the input "
                "leaves the result unchanged.",
                "没有位置编码的自注意力是置换不变的：打乱输入顺序，结果不变。"},
      .source = {"Document 004, positional encoding. Document 002 and the proof in 003, 2(a), say "
                 "equivariant; the comment below that proof says invariant again.",
                 "文档 004「Positional Encoding」。文档 002 和 003 第 2(a) "
                 "题的证明说的是「等变」，但 003 证明之后的评语又写成了「不变」。"},
      .method =
          {"A two-layer Transformer in float64 on 12 tokens and on the same tokens shuffled: "
           "outputs compared place by place (invariant), token by token (equivariant) and "
           "as a mean. Then the same with each position encoding, and with a causal mask "
           "alone; shuffled and reversed.",
           "用 float64 的两层 Transformer 处理 12 个词元以及打乱后的同样词元：逐位置比较（不变）、"
           "逐词元比较（等变）、比较平均值。再对每种位置编码以及仅有因果掩码的情形，"
           "分别做打乱和逆序。"},
      .threshold = {"Equal: 1e-12, above rounding in float64. Different: 1e-3, while outputs are "
                    "of size 1. The claim falls when outputs change in their places; that "
                    "they move with their tokens and that encodings break this are controls.",
                    "相等：1e-12，高于 float64 的舍入误差；不同：1e-3，而输出的量级为 1。"
                    "各位置上的输出一旦改变，论断就不成立；输出随词元移动、位置编码打破对称，"
                    "则是对测量本身的核对。"},
      .expected = Verdict::refuted,
      .because =
          {"Every token compares itself with the same set of others wherever it stands, so "
           "its output moves with it: the layer is equivariant. Only after pooling over the "
           "tokens nothing is left of the order. Every position encoding breaks this, and "
           "so does a causal mask.",
           "不论站在哪里，每个词元面对的都是同一组其他词元，所以它的输出跟着它走：这是等变，"
           "不是不变。只有对所有词元取平均之后，顺序才完全消失。每种位置编码都会打破这种对称，"
           "因果掩码也会。"},
      .faults = {{"not-shuffled", {"the tokens are not shuffled", "词元没有打乱"}},
                 {"moved-back",
                  {"outputs are moved back instead of along with their tokens",
                   "输出按逆置换移动"}},
                 {"positions-left-in",
                  {"the model without positions has sinusoidal ones",
                   "「无位置编码」的模型带了正余弦编码"}},
                 {"one-encoding",
                  {"all models have the first encoding", "所有模型用的都是第一种编码"}}},
      .run = run,
  };
}

}  // namespace heddle::lab::permutation
