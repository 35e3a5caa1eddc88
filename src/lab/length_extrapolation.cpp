// length-extrapolation: trained on short sequences, tested on longer ones.
#include <algorithm>
#include <cmath>

#include "lab/experiments.h"
#include "lab/findings.h"
#include "lab/sequences.h"
#include "lab/tools.h"
#include "lab/topics.h"
#include "nn/position/sinusoidal.h"

namespace heddle::lab {

namespace {

constexpr std::int64_t kTrained = 32, kPeriod = 6, kRows = 64;
constexpr std::int32_t kVocabulary = 16;
constexpr std::int64_t kFactors[] = {1, 2, 4};

struct Encoding {
  const char* key;
  Text name;
  nn::Position position;
};

const std::vector<Encoding>& encodings() {
  static const std::vector<Encoding> all = {
      {"learned", {"learned", "可学习"}, nn::LearnedPosition{}},
      {"sinusoidal", {"sinusoidal", "正余弦"}, nn::SinusoidalPosition{}},
      {"t5", {"T5", "T5"}, nn::T5Position{}},
      {"alibi", {"ALiBi", "ALiBi"}, nn::AlibiPosition{}},
      {"rope", {"RoPE", "RoPE"}, nn::RopePosition{}}};
  return all;
}

std::unique_ptr<model::Model> trained(const nn::Position& position, std::uint64_t seed) {
  model::ModelConfig c;
  c.layers = 2;
  c.width = 64;
  c.ffn_width = 128;
  c.attention.heads = 4;
  c.attention.position = position;
  c.sizes.vocabulary = kVocabulary;
  c.sizes.context = 4 * kTrained;  // room for the test; training sees the first quarter
  auto model = model::build_model(c, {.seed = seed});
  train::TrainConfig rule;
  rule.steps = 400;
  rule.batch = 32;
  rule.learning_rate = 5e-3;
  rule.warmup = 50;
  rule.seed = seed;
  train_on(*model, repeating(kTrained, kPeriod, kVocabulary), rule);
  return model;
}

// The document's reason: rotations are periodic, so far distances look like trained ones. The
// angles of distance d, as cosines and sines, are a sinusoidal code; how near do those of the
// distances from 32 to 127 come to those of 0 to 31? In shares of √2 per pair, which is how far
// unrelated angles are.
double nearest_trained_angles() {
  constexpr std::int64_t width = 16;  // of a head
  const auto codes = rows_of(nn::sinusoidal(0, 4 * kTrained, width, DType::f64));
  double sum = 0;
  for (std::size_t far = kTrained; far < codes.size(); ++far) {
    double least = INFINITY;
    for (std::size_t near = 0; near < kTrained; ++near) {
      double squares = 0;
      for (std::size_t i = 0; i < codes[far].size(); ++i)
        squares += (codes[far][i] - codes[near][i]) * (codes[far][i] - codes[near][i]);
      least = std::min(least, squares);
    }
    sum += std::sqrt(least / width);
  }
  return sum / static_cast<double>(codes.size() - kTrained);
}

void run(Findings& f) {
  report::LineChart chart;
  chart.x_label = f.say({"length of the test sequences", "测试序列长度"});
  chart.y_label = f.say({"accuracy in their last quarter", "最后四分之一的准确率"});
  chart.log_x = true;
  double rope_at_home = 0, rope_abroad = 0, alibi_abroad = 0, least_at_home = 1;
  for (const Encoding& e : encodings()) {
    const auto model = trained(e.position, 1);
    report::Series series{f.say(e.name), {}};
    for (const std::int64_t factor : kFactors) {
      const std::int64_t length = factor * kTrained;
      const model::Batch test = repeating(length, kPeriod, kVocabulary)(kRows, {99, 0, 1});
      const double share = accuracy(*model, test, 3 * length / 4);
      series.points.push_back({static_cast<double>(length), share});
      const std::string times = std::to_string(factor);
      f.number(std::string(e.key) + "_" + times + "x", share,
               {e.name.en + ": accuracy at " + times + " × the trained length",
                e.name.zh + "：训练长度 " + times + " 倍时的准确率"});
      if (factor == 1) least_at_home = std::min(least_at_home, share);
      if (e.name.en == "RoPE") (factor == 1 ? rope_at_home : rope_abroad) = share;
      if (e.name.en == "ALiBi" && factor == 4) alibi_abroad = share;
    }
    chart.series.push_back(series);
  }
  const double angles = nearest_trained_angles();
  f.number("unseen_angles", angles,
           {"RoPE's angles of untrained distances: from the nearest trained ones (unrelated: 1)",
            "未训练距离的 RoPE 角度与最近的已训练角度之差（毫不相干为 1）"});
  f.figure(chart, {"Trained at 32 tokens, tested up to 128; guessing gives 1/16.",
                   "在 32 个词元上训练，测试到 128 个；瞎猜为 1/16。"});
  const bool learned = f.check({"the worst at the trained length", "训练长度上最差的准确率"},
                               least_at_home, Relation::greater, 0.9);
  const bool possible = f.check({"ALiBi at 4 times the length", "ALiBi 在 4 倍长度时"},
                                alibi_abroad, Relation::greater, 0.9);
  const bool keeps = f.check({"RoPE at 4 times the length", "RoPE 在 4 倍长度时"}, rope_abroad,
                             Relation::greater, 0.9 * rope_at_home);
  f.verdict(keeps || !learned || !possible ? Verdict::holds : Verdict::refuted);
}

}  // namespace

Experiment length_extrapolation() {
  return {
      .name = "length-extrapolation",
      .topic = topics::positions,
      .title = {"Beyond the trained length", "超出训练长度"},
      .claim = {"Thanks to RoPE a model can go beyond the context it was trained on and keep its "
                "accuracy: "
                "rotations are periodic, so unseen distances fall into the trained range.",
                "借助 "
                "RoPE，模型可以外推到训练长度之外并保持精度：旋转矩阵有周期性，没见过的相对位置会落"
                "在训练过的范围内。"},
      .source = {"Document 004, RoPE, point 1.", "文档 004「RoPE」第 1 点。"},
      .method =
          {"A task made of random numbers: 6 random tokens that repeat; the next token is the one "
           "5 "
           "places back. Two-layer decoders (width 64) with each position encoding learn it on 32 "
           "tokens, "
           "400 steps, and are tested on 32, 64 and 128, in the last quarter. And how far the "
           "angles of untrained distances are from trained ones.",
           "用随机数构造的任务：6 个随机词元不断重复，下一个词元就是往回数 5 "
           "位的那个。用每种位置编码的两层解码器（宽 64）"
           "在长 32 的序列上训练 400 步，再在 32、64、128 "
           "长度的最后四分之一上测试。另外测量未训练距离的旋转角度离训练过的有多远。"},
      .threshold =
          {"All must have learnt it at 32 (0.9), and one must carry it to 128 (ALiBi, 0.9), so "
           "that "
           "the task is fair. RoPE keeps its accuracy if 0.9 of it is left at 128.",
           "所有编码在长 32 时都须学会（0.9），且至少有一种能带到 128（ALiBi，0.9），任务才公平。"
           "RoPE 在 128 时若剩下 0.9 倍的准确率，才算保持。"},
      .expected = Verdict::refuted,
      .because =
          {"The task needs a distance of 5 only, yet on longer sequences RoPE's heads meet "
           "distances "
           "that were never trained, and their scores are whatever the weights happen to give. "
           "Fast pairs do come round, but slow ones do not within any usual length, so the "
           "angles together are new. A bias that only ever falls with the distance (ALiBi) "
           "has no such surprise.",
           "任务只需要回看 5 位，但在更长的序列上，RoPE "
           "的头会遇到从未训练过的距离，分数取决于权重碰巧给出的值。"
           "转得快的维度确实会转回来，转得慢的在常见长度内却不会，所以合在一起的角度是全新的。"
           "而随距离单调下降的偏置（ALiBi）不会有这种意外。"},
      .slow = true,
      .run = run,
  };
}

}  // namespace heddle::lab
