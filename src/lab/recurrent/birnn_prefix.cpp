// birnn-prefix: the same network, run anew on every prefix.
#include <algorithm>
#include <cmath>

#include "lab/experiments.h"
#include "lab/findings.h"
#include "lab/recurrent/every_sequence.h"
#include "lab/topics.h"

namespace heddle::lab::birnn_prefix {

namespace {

void run(Findings& f) {
  const TwoWayStudy two_way(f, model::Task::language);
  const auto& [effect, total_before, total_after, other_effect, other_total, entropy, losses] =
      two_way;
  const double least = *std::min_element(losses.begin(), losses.end());

  f.number("future_effect", effect, tr("change of p(x_1) when only x_5 changes"));
  f.number("total_before_off", std::abs(total_before - 1),
           tr("|Σ over all 243 sequences of Π p − 1|, random weights"));
  f.number("total_after_off", std::abs(total_after - 1), tr("the same after training"));
  f.number("least_loss", least, tr("least loss per token in training"), mark("nats"));
  f.number("entropy", entropy, tr("entropy per token of these sequences, log 3"), mark("nats"));
  const report::LineChart chart =
      two_way.chart(tr("two-way network, prefix by prefix"), tr("entropy"));
  f.figure(chart, tr("Trained like the leaking one, it comes down to the entropy and no further."));

  f.control(tr("over the whole sequence: a future token changes p(x_1) by"), other_effect,
            Relation::greater, 1e-3);
  f.control(tr("over the whole sequence: distance of the sum from 1"), std::abs(other_total - 1),
            Relation::greater, 1e-3);
  f.control(tr("training comes down to the entropy up to"), least - entropy, Relation::less, 1e-3);
  const bool sums = f.check(tr("distance of the sum from 1"),
                            std::max(std::abs(total_before - 1), std::abs(total_after - 1)),
                            Relation::less, 1e-12);
  const bool blind = f.check(tr("a future token changes p(x_1) by"), effect, Relation::equal, 0);
  const bool honest =
      f.check(tr("least loss minus the entropy"), least - entropy, Relation::greater, -1e-12);
  f.verdict(sums && blind && honest ? Verdict::holds : Verdict::refuted);
}

}  // namespace

Experiment experiment() {
  return {
      .name = "birnn-prefix",
      .topic = topics::recurrent,
      .title = mark("A two-way network on each prefix is one"),
      .claim = mark("Run anew on x_1 … x_{t−1} for every t, a two-way RNN does define an "
                    "autoregressive language model."),
      .formula = "p(x) = prod_t p(x_t | h(x_1, …, x_{t-1}))",
      .source = mark("Document 000, 1.2(b): both answers."),
      .method =
          mark("Heddle's birnn as a language model, which reads every prefix for itself, over the "
               "same 243 sequences as birnn-leak, before and after the same training."),
      .threshold = mark("The sum must be 1 to 1e-12, p(x_1) must not change by a single bit, and "
                        "the loss must stay at or above the entropy."),
      .expected = Verdict::holds,
      .because = mark(
          "Every factor is a softmax over x_t that depends on x_1 … x_{t−1} alone; the chain rule "
          "does the rest. The price is a run of the network per prefix: T² instead of T steps."),
      .faults = {{"other-network", mark("the network of the other experiment is measured")},
                 {"first-token-changes", mark("x_1 changes instead of x_5")},
                 {"sequence-left-out", mark("one of the 243 sequences is left out of the sum")},
                 {"untrained", mark("the network is not trained")}},
      .run = run,
  };
}

}  // namespace heddle::lab::birnn_prefix
