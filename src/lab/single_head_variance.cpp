// single-head-variance: the mean of two values by one head, when one key's length is uncertain.
#include <cmath>

#include "lab/experiments.h"
#include "lab/findings.h"
#include "lab/one_query.h"
#include "lab/topics.h"

namespace heddle::lab::single_head_variance {

namespace {

constexpr std::int64_t kSamples = 20000, kKeys = 8;
constexpr double kBeta = 50;

struct Spread {
  double mean = 0, variance = 0;  // of α_a
  double between = 0;             // share of samples with α_a in [0.1, 0.9]
  std::vector<double> weights;    // α_a
};

// Keys 0 and 1 are a and b; values are unit vectors, so that c holds the weights.
Spread spread_at(const Findings& f, const NoisyKeys& keys, double beta) {
  const Tensor v = ops::broadcast_to(unit_vectors(kKeys), {kSamples, kKeys, kKeys});
  const double length = f.fault("default-scale") ? beta / std::sqrt(double{kKeys}) : beta;
  const Tensor q = f.fault("one-key") ? query_for({0}, length, kSamples, kKeys)
                                      : query_for({0, 1}, length, kSamples, kKeys);
  const Tensor c = attend(q, keys.k, v);
  Spread s;
  for (const auto& row : rows_of(c)) s.weights.push_back(row[0]);
  for (const double w : s.weights) {
    s.mean += w / kSamples;
    s.between += (w >= 0.1 && w <= 0.9 ? 1.0 : 0.0) / kSamples;
  }
  for (const double w : s.weights) s.variance += (w - s.mean) * (w - s.mean) / kSamples;
  return s;
}

void run(Findings& f) {
  const NoisyKeys keys = noisy_keys(f, kSamples, kKeys);
  report::LineChart chart;
  chart.x_label = "β";
  chart.log_x = true;
  chart.y_label = f.say({"of 20000 samples", "20000 个样本"});
  report::Series variance{f.say({"variance of α_a", "α_a 的方差"}), {}};
  report::Series between{f.say({"share with 0.1 ≤ α_a ≤ 0.9", "0.1 ≤ α_a ≤ 0.9 的比例"}), {}};
  for (const double beta : {2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0}) {
    const Spread s = spread_at(f, keys, beta);
    variance.points.push_back({beta, s.variance});
    between.points.push_back({beta, s.between});
  }
  chart.series = {variance, between};
  f.figure(chart, {"The larger β, the more the output jumps: 0.25 is the variance of a coin.",
                   "β 越大，输出跳动越剧烈：0.25 正是抛硬币的方差。"});

  const Spread s = spread_at(f, keys, kBeta);
  f.number("mean_weight", s.mean, {"mean of α_a at β = 50", "β = 50 时 α_a 的均值"});
  f.number("variance_weight", s.variance, {"variance of α_a at β = 50", "β = 50 时 α_a 的方差"});
  f.number("share_between", s.between,
           {"share of samples with 0.1 ≤ α_a ≤ 0.9", "0.1 ≤ α_a ≤ 0.9 的样本比例"});
  // α_a = 1/(1 + e^{β(1−γ)}) is within [0.1, 0.9] where |β(1 − γ)| ≤ ln 9, and 1 − γ ~ N(0, ½).
  // Of 20000 samples a share of 5 % is known to 0.0015, the mean to 0.0035.
  f.control({"share between, against erf(ln 9 / β)", "停留在中间的比例与 erf(ln 9 / β) 之差"},
            std::abs(s.between - std::erf(std::log(9) / kBeta)), Relation::less, 0.006);
  f.control({"mean of α_a: distance from ½", "α_a 的均值与 ½ 之差"}, std::abs(s.mean - 0.5),
            Relation::less, 0.015);
  const bool jumps = f.check({"variance of α_a", "α_a 的方差"}, s.variance, Relation::greater, 0.2);
  const bool rarely = f.check({"share between v_a and v_b", "停留在 v_a 与 v_b 之间的比例"},
                              s.between, Relation::less, 0.1);
  f.verdict(jumps && rarely ? Verdict::holds : Verdict::refuted);
}

}  // namespace

Experiment experiment() {
  return {
      .name = "single-head-variance",
      .topic = topics::exploration,
      .title = {"One head and an uncertain key", "单头注意力与不确定的键"},
      .claim =
          {"If the length of k_a varies (γ ~ N(1, ½)), one head with q = β(μ_a + μ_b) does not "
           "give the mean: the output jumps between v_a and v_b.",
           "当 k_a 的长度不稳定（γ ~ N(1, ½)）时，单头取 q = β(μ_a + μ_b) 得不到平均值，"
           "输出在 v_a 与 v_b 之间来回跳动。"},
      .source = {"Document 001, (c); document 003, 1(c) ii.",
                 "文档 001 (c)；文档 003 的 1(c) ii。"},
      .method =
          {"20000 draws of 8 keys with orthonormal means; all vary by 1e-4, k_a along its own "
           "direction with variance ½. The weight α_a that Heddle's attention gives.",
           "抽样 20000 次，8 个键、均值标准正交；各键噪声 1e-4，唯 k_a 沿自身方向方差为 ½。"
           "记录 Heddle 注意力给出的权重 α_a。"},
      .threshold = {"Variance above 0.2 (a number in [0, 1] has at most 0.25, when it is always 0 "
                    "or 1) and less than 10 % of the samples in between.",
                    "方差大于 0.2（取值在 [0, 1] 的量方差至多 0.25，即总是 0 或 1），"
                    "且处于中间的样本不足 10 %。"},
      .expected = Verdict::holds,
      .because = {"α_a = 1/(1 + e^{β(1−γ)}): the large β that keeps other keys out also magnifies "
                  "every difference between γ and 1, and γ is on either side half of the time.",
                  "α_a = 1/(1 + e^{β(1−γ)})：为排除其他键而取的大 β，同时放大了 γ 与 1 的任何差别，"
                  "而 γ 一半时间大于 1、一半时间小于 1。"},
      .faults = {{"variance-for-deviation",
                  {"γ gets a deviation of ½ instead of a variance of ½",
                   "γ 的标准差（而不是方差）取了 ½"}},
                 {"one-key", {"the query points at k_a only", "查询只指向 k_a"}},
                 {"default-scale",
                  {"scores are divided by √d, which the documents do not do",
                   "得分多除了 √d（文档中没有）"}}},
      .run = run,
  };
}

}  // namespace heddle::lab::single_head_variance
