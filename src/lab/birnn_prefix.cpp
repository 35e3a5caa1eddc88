// birnn-prefix: the same network, run anew on every prefix.
#include <algorithm>
#include <cmath>

#include "lab/every_sequence.h"
#include "lab/experiments.h"
#include "lab/findings.h"
#include "lab/topics.h"

namespace heddle::lab::birnn_prefix {

namespace {

void run(Findings& f) {
  const TwoWayStudy two_way(f, model::Task::language);
  const auto& [effect, total_before, total_after, other_effect, other_total, entropy, losses] =
      two_way;
  const double least = *std::min_element(losses.begin(), losses.end());

  f.number("future_effect", effect,
           {"change of p(x_1) when only x_5 changes", "只改变 x_5 时 p(x_1) 的变化"});
  f.number("total_before_off", std::abs(total_before - 1),
           {"|Σ over all 243 sequences of Π p − 1|, random weights",
            "随机权重：|243 个序列的 Π p 之和 − 1|"});
  f.number("total_after_off", std::abs(total_after - 1),
           {"the same after training", "训练后：同上"});
  f.number("least_loss", least, {"least loss per token in training", "训练中的最低每词元损失"},
           "nats");
  f.number("entropy", entropy,
           {"entropy per token of these sequences, log 3", "这些序列的每词元熵 log 3"}, "nats");
  const report::LineChart chart = two_way.chart(
      f, {"two-way network, prefix by prefix", "逐前缀的双向网络"}, {"entropy", "熵"});
  f.figure(chart, {"Trained like the leaking one, it comes down to the entropy and no further.",
                   "与泄漏的网络同样训练，它只能降到熵，不会更低。"});

  f.control({"over the whole sequence: a future token changes p(x_1) by",
             "整句的网络：未来的词元使 p(x_1) 改变"},
            other_effect, Relation::greater, 1e-3);
  f.control({"over the whole sequence: distance of the sum from 1", "整句的网络：总和与 1 的距离"},
            std::abs(other_total - 1), Relation::greater, 1e-3);
  f.control({"training comes down to the entropy up to", "训练后的最低损失高出熵"}, least - entropy,
            Relation::less, 1e-3);
  const bool sums = f.check({"distance of the sum from 1", "总和与 1 的距离"},
                            std::max(std::abs(total_before - 1), std::abs(total_after - 1)),
                            Relation::less, 1e-12);
  const bool blind = f.check({"a future token changes p(x_1) by", "未来的词元使 p(x_1) 改变"},
                             effect, Relation::equal, 0);
  const bool honest = f.check({"least loss minus the entropy", "最低损失减去熵"}, least - entropy,
                              Relation::greater, -1e-12);
  f.verdict(sums && blind && honest ? Verdict::holds : Verdict::refuted);
}

}  // namespace

Experiment experiment() {
  return {
      .name = "birnn-prefix",
      .topic = topics::recurrent,
      .title = {"A two-way network on each prefix is one", "逐前缀运行的双向 RNN 是语言模型"},
      .claim =
          {"Run anew on x_1 … x_{t−1} for every t, a two-way RNN does define an autoregressive "
           "language model.",
           "对每个 t 都只在 x_1 … x_{t−1} 上重新运行，双向 RNN 就能定义自回归语言模型。"},
      .source = {"Document 000, 1.2(b): both answers.", "文档 000 的 1.2(b)：两个解答。"},
      .method =
          {"Heddle's birnn as a language model, which reads every prefix for itself, over the "
           "same 243 sequences as birnn-leak, before and after the same training.",
           "用 Heddle 的 birnn 语言模型（逐前缀重新读入），在与 birnn-leak 相同的 243 个序列上，"
           "训练前后各测一次。"},
      .threshold = {"The sum must be 1 to 1e-12, p(x_1) must not change by a single bit, and the "
                    "loss must stay at or above the entropy.",
                    "总和须在 1e-12 内等于 1，p(x_1) 一位都不能变，损失不得低于熵。"},
      .expected = Verdict::holds,
      .because =
          {"Every factor is a softmax over x_t that depends on x_1 … x_{t−1} alone; the chain "
           "rule does the rest. The price is a run of the network per prefix: T² instead of T "
           "steps.",
           "每个因子都是只依赖 x_1 … x_{t−1} 的关于 x_t 的 softmax，其余由链式法则保证。"
           "代价是每个前缀都要重新运行网络：T² 步而不是 T 步。"},
      .faults = {{"other-network",
                  {"the network of the other experiment is measured", "测的是另一个实验的网络"}},
                 {"first-token-changes", {"x_1 changes instead of x_5", "改变的是 x_1 而不是 x_5"}},
                 {"sequence-left-out",
                  {"one of the 243 sequences is left out of the sum", "求和时漏掉一个序列"}},
                 {"untrained", {"the network is not trained", "网络没有训练"}}},
      .run = run,
  };
}

}  // namespace heddle::lab::birnn_prefix
