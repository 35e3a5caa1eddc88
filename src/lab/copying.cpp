// copying: when does attention hand back one value as it is?
#include <fmt/format.h>

#include <cmath>

#include "lab/experiments.h"
#include "lab/findings.h"
#include "lab/one_query.h"
#include "lab/topics.h"

namespace heddle::lab::copying {

namespace {

constexpr double kBarely = 0.01;  // "larger", and no more than that

// Weight of the key that the query points at, when it leads all others by `gap`: orthonormal keys
// and q = gap · k_j.
double weight_at(const Findings& f, double gap, std::int64_t n) {
  const Tensor keys = ops::reshape(unit_vectors(n), {1, n, n});
  const double length = f.fault("default-scale") ? gap / std::sqrt(static_cast<double>(n)) : gap;
  const Tensor c = attend(query_for({0}, length, 1, n), keys, keys);
  return c.to_vector<double>()[f.fault("next-key") ? 1 : 0];
}

void run(Findings& f) {
  report::LineChart chart;
  chart.x_label = f.say({"lead of the largest score", "最大得分的领先量"});
  chart.y_label = f.say({"weight α_j of that key", "该键的权重 α_j"});
  double off_formula = 0;
  for (const std::int64_t n : {4, 64, 1024}) {
    report::Series line{fmt::format("n = {}", n), {}};
    for (double gap = 0; gap <= 20; gap += 0.5) {
      const double weight = weight_at(f, gap, f.fault("one-key-fewer") ? n - 1 : n);
      const double formula = 1 / (1 + static_cast<double>(n - 1) * std::exp(-gap));
      off_formula = std::max(off_formula, std::abs(weight - formula));
      line.points.push_back({gap, weight});
    }
    chart.series.push_back(line);
  }
  f.figure(chart, {"The weight passes one half where the lead is log(n − 1): more keys want a "
                   "larger lead.",
                   "当领先量等于 log(n − 1) 时权重过半：键越多，所需的领先量越大。"});

  const double barely = weight_at(f, kBarely, 64), half = weight_at(f, std::log(63), 64);
  const double enough = weight_at(f, std::log(63) + std::log(999), 64);
  f.number("weight_barely_larger", barely,
           {"α_j of 64 keys, lead 0.01", "64 个键、领先 0.01 时的 α_j"});
  f.number("weight_at_log_n", half,
           {"α_j of 64 keys, lead log 63", "64 个键、领先 log 63 时的 α_j"});
  f.number("weight_far_larger", enough,
           {"α_j of 64 keys, lead log 63 + log 999", "64 个键、领先 log 63 + log 999 时的 α_j"});
  f.number(
      "off_formula", off_formula,
      {"largest distance from 1/(1 + (n−1)·e^−lead)", "与 1/(1 + (n−1)·e^−领先量) 的最大偏差"});

  const bool not_enough = f.check({"α_j when the score is merely larger", "得分仅仅较大时的 α_j"},
                                  barely, Relation::less, 0.5);
  const bool copies =
      f.check({"α_j when the lead is log(n−1) + log 999", "领先 log(n−1) + log 999 时的 α_j"},
              enough, Relation::at_least, 0.999 - 1e-12);
  f.control({"distance from the formula", "与公式的偏差"}, off_formula, Relation::less, 1e-12);
  f.control({"α_j at a lead of log(n−1): distance from ½", "领先 log(n−1) 时 α_j 与 ½ 之差"},
            std::abs(half - 0.5), Relation::less, 1e-12);
  f.verdict(!copies ? Verdict::refuted : not_enough ? Verdict::conditional : Verdict::holds);
}

}  // namespace

Experiment experiment() {
  return {
      .name = "copying",
      .topic = topics::exploration,
      .title = {"Copying one value", "复制某一个值"},
      .claim =
          {"If the query's product with one key is larger than with all others, that key takes "
           "all the weight, and the output is its value.",
           "若查询与某个键的点积大于与其他所有键的点积，该键就得到几乎全部权重，输出即为它的值。"},
      .source = {"Document 001, (a) ii–iii, asks for “larger” only; document 003, 1(a), for much "
                 "larger.",
                 "文档 001 (a) ii–iii 只要求「大于」；文档 003 的 1(a) 要求「远大于」。"},
      .method = {"Orthonormal keys, q = lead · k_j, so that k_j leads all others by exactly the "
                 "lead; the weight it gets from Heddle's attention for 4, 64 and 1024 keys.",
                 "取标准正交的键与 q = 领先量 · k_j，使 k_j 恰好领先其他键该数值；"
                 "用 Heddle 的注意力测量 4、64、1024 个键时它得到的权重。"},
      .threshold =
          {"The claim fails where the leading key has less than half of the weight; it "
           "copies where it has 99.9 %. The formula must fit to 1e-12.",
           "领先键权重不到一半则论断不成立；达到 99.9 % 视为复制。公式须在 1e-12 内吻合。"},
      .expected = Verdict::conditional,
      .because =
          {"Being larger is not enough: α_j = 1/(1 + (n−1)·e^−lead), so the lead must exceed "
           "log(n−1) by some margin, and a lead near 0 gives all keys about 1/n. With “much "
           "larger than log n” the claim holds.",
           "仅仅「大于」不够：α_j = 1/(1 + (n−1)·e^−领先量)，领先量必须明显超过 log(n−1)；"
           "领先接近 0 时所有键权重约为 1/n。把条件改为「远大于 log n」则成立。"},
      .faults = {{"default-scale",
                  {"scores are divided by √d, which the documents do not do",
                   "得分多除了 √d（文档中没有）"}},
                 {"next-key", {"the weight of the next key is read", "读取的是下一个键的权重"}},
                 {"one-key-fewer",
                  {"there is one key fewer than the formula counts", "键比公式中少一个"}}},
      .run = run,
  };
}

}  // namespace heddle::lab::copying
