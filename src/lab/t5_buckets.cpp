// t5-buckets: which distances share a learned number?
#include <cmath>
#include <map>

#include "heddle/tape.h"
#include "lab/experiments.h"
#include "lab/findings.h"
#include "lab/tools.h"
#include "lab/topics.h"
#include "nn/position/t5.h"
#include "ops/reduce/reduce.h"

namespace heddle::lab::t5_buckets {

namespace {

constexpr nn::T5Options kCausal = {.buckets = 32, .max_distance = 128, .bidirectional = false};
constexpr nn::T5Options kBothWays = {.buckets = 32, .max_distance = 128, .bidirectional = true};
constexpr std::int64_t kFar = 2000;

// Distances of earlier keys by bucket; a key d places back has the distance -d.
std::map<std::int64_t, std::int64_t> sizes(const Findings& f, const nn::T5Options& options) {
  const std::int64_t sign = f.fault("later-keys") ? 1 : -1;
  std::map<std::int64_t, std::int64_t> count;
  for (std::int64_t d = 0; d < kFar; ++d) ++count[nn::t5_bucket(sign * d, options)];
  return count;
}

// Buckets whose number gets a gradient when sequences of `tokens` are read.
double trained_buckets(const Findings& f, std::int64_t tokens) {
  const std::int64_t query = f.fault("first-query") ? 0 : tokens - 1;
  Tensor table = normal({kCausal.buckets, 1}, 30);
  table.set_requires_grad(true);
  Tape tape;
  // Only distances that a causal query sees: all keys of the last query.
  tape.backward(ops::sum_all(nn::t5_bias(table, kCausal, {1, tokens, query})));
  double count = 0;
  for (const double g : table.grad().to_vector<double>()) count += g != 0;
  return count;
}

void draw(Findings& f) {
  report::LineChart chart;
  chart.x_label = f.say({"distance", "距离"});
  chart.y_label = f.say({"bucket", "桶"});
  chart.log_x = true;
  chart.series = {{f.say({"causal", "因果"}), {}},
                  {f.say({"both ways, earlier keys", "双向，左侧的键"}), {}}};
  for (std::int64_t d = 1; d <= 300; ++d) {
    const auto x = static_cast<double>(d);
    chart.series[0].points.push_back({x, static_cast<double>(nn::t5_bucket(-d, kCausal))});
    chart.series[1].points.push_back({x, static_cast<double>(nn::t5_bucket(-d, kBothWays))});
  }
  f.figure(chart, {"Near distances have a bucket each, far ones share: on a logarithmic scale the "
                   "buckets become equally wide.",
                   "近处每个距离一个桶，远处多个距离共用：在对数坐标上，桶的宽度相等。"});
}

void run(Findings& f) {
  const nn::T5Options& options = f.fault("both-ways") ? kBothWays : kCausal;
  std::int64_t exact = 0, last_begins = 0, steps_back = 0;
  for (std::int64_t d = 1; d < kFar; ++d) {
    const std::int64_t before = nn::t5_bucket(-(d - 1), options),
                       bucket = nn::t5_bucket(-d, options);
    steps_back += bucket < before;
    if (bucket == kCausal.buckets - 1 && before != bucket) last_begins = d;
  }
  for (const auto& [bucket, count] : sizes(f, kCausal)) exact += count == 1;
  std::int64_t shared = 0;  // later and earlier keys of one distance in one bucket
  const std::int64_t later = f.fault("one-direction") ? -1 : 1;
  for (std::int64_t d = 1; d < kFar; ++d)
    shared += nn::t5_bucket(later * d, kBothWays) == nn::t5_bucket(-d, kBothWays);
  f.number("own_bucket", static_cast<double>(exact),
           {"distances with a bucket of their own, causal", "单独占一个桶的距离数（因果）"});
  f.number("last_bucket_from", static_cast<double>(last_begins),
           {"from here on all distances share the last bucket", "从此距离起全部落入最后一个桶"});
  f.number("order_errors", static_cast<double>(steps_back),
           {"larger distances in a smaller bucket", "距离更大却落入更小桶的次数"});
  f.number("directions_shared", static_cast<double>(shared),
           {"both ways: distances where left and right share a bucket",
            "双向时左右同距离共用一个桶的次数"});
  const double trained_32 = trained_buckets(f, 32), trained_128 = trained_buckets(f, 128);
  f.number(
      "trained_32", trained_32,
      {"of 32 buckets, trained by sequences of 32 tokens", "长 32 的序列能训练到的桶数（共 32）"});
  f.number("trained_128", trained_128, {"the same with 128 tokens", "长 128 的序列能训练到的桶数"});

  draw(f);
  // By hand: bucket 16 + ⌊16·log(d/16)/log 8⌋ from distance 16 on. It is 31 from
  // 16·8^(15/16) = 112.4 on, and 21 at distance 31: 16 + 6 buckets.
  f.control({"the last bucket begins at", "最后一个桶的起点"}, static_cast<double>(last_begins),
            Relation::equal, 113);
  f.control({"buckets trained by 32 tokens", "长 32 的序列能训练到的桶数"}, trained_32,
            Relation::equal, 22);
  f.control({"buckets trained by 128 tokens", "长 128 的序列能训练到的桶数"}, trained_128,
            Relation::equal, 32);
  f.control(
      {"both ways: distances where left and right share a bucket", "双向：左右共用一个桶的距离数"},
      static_cast<double>(shared), Relation::equal, 0);
  const bool ordered = f.check({"distances out of order", "次序颠倒的次数"},
                               static_cast<double>(steps_back), Relation::equal, 0);
  const bool near = f.check({"distances with a bucket of their own", "单独占一个桶的距离数"},
                            static_cast<double>(exact), Relation::at_least, 16);
  const bool far = f.check({"the last bucket begins by", "最后一个桶的起点"},
                           static_cast<double>(last_begins), Relation::at_most, 128);
  f.verdict(ordered && near && far ? Verdict::holds : Verdict::refuted);
}

}  // namespace

Experiment experiment() {
  return {
      .name = "t5-buckets",
      .topic = topics::positions,
      .title = {"T5's buckets of distances", "T5 的距离分桶"},
      .claim = {"T5 learns a bias per bucket, and distances are put into buckets by their size.",
                "T5 为每个桶学习一个偏置，位置差按大小被分到不同的桶里。"},
      .source = {"Document 004, T5, which leaves the details for later.",
                 "文档 004「T5」，细节留待以后。"},
      .method =
          {"The bucket of every distance up to 2000 with T5's own settings (32 buckets, 128), "
           "causal and both ways; and which of the learned numbers get a gradient from "
           "sequences of 32 and of 128 tokens.",
           "按 T5 自己的设置（32 个桶、最大距离 128）算出 2000 "
           "以内每个距离所在的桶，因果与双向各一次；"
           "并看长 32 和长 128 的序列能让哪些可学习的数得到梯度。"},
      .threshold = {"Buckets never go down as distances go up, half of them (16) belong to one "
                    "distance each, and the last begins within the 128 that the setting names.",
                    "距离增大时桶号从不变小；一半的桶（16 个）各对应一个距离；最后一个桶在设置的 "
                    "128 之内开始。"},
      .expected = Verdict::holds,
      .because =
          {"So far it is true; the details are: half of the buckets are exact, the others "
           "grow logarithmically, and the last one begins earlier than the setting says, "
           "because the logarithm is cut to whole numbers. Buckets that no training "
           "sequence reaches stay as they were initialised.",
           "论断成立；细节是：一半的桶是精确的，其余按对数变宽，而最后一个桶比设置的距离更早开始，"
           "因为对数取了整。训练序列到不了的桶会一直停留在初始值。"},
      .faults = {{"later-keys", {"buckets are those of later keys", "数的是右侧键的桶"}},
                 {"both-ways",
                  {"the causal buckets are those of both directions",
                   "「因果」的桶用了双向的分桶"}},
                 {"one-direction",
                  {"earlier keys are compared with themselves", "拿左侧的键与它自己比较"}},
                 {"first-query",
                  {"the first query is trained, which sees one distance",
                   "训练的是只看到一个距离的第一个查询"}}},
      .run = run,
  };
}

}  // namespace heddle::lab::t5_buckets
