// teacher-forcing: learning from the true previous token, or from one's own?
#include <algorithm>
#include <cmath>

#include "heddle/cost.h"
#include "heddle/tape.h"
#include "lab/experiments.h"
#include "lab/findings.h"
#include "lab/sequences.h"
#include "lab/tools.h"
#include "lab/topics.h"

namespace heddle::lab::teacher_forcing {

namespace {

constexpr std::int64_t kLength = 8, kSteps = 400, kRows = 64;
constexpr std::int32_t kDigits = 5, kBegin = kDigits;  // tokens 0 to 4, and the one to begin with
constexpr double kLearnt = 0.1;                        // of a loss that begins at ln 5 = 1.6

std::unique_ptr<model::Model> translator() {
  model::ModelConfig c;
  c.kind = model::Kind::encoder_decoder;
  c.task = model::Task::translate;
  c.layers = 1;
  c.width = 64;
  c.ffn_width = 128;
  c.attention.heads = 4;
  c.attention.position = nn::LearnedPosition{};
  c.sizes.vocabulary = kDigits + 1;
  c.sizes.context = kLength;
  return model::build_model(c, {.seed = 1});
}

// Digits and their running sum: y_t = (y_{t-1} + x_t) mod 5. The decoder reads the true y_{t-1}.
model::Batch running_sums(std::int64_t rows, const RandomKey& key) {
  Ids source, read, sums;
  for (std::int64_t r = 0; r < rows; ++r) {
    std::int32_t sum = 0;
    for (std::int64_t t = 0; t < kLength; ++t) {
      source.push_back(random_id(key, r * kLength + t, kDigits));
      read.push_back(t == 0 ? kBegin : sum);
      sum = (sum + source.back()) % kDigits;
      sums.push_back(sum);
    }
  }
  model::Batch batch = batch_of(source, sums, rows);
  batch.target_tokens = ids({rows, kLength}, read);
  return batch;
}

// The same with the model's own outputs in place of the true tokens.
model::Batch with_own_outputs(const model::Model& model, model::Batch batch) {
  const NoGrad no_grad;
  const std::int64_t rows = batch.tokens.size(0);
  const auto state = model.begin(batch, rows, kLength, {});
  Ids last(static_cast<std::size_t>(rows), kBegin), read(static_cast<std::size_t>(rows * kLength));
  for (std::int64_t t = 0; t < kLength; ++t) {
    for (std::int64_t r = 0; r < rows; ++r)
      read[static_cast<std::size_t>(r * kLength + t)] = last[static_cast<std::size_t>(r)];
    const std::vector<float> scores =
        model.next(*state, ids({rows, 1}, last), {}).to_vector<float>();
    for (std::int64_t r = 0; r < rows; ++r) {
      const auto row = scores.begin() + r * (kDigits + 1);
      last[static_cast<std::size_t>(r)] =
          static_cast<std::int32_t>(std::max_element(row, row + kDigits + 1) - row);
    }
  }
  batch.target_tokens = ids({rows, kLength}, read);
  return batch;
}

struct Run {
  std::vector<double> losses;
  double steps = kSteps;              // until the loss stayed below kLearnt
  std::vector<double> by_place = {};  // accuracy when the model writes by itself
  double read_own = 0;                // share of the tokens it read then that it had written itself
};

// Which share of the tokens that the model reads are its own outputs one place earlier. (The cache
// sums in another order than a whole pass, so that a tie may end otherwise.)
double share_of_own(const model::Model& model, const model::Batch& batch) {
  const Ids read = batch.target_tokens.to_vector<std::int32_t>();
  model::Batch written = batch;
  Ids targets(read.begin() + 1, read.end());
  targets.push_back(model::kIgnore);
  for (std::size_t i = kLength - 1; i < targets.size(); i += kLength) targets[i] = model::kIgnore;
  written.targets = ids(batch.targets.shape(), targets);
  return accuracy(model, written);
}

Run train(const Findings& f, bool forced) {
  if (f.fault("teacher-in-both")) forced = true;
  const auto model = translator();
  const BatchMaker make = [&](std::int64_t rows, const RandomKey& key) {
    const model::Batch batch = running_sums(rows, key);
    return forced ? batch : with_own_outputs(*model, batch);
  };
  recipe::TrainConfig rule;
  rule.steps = kSteps;
  rule.learning_rate = f.fault("hardly-trained") ? 1e-6 : 3e-3;
  rule.batch = kRows;
  rule.schedule = recipe::ScheduleKind::constant;
  rule.warmup = 50;
  Run run{train_on(*model, make, rule)};
  while (run.steps > 0 && run.losses[static_cast<std::size_t>(run.steps) - 1] < kLearnt)
    --run.steps;
  const model::Batch sums = running_sums(256, {99, 0, 1});
  const model::Batch test = f.fault("teacher-in-the-test") ? sums : with_own_outputs(*model, sums);
  run.read_own = share_of_own(*model, test);
  for (std::int64_t t = 0; t < kLength; ++t) {
    const std::int64_t place = f.fault("first-digit-only") ? 0 : t;
    model::Batch one = test;
    Ids targets = test.targets.to_vector<std::int32_t>();
    for (std::size_t i = 0; i < targets.size(); ++i)
      if (static_cast<std::int64_t>(i) % kLength != place) targets[i] = model::kIgnore;
    one.targets = ids(test.targets.shape(), targets);
    run.by_place.push_back(accuracy(*model, one));
  }
  return run;
}

// A batch with the model's own outputs needs as many passes through the decoder as it has tokens.
double extra_work(const Findings& f) {
  const auto model = translator();
  const auto flops = [](const auto& call) {
    const CostMeter meter;
    call();
    return meter.cost().flops;
  };
  const model::Batch batch = running_sums(kRows, {1, 0, 0});
  const double pass = flops([&] { model->logits(batch, {}); });
  const double writing = flops([&] { with_own_outputs(*model, batch); });
  return (pass + (f.fault("writing-not-counted") ? 0 : writing)) / pass;
}

void run(Findings& f) {
  const double work = extra_work(f);
  // Beside the pass of the training step every token is written once: the same arithmetic again.
  f.control(tr("own outputs: forward work of a step, times"), work, Relation::greater, 1.8);
  const Run forced = train(f, true), own = train(f, false);
  f.number("forced_steps", forced.steps,
           tr("teacher forcing: steps until the loss stays below 0.1"));
  f.number("own_steps", own.steps, tr("own outputs: the same (400: not reached)"));
  f.number("forced_loss", final_loss(forced.losses), tr("teacher forcing: loss after 400 steps"));
  f.number("own_loss", final_loss(own.losses), tr("own outputs: loss after 400 steps"));
  f.number("forced_first", forced.by_place.front(),
           tr("teacher forcing: first digit right when it writes alone"));
  f.number("forced_last", forced.by_place.back(), tr("teacher forcing: last digit right"));
  f.number("own_first", own.by_place.front(), tr("own outputs: first digit right"));
  f.number("own_last", own.by_place.back(), tr("own outputs: last digit right"));
  f.number("extra_work", work, tr("own outputs: forward work of a step, times"));

  report::LineChart chart;
  chart.x_label = tr("step");
  chart.y_label = tr("loss");
  chart.series = {{tr("teacher forcing"), smoothed(forced.losses, 8)},
                  {tr("own outputs"), smoothed(own.losses, 8)}};
  f.figure(chart, tr("The same model on the same sums, 64 of them in a step."));
  f.control(tr("teacher forcing: loss after 400 steps"), final_loss(forced.losses), Relation::less,
            kLearnt);
  f.control(tr("own outputs: the same, not below"), final_loss(own.losses), Relation::greater,
            kLearnt);
  f.control(tr("writing alone: share of tokens read that were its own"),
            std::min(forced.read_own, own.read_own), Relation::greater, 0.98);
  f.control(tr("first digit right, the worse of both"),
            std::min(forced.by_place.front(), own.by_place.front()), Relation::greater, 0.9);
  const bool learns =
      f.check(tr("teacher forcing: steps"), forced.steps, Relation::less, 0.9 * kSteps);
  const bool faster = f.check(tr("own outputs: steps, over those of teacher forcing"),
                              own.steps / forced.steps, Relation::greater, 1.1);
  const bool spreads = f.check(tr("own outputs: accuracy lost from first to last digit"),
                               own.by_place.front() - own.by_place.back(), Relation::greater, 0.2);
  const bool none_pile_up =
      f.check(tr("teacher forcing: the same"), forced.by_place.front() - forced.by_place.back(),
              Relation::less, 0.05);
  f.verdict(learns && faster && spreads && none_pile_up ? Verdict::holds : Verdict::refuted);
}

}  // namespace

Experiment experiment() {
  return {
      .name = "teacher-forcing",
      .topic = topics::training,
      .title = mark("Learning with a teacher"),
      .claim = mark("A decoder that is given the true previous token in training learns faster "
                    "than one that reads its own outputs, and errors do not pile up."),
      .formula = "p(y_t | y_1, …, y_{t-1})",
      .source = mark("Document 004, teacher forcing."),
      .method = mark("A task made of random numbers in which errors must spread: from 8 digits "
                     "write the running sum modulo 5. An encoder-decoder (1 layer each, width 64) "
                     "for 400 steps, once with the true sums as the decoder's inputs and once with "
                     "its own, made by greedy generation before each step. Then both write alone."),
      .threshold =
          mark("Learnt: the loss stays below 0.1 (guessing: 1.6) in less than 360 of 400 steps; "
               "own outputs take at least a tenth more steps; their accuracy falls by 0.2 from the "
               "first digit to the last, and by less than 0.05 after teacher forcing."),
      .expected = Verdict::holds,
      .because = mark(
          "With the true sum at hand each digit is one small addition, and all places learn at "
          "once. With its own, mostly wrong, sums a place has nothing to learn from until the "
          "places before it are right: the skill spreads from left to right, if at all. A step "
          "costs more besides, since tokens must be written one by one. (When the model writes "
          "alone in the end, errors pile up for whoever makes some; the teacher is gone.)"),
      .faults = {{"teacher-in-both", mark("both models are given the true tokens")},
                 {"teacher-in-the-test", mark("in the test the true tokens are read")},
                 {"first-digit-only", mark("the first digit is counted at every place")},
                 {"hardly-trained", mark("the learning rate is a millionth")},
                 {"writing-not-counted", mark("the work of writing is not counted")}},
      .slow = true,
      .run = run,
  };
}

}  // namespace heddle::lab::teacher_forcing
