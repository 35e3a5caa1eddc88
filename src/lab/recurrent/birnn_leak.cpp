// birnn-leak: is a two-way network over the whole sequence a language model?
#include <cmath>

#include "lab/experiments.h"
#include "lab/findings.h"
#include "lab/recurrent/every_sequence.h"
#include "lab/topics.h"

namespace heddle::lab::birnn_leak {

namespace {

void run(Findings& f) {
  const TwoWayStudy two_way(f, model::Task::tag);
  const auto& [effect, total_before, total_after, other_effect, other_total, entropy, losses] =
      two_way;

  f.number("future_effect", effect, tr("change of p(x_1) when only x_5 changes"));
  f.number("total_before", total_before,
           tr("Σ over all 243 sequences of Π p(x_t | h_{t−1}), random weights"));
  f.number("total_after", total_after, tr("the same after training"));
  f.number("final_loss", losses.back(), tr("loss per token after training"), mark("nats"));
  f.number("entropy", entropy, tr("entropy per token of these sequences, log 3"), mark("nats"));
  const report::LineChart chart = two_way.chart(tr("two-way network over the whole sequence"),
                                                tr("entropy: no language model can be below"));
  f.figure(chart, tr("All sequences are equally likely, so nothing can be predicted. The network "
                     "reads the answer from the future."));

  f.control(tr("prefix by prefix: a future token changes p(x_1) by"), other_effect, Relation::equal,
            0);
  f.control(tr("prefix by prefix: distance of the sum from 1"), std::abs(other_total - 1),
            Relation::less, 1e-12);
  // Every p is near 1 once the answer is copied, so that each of the 243 products is.
  f.control(tr("the sum after training, of 243"), total_after / kSequences, Relation::greater, 0.9);
  const bool leaks =
      f.check(tr("a future token changes p(x_1) by"), effect, Relation::greater, 1e-3);
  const bool no_distribution = f.check(tr("distance of the sum from 1, random weights"),
                                       std::abs(total_before - 1), Relation::greater, 1e-3);
  const bool cheats = f.check(tr("loss after training, of the entropy"), losses.back() / entropy,
                              Relation::less, 0.9);
  f.verdict(leaks && no_distribution && cheats ? Verdict::holds : Verdict::refuted);
}

}  // namespace

Experiment experiment() {
  return {
      .name = "birnn-leak",
      .topic = topics::recurrent,
      .title = mark("A two-way network is no language model"),
      .claim = mark("With h_t of a two-way RNN over the whole sequence, Π p(x_t | h_{t−1}) is no "
                    "autoregressive language model, because h_{t−1} has read the future."),
      .formula = "p(x) = prod_t p(x_t | h_{t-1}) quad h_{t-1} = f(x_1, …, x_n)",
      .source = mark("Document 000, 1.2(a): both answers."),
      .method = mark("Heddle's birnn over all 243 sequences of 5 tokens from an alphabet of 3: how "
                     "p(x_1) depends on x_5, and the sum of the products over all sequences; then "
                     "the same after training on all sequences alike."),
      .threshold = mark("Effects above 1e-3 (rounding is near 1e-16); a loss below 90 % of the "
                        "entropy, which no distribution over sequences can reach."),
      .expected = Verdict::holds,
      .because = mark("The backward states carry x_t into h_{t−1}. The products are then not "
                      "conditional probabilities of one distribution and do not sum to 1; trained, "
                      "the network copies the answer, and its “perplexity” means nothing."),
      .faults = {{"other-network", mark("the network of the other experiment is measured")},
                 {"first-token-changes", mark("x_1 changes instead of x_5")},
                 {"sequence-left-out", mark("one of the 243 sequences is left out of the sum")},
                 {"untrained", mark("the network is not trained")}},
      .run = run,
  };
}

}  // namespace heddle::lab::birnn_leak
