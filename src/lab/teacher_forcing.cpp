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
  train::TrainConfig rule;
  rule.steps = kSteps;
  rule.learning_rate = f.fault("hardly-trained") ? 1e-6 : 3e-3;
  rule.batch = kRows;
  rule.schedule = train::ScheduleKind::constant;
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
  f.control({"own outputs: forward work of a step, times", "使用自己的输出：每步前向运算量的倍数"},
            work, Relation::greater, 1.8);
  const Run forced = train(f, true), own = train(f, false);
  f.number("forced_steps", forced.steps,
           {"teacher forcing: steps until the loss stays below 0.1",
            "教师强制：损失稳定低于 0.1 所需步数"});
  f.number("own_steps", own.steps,
           {"own outputs: the same (400: not reached)", "使用自己的输出：同上（400 表示未达到）"});
  f.number("forced_loss", final_loss(forced.losses),
           {"teacher forcing: loss after 400 steps", "教师强制：400 步之后的损失"});
  f.number("own_loss", final_loss(own.losses),
           {"own outputs: loss after 400 steps", "使用自己的输出：400 步之后的损失"});
  f.number("forced_first", forced.by_place.front(),
           {"teacher forcing: first digit right when it writes alone",
            "教师强制训练后，独自生成时第一位的正确率"});
  f.number("forced_last", forced.by_place.back(),
           {"teacher forcing: last digit right", "教师强制训练后：最后一位的正确率"});
  f.number("own_first", own.by_place.front(),
           {"own outputs: first digit right", "使用自己的输出：第一位的正确率"});
  f.number("own_last", own.by_place.back(),
           {"own outputs: last digit right", "使用自己的输出：最后一位的正确率"});
  f.number("extra_work", work,
           {"own outputs: forward work of a step, times", "使用自己的输出：每步前向运算量的倍数"});

  report::LineChart chart;
  chart.x_label = f.say({"step", "步数"});
  chart.y_label = f.say({"loss", "损失"});
  chart.series = {{f.say({"teacher forcing", "教师强制"}), smoothed(forced.losses, 8)},
                  {f.say({"own outputs", "自己的输出"}), smoothed(own.losses, 8)}};
  f.figure(chart, {"The same model on the same sums, 64 of them in a step.",
                   "同一模型、同样的累加任务，每步 64 条。"});
  f.control({"teacher forcing: loss after 400 steps", "教师强制：400 步之后的损失"},
            final_loss(forced.losses), Relation::less, kLearnt);
  f.control({"own outputs: the same, not below", "使用自己的输出：同上，不低于"},
            final_loss(own.losses), Relation::greater, kLearnt);
  f.control({"writing alone: share of tokens read that were its own",
             "独自生成时，读入的词元中自己写出的比例"},
            std::min(forced.read_own, own.read_own), Relation::greater, 0.98);
  f.control({"first digit right, the worse of both", "第一位的正确率，两者中较差的"},
            std::min(forced.by_place.front(), own.by_place.front()), Relation::greater, 0.9);
  const bool learns = f.check({"teacher forcing: steps", "教师强制：步数"}, forced.steps,
                              Relation::less, 0.9 * kSteps);
  const bool faster = f.check(
      {"own outputs: steps, over those of teacher forcing", "自己的输出与教师强制的步数之比"},
      own.steps / forced.steps, Relation::greater, 1.1);
  const bool spreads = f.check({"own outputs: accuracy lost from first to last digit",
                                "自己的输出：从第一位到最后一位损失的正确率"},
                               own.by_place.front() - own.by_place.back(), Relation::greater, 0.2);
  const bool none_pile_up =
      f.check({"teacher forcing: the same", "教师强制：同一差值"},
              forced.by_place.front() - forced.by_place.back(), Relation::less, 0.05);
  f.verdict(learns && faster && spreads && none_pile_up ? Verdict::holds : Verdict::refuted);
}

}  // namespace

Experiment experiment() {
  return {
      .name = "teacher-forcing",
      .topic = topics::training,
      .title = {"Learning with a teacher", "教师强制"},
      .claim = {"A decoder that is given the true previous token in training learns faster than "
                "one that "
                "reads its own outputs, and errors do not pile up.",
                "训练时把真实的上一个词元喂给解码器，比让它读自己的输出学得更快，并避免误差累积。"},
      .source = {"Document 004, teacher forcing.", "文档 004「Teacher Forcing」。"},
      .method =
          {"A task made of random numbers in which errors must spread: from 8 digits write the "
           "running sum "
           "modulo 5. An encoder-decoder (1 layer each, width 64) for 400 steps, once with the "
           "true sums as the decoder's inputs and once with its own, made by greedy "
           "generation before each step. Then both write alone.",
           "用随机数构造的、误差必然传播的任务：读 8 个数字，写出模 5 的累加和。编码器-解码器（各 "
           "1 层，宽 64）训练 400 步，"
           "一次以真实的和作解码器输入，一次在每步之前先贪心生成、用自己的输出作输入。最后让两者都"
           "独自生成。"},
      .threshold = {"Learnt: the loss stays below 0.1 (guessing: 1.6) in less than 360 of 400 "
                    "steps; own outputs "
                    "take at least a tenth more steps; their accuracy falls by 0.2 from the "
                    "first digit to the last, and by less than 0.05 after teacher forcing.",
                    "学会：400 步中不到 360 步损失就稳定低于 0.1（瞎猜为 "
                    "1.6）；用自己的输出至少多花一成步数，"
                    "且正确率从第一位到最后一位下降 0.2 以上，教师强制训练的则不到 0.05。"},
      .expected = Verdict::holds,
      .because =
          {"With the true sum at hand each digit is one small addition, and all places learn at "
           "once. "
           "With its own, mostly wrong, sums a place has nothing to learn from until the places "
           "before it are right: the skill spreads from left to right, if at all. A step costs "
           "more besides, since tokens must be written one by one. (When the model writes "
           "alone in the end, errors pile up for whoever makes some; the teacher is gone.)",
           "手里有正确的和，每一位都只是一次小加法，所有位置同时学。若用自己大多错误的和，在前面的"
           "位置学对之前，"
           "后面的位置无从学起：能力只能从左向右慢慢传。每一步还更费，因为词元要逐个生成。"
           "（最后独自生成时，教师已不在，出了错仍会累积。）"},
      .faults = {{"teacher-in-both",
                  {"both models are given the true tokens", "两个模型训练时都读真实词元"}},
                 {"teacher-in-the-test",
                  {"in the test the true tokens are read", "测试时读的是真实词元"}},
                 {"first-digit-only",
                  {"the first digit is counted at every place", "每一位统计的都是第一位"}},
                 {"hardly-trained", {"the learning rate is a millionth", "学习率只有百万分之一"}},
                 {"writing-not-counted",
                  {"the work of writing is not counted", "没有计入逐个生成的运算量"}}},
      .slow = true,
      .run = run,
  };
}

}  // namespace heddle::lab::teacher_forcing
