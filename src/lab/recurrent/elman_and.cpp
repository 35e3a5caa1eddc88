// elman-and: a network of two units that remembers whether it has seen both inputs.
#include <cmath>

#include "heddle/tape.h"
#include "lab/experiments.h"
#include "lab/findings.h"
#include "lab/sequences.h"
#include "lab/tools.h"
#include "lab/topics.h"
#include "nn/rnn/elman.h"
#include "ops/binary/binary.h"
#include "ops/linear/linear.h"
#include "ops/linear_cross_entropy/linear_cross_entropy.h"
#include "ops/unary/unary.h"
#include "ops/view/view.h"

namespace heddle::lab::elman_and {

namespace {

constexpr std::int64_t kLength = 8, kSequences = 65536;  // 4⁸: x_t is one of 00, 01, 10, 11
constexpr std::int64_t kUnits = 2, kBatch = 128, kSteps = 500, kSeeds = 4;
constexpr double kRate = 0.05;

// With W_yh = [1 1] and b_y = 0 the network says “either” instead of “both”. Wrong are then all
// prefixes with 1s in one input only: Σ over t of 2·(2ᵗ − 1)·4^(8−t).
constexpr double kWrongOfEither = 86870;

struct Task {
  Tensor x;       // [S, T, 2]
  Ids seen_both;  // S · T: 1 from the step on at which both inputs have been 1
};

// `symbol(s, t)` has x_{t,0} in bit 0 and x_{t,1} in bit 1.
template <class F>
Task task_of(std::int64_t sequences, bool either, const F& symbol) {
  std::vector<double> x;
  Task task;
  for (std::int64_t s = 0; s < sequences; ++s) {
    unsigned seen = 0;
    for (std::int64_t t = 0; t < kLength; ++t) {
      const unsigned now = symbol(s, t);
      seen |= now;
      x.insert(x.end(), {static_cast<double>(now & 1U), static_cast<double>(now >> 1U)});
      task.seen_both.push_back((either ? seen != 0 : seen == 3) ? 1 : 0);
    }
  }
  task.x = Tensor::from<double>({sequences, kLength, 2}, std::span<const double>(x));
  return task;
}

// Every sequence of length 8; the shorter ones are their beginnings.
Task all_sequences(const Findings& f) {
  const std::int64_t bits = f.fault("overlapping-symbols") ? 1 : 2;
  return task_of(kSequences, f.fault("either-input"), [bits](std::int64_t s, std::int64_t t) {
    return static_cast<unsigned>(s >> (bits * t)) & 3U;
  });
}

// For training: each input is 1 in one step of six, so that there is something to remember.
Task random_sequences(std::int64_t step) {
  return task_of(kBatch, false, [step](std::int64_t s, std::int64_t t) {
    const RandomKey key{9, static_cast<std::uint32_t>(step), 0};
    const std::int64_t at = 2 * (s * kLength + t);
    return (random_id(key, at, 6) == 0 ? 1U : 0U) + (random_id(key, at + 1, 6) == 0 ? 2U : 0U);
  });
}

// slide(a) = min(1, max(0, a))
Tensor slide(const Tensor& a) { return ops::sub(ops::relu(a), ops::relu(ops::add(a, -1))); }

// The document's parameters: W_hh = W_hx = I, b_h = 0, W_yh = [1 1]; its b_y is −1. How many
// outputs are not exactly what they should be.
std::int64_t wrong_by_hand(const Findings& f, const Task& task, double b_y) {
  const bool itself = f.fault("answers-as-outputs");
  const Tensor identity = matrix({{1, 0}, {0, 1}}), ones = matrix({{1, 1}});
  Tensor h = Tensor::zeros({kSequences, 2}, DType::f64);
  std::int64_t wrong = 0;
  for (std::int64_t t = 0; t < kLength; ++t) {
    const Tensor x = ops::reshape(ops::slice(task.x, 1, t, t + 1), {kSequences, 2});
    h = slide(ops::add(ops::linear(h, identity), ops::linear(x, identity)));
    const std::vector<double> y = slide(ops::add(ops::linear(h, ones), b_y)).to_vector<double>();
    for (std::int64_t s = 0; s < kSequences; ++s) {
      const double wanted = task.seen_both[static_cast<std::size_t>(s * kLength + t)];
      wrong += (itself ? wanted : y[static_cast<std::size_t>(s)]) != wanted;
    }
  }
  return wrong;
}

// Heddle's Elman layer (tanh) with two units and a classifier over its state.
struct Network {
  nn::Parameters store;
  nn::ElmanLayer layer;
  Tensor weight, bias;  // [2, 2], [2]

  explicit Network(std::uint64_t seed)
      : store({.seed = seed, .dtype = DType::f64}),
        layer({.inputs = 2, .width = kUnits}, store.root()),
        weight(store.root().weight("out", {2, kUnits})),
        bias(store.root().zeros("out_bias", {2})) {}

  Tensor state(const Tensor& x) const { return layer.forward(x).y; }  // [S, T, 2]
};

std::vector<double> train(Network& network) {
  return train_steps(network.store, kSteps, kRate, [&](std::int64_t step) {
    const Task task = random_sequences(step);
    return ops::linear_cross_entropy(network.state(task.x), network.weight, network.bias,
                                     ids({kBatch, kLength}, task.seen_both));
  });
}

std::int64_t wrong_when_learnt(const Findings& f, const Network& network, const Task& task) {
  const std::size_t other = f.fault("one-score-twice") ? 1 : 0;
  const NoGrad no_grad;
  const std::vector<double> scores =
      ops::linear(network.state(task.x), network.weight, network.bias).to_vector<double>();
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < task.seen_both.size(); ++i)
    wrong += (scores[2 * i + 1] > scores[2 * i + other] ? 1 : 0) != task.seen_both[i];
  return wrong;
}

// Known beforehand: the counts tell a wrong network from a right one.
void control_counts(Findings& f, const Task& all) {
  f.control(tr("wrong outputs with b_y = 0: either input instead of both"),
            static_cast<double>(wrong_by_hand(f, all, 0)), Relation::equal, kWrongOfEither);
  f.control(tr("wrong outputs before training, share"),
            static_cast<double>(wrong_when_learnt(f, Network(1), all)) / (kSequences * kLength),
            Relation::greater, 0.05);
}

void run(Findings& f) {
  const Task all = all_sequences(f);
  control_counts(f, all);
  const std::int64_t outputs = kSequences * kLength, by_hand = wrong_by_hand(f, all, -1);
  report::LineChart chart;
  chart.x_label = tr("step");
  chart.y_label = tr("loss");
  chart.log_y = true;
  std::int64_t fewest = outputs, learnt = 0;
  for (std::int64_t seed = 1; seed <= kSeeds; ++seed) {
    Network network(static_cast<std::uint64_t>(seed));
    const std::vector<double> losses =
        f.fault("untrained") ? std::vector<double>(kSteps, 1) : train(network);
    const std::int64_t wrong = wrong_when_learnt(f, network, all);
    fewest = std::min(fewest, wrong);
    learnt += wrong == 0 ? 1 : 0;
    chart.series.push_back({tr("beginning {}", seed), smoothed(losses, 10)});
  }
  f.number("outputs", static_cast<double>(outputs),
           tr("outputs of all 65536 sequences of length 8"));
  f.number("wrong_by_hand", static_cast<double>(by_hand),
           tr("wrong ones, parameters of the document"));
  f.number("wrong_learnt", static_cast<double>(fewest),
           tr("wrong ones, learnt by gradient descent (best of 4)"));
  f.number("learnt_exactly", static_cast<double>(learnt),
           tr("of 4 random beginnings, learnt without any error"));
  f.figure(
      chart,
      tr("Two tanh units learn it from random sequences; some beginnings end in a worse valley."));

  const bool exact = f.check(tr("wrong outputs, parameters of the document"),
                             static_cast<double>(by_hand), Relation::equal, 0);
  const bool learns =
      f.check(tr("wrong outputs, learnt"), static_cast<double>(fewest), Relation::equal, 0);
  f.verdict(!exact ? Verdict::refuted : learns ? Verdict::holds : Verdict::conditional);
}

}  // namespace

Experiment experiment() {
  return {
      .name = "elman-and",
      .topic = topics::recurrent,
      .title = mark("Two units that remember both inputs"),
      .claim = mark("An Elman network with two units outputs 1 exactly from the step on at which "
                    "both inputs have been 1; and gradient descent finds such a network."),
      .formula =
          "h_t = slide(W_{hh} h_{t-1} + W_{hx} x_t + b_h) quad y_t = slide(W_{yh} h_t + b_y)",
      .source = mark("Document 000, 1.1: W_hh = W_hx = I, b_h = 0, W_yh = [1 1], b_y = −1, with "
                     "slide(a) = min(1, max(0, a))."),
      .method =
          mark("All 65536 sequences of length 8 (and with them all shorter ones) through the "
               "document's parameters; then a layer of Heddle's with two tanh units, trained for "
               "500 steps on random sequences from 4 beginnings, through the same sequences."),
      .threshold = mark("No wrong output at all: the task is a function, and both networks either "
                        "compute it or not."),
      .expected = Verdict::holds,
      .because =
          mark("Each unit is a memory of one input: slide(h + x) is 1 from the first 1 on. Their "
               "sum minus 1 is the AND. Trained tanh units become the same two switches."),
      .faults = {{"either-input", mark("1 is expected from either input on instead of both")},
                 {"overlapping-symbols",
                  mark("symbols overlap by a bit, so not all sequences come")},
                 {"answers-as-outputs", mark("the wanted outputs are compared with themselves")},
                 {"one-score-twice", mark("the score of “both” is compared with itself")},
                 {"untrained", mark("the network is not trained")}},
      .run = run,
  };
}

}  // namespace heddle::lab::elman_and
