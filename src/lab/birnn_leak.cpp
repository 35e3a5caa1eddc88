// birnn-leak: is a two-way network over the whole sequence a language model?
#include <cmath>

#include "lab/every_sequence.h"
#include "lab/experiments.h"
#include "lab/findings.h"
#include "lab/topics.h"

namespace heddle::lab::birnn_leak {

namespace {

void run(Findings& f) {
  const TwoWayStudy two_way(f, model::Task::tag);
  const auto& [effect, total_before, total_after, other_effect, other_total, entropy, losses] =
      two_way;

  f.number("future_effect", effect,
           {"change of p(x_1) when only x_5 changes", "只改变 x_5 时 p(x_1) 的变化"});
  f.number("total_before", total_before,
           {"Σ over all 243 sequences of Π p(x_t | h_{t−1}), random weights",
            "随机权重：243 个序列的 Π p(x_t | h_{t−1}) 之和"});
  f.number("total_after", total_after, {"the same after training", "训练后：同上"});
  f.number("final_loss", losses.back(), {"loss per token after training", "训练后每词元损失"},
           "nats");
  f.number("entropy", entropy,
           {"entropy per token of these sequences, log 3", "这些序列的每词元熵 log 3"}, "nats");
  const report::LineChart chart =
      two_way.chart(f, {"two-way network over the whole sequence", "整句双向网络"},
                    {"entropy: no language model can be below", "熵：任何语言模型都不可能低于它"});
  f.figure(chart,
           {"All sequences are equally likely, so nothing can be predicted. The network reads "
            "the answer from the future.",
            "所有序列等可能，本来无从预测；网络却从未来读到了答案。"});

  f.control({"prefix by prefix: a future token changes p(x_1) by",
             "逐前缀的网络：未来的词元使 p(x_1) 改变"},
            other_effect, Relation::equal, 0);
  f.control({"prefix by prefix: distance of the sum from 1", "逐前缀的网络：总和与 1 的距离"},
            std::abs(other_total - 1), Relation::less, 1e-12);
  // Every p is near 1 once the answer is copied, so that each of the 243 products is.
  f.control({"the sum after training, of 243", "训练后的总和与 243 之比"}, total_after / kSequences,
            Relation::greater, 0.9);
  const bool leaks = f.check({"a future token changes p(x_1) by", "未来的词元使 p(x_1) 改变"},
                             effect, Relation::greater, 1e-3);
  const bool no_distribution =
      f.check({"distance of the sum from 1, random weights", "随机权重下总和与 1 的距离"},
              std::abs(total_before - 1), Relation::greater, 1e-3);
  const bool cheats = f.check({"loss after training, of the entropy", "训练后损失与熵之比"},
                              losses.back() / entropy, Relation::less, 0.9);
  f.verdict(leaks && no_distribution && cheats ? Verdict::holds : Verdict::refuted);
}

}  // namespace

Experiment experiment() {
  return {
      .name = "birnn-leak",
      .topic = topics::recurrent,
      .title = {"A two-way network is no language model", "双向 RNN 不是自回归语言模型"},
      .claim = {"With h_t of a two-way RNN over the whole sequence, Π p(x_t | h_{t−1}) is no "
                "autoregressive language model, because h_{t−1} has read the future.",
                "若 h_t 来自读完整个序列的双向 RNN，则 Π p(x_t | h_{t−1}) 不是自回归语言模型，"
                "因为 h_{t−1} 已读过未来。"},
      .source = {"Document 000, 1.2(a): both answers.", "文档 000 的 1.2(a)：两个解答。"},
      .method =
          {"Heddle's birnn over all 243 sequences of 5 tokens from an alphabet of 3: how p(x_1) "
           "depends on x_5, and the sum of the products over all sequences; then the same "
           "after training on all sequences alike.",
           "在 3 个符号、长度 5 的全部 243 个序列上运行 Heddle 的 birnn：看 p(x_1) 对 x_5 的依赖，"
           "以及所有序列的乘积之和；再在等概率的全部序列上训练后重测。"},
      .threshold =
          {"Effects above 1e-3 (rounding is near 1e-16); a loss below 90 % of the entropy, "
           "which no distribution over sequences can reach.",
           "效应大于 1e-3（舍入误差约 1e-16）；损失低于熵的 90 %，而任何真正的分布都做不到。"},
      .expected = Verdict::holds,
      .because =
          {"The backward states carry x_t into h_{t−1}. The products are then not conditional "
           "probabilities of one distribution and do not sum to 1; trained, the network copies "
           "the answer, and its “perplexity” means nothing.",
           "反向状态把 x_t 带进了 h_{t−1}。这些乘积不再是同一分布的条件概率，总和不为 1；"
           "训练后网络直接抄答案，其「困惑度」毫无意义。"},
      .faults = {{"other-network",
                  {"the network of the other experiment is measured", "测的是另一个实验的网络"}},
                 {"first-token-changes", {"x_1 changes instead of x_5", "改变的是 x_1 而不是 x_5"}},
                 {"sequence-left-out",
                  {"one of the 243 sequences is left out of the sum", "求和时漏掉一个序列"}},
                 {"untrained", {"the network is not trained", "网络没有训练"}}},
      .run = run,
  };
}

}  // namespace heddle::lab::birnn_leak
