// kv-cache: generation that keeps keys and values, against generation that reads everything again.
#include <algorithm>
#include <cmath>

#include "heddle/cost.h"
#include "heddle/memory.h"
#include "heddle/tape.h"
#include "lab/experiments.h"
#include "lab/findings.h"
#include "lab/sequences.h"
#include "lab/tools.h"
#include "lab/topics.h"
#include "model/model.h"

namespace heddle::lab::kv_cache {

namespace {

constexpr std::int64_t kLayers = 2, kHeads = 8, kHeadWidth = 4, kWidth = kHeads * kHeadWidth;
constexpr std::int64_t kVocabulary = 50, kLength = 128;

std::unique_ptr<model::Model> decoder(std::int64_t kv_heads) {
  model::ModelConfig c;
  c.layers = kLayers;
  c.width = kWidth;
  c.attention.heads = kHeads;
  c.attention.kv_heads = kv_heads;
  c.attention.position = nn::RopePosition{};
  c.sizes.vocabulary = kVocabulary;
  c.sizes.context = kLength;
  return model::build_model(c, {.seed = 11, .dtype = DType::f64});
}

nn::Pass exact() {
  nn::Pass pass;
  pass.precision = DType::f64;
  return pass;
}

struct Generated {
  Ids tokens;
  std::vector<double> flops;  // of each token
  std::vector<std::vector<double>> scores;
};

// The likeliest token each time, from one first token. Without cache, every token begins with an
// empty state and reads the whole text again.
Generated generate(const Findings& f, const model::Model& model, bool cached) {
  if (f.fault("cache-in-both")) cached = true;
  const bool last_only = f.fault("last-token-only");
  Generated g{{7}, {}, {}};
  auto state = model.begin({}, 1, kLength, exact());
  const bool summed = f.fault("meter-not-reset");
  double work = 0;
  while (static_cast<std::int64_t>(g.tokens.size()) < kLength) {
    if (!cached) state = model.begin({}, 1, kLength, exact());
    const Ids unread(cached || last_only ? g.tokens.end() - 1 : g.tokens.begin(), g.tokens.end());
    const CostMeter meter;
    const Tensor scores =
        model.next(*state, ids({1, static_cast<std::int64_t>(unread.size())}, unread), exact());
    work = (summed ? work : 0) + meter.cost().flops;
    g.flops.push_back(work);
    g.scores.push_back(scores.to_vector<double>());
    const auto& row = g.scores.back();
    g.tokens.push_back(
        static_cast<std::int32_t>(std::max_element(row.begin(), row.end()) - row.begin()));
  }
  return g;
}

double largest_gap(const Generated& a, const Generated& b) {
  double worst = 0;
  for (std::size_t t = 0; t < a.scores.size(); ++t)
    for (std::size_t v = 0; v < a.scores[t].size(); ++v)
      worst = std::max(worst, std::abs(a.scores[t][v] - b.scores[t][v]));
  return worst;
}

// 2 tensors · layers · key heads · head width · tokens · 8 bytes.
double bytes_by_formula(std::int64_t kv_heads) {
  return static_cast<double>(2 * kLayers * kv_heads * kHeadWidth * kLength * 8);
}

double bytes_measured(const Findings& f, std::int64_t kv_heads) {
  const auto model = decoder(f.fault("all-key-heads") ? kHeads : kv_heads);
  const auto read = [&model] {
    auto state = model->begin({}, 1, kLength, exact());
    model->next(*state, Tensor::zeros({1, kLength}, DType::i32), exact());
    return state;
  };
  read();  // what the first pass leaves behind, packed weights above all, is no cache
  const std::int64_t before = memory_use(Device::cpu).live;
  const auto state = read();
  return static_cast<double>(memory_use(Device::cpu).live - before);
}

double measure_bytes(Findings& f) {
  double worst = 0;
  for (const std::int64_t kv_heads : {8, 2, 1}) {
    const double measured = bytes_measured(f, kv_heads), formula = bytes_by_formula(kv_heads);
    worst = std::max(worst, std::abs(measured - formula));
    const std::string text = std::to_string(kv_heads);
    f.number("bytes_" + text, measured,
             tr("cache of 128 tokens, 8 query heads and {} of keys", kv_heads), mark("bytes"));
  }
  f.number("bytes_error", worst, tr("measured − 2·layers·heads·width·tokens·8, at most"),
           mark("bytes"));
  return worst;
}

void run(Findings& f) {
  const auto model = decoder(kHeads);
  const Generated kept = generate(f, *model, true), again = generate(f, *model, false);
  double other_tokens = 0, kept_work = 0, again_work = 0;
  for (std::size_t t = 0; t < kept.tokens.size(); ++t)
    other_tokens += kept.tokens[t] != again.tokens[t];
  report::LineChart chart;
  chart.x_label = tr("number of the token");
  chart.y_label = tr("floating-point operations");
  chart.log_y = true;
  chart.series = {{tr("without cache"), {}}, {tr("with cache"), {}}};
  for (std::size_t t = 0; t < kept.flops.size(); ++t) {
    const auto place = static_cast<double>(t + 1);
    chart.series[0].points.push_back({place, again.flops[t]});
    chart.series[1].points.push_back({place, kept.flops[t]});
    kept_work += kept.flops[t];
    again_work += again.flops[t];
  }
  const double growth = kept.flops.back() / kept.flops.front();
  const double gap = largest_gap(kept, again);
  f.number("other_tokens", other_tokens, tr("tokens that differ, of 128"));
  f.number("gap", gap, tr("scores with − without cache, largest"));
  f.number("saved", again_work / kept_work, tr("work without cache over work with it, 128 tokens"));
  f.number("growth", growth, tr("with cache: last token's work over the first's"));
  const double growth_without = again.flops.back() / again.flops.front();
  f.number("growth_without", growth_without, tr("without cache: the same"));
  const double bytes_error = measure_bytes(f);
  f.figure(chart, tr("Work for each token of a text of 128. With the cache only the look back over "
                     "the kept keys grows; without, everything is computed again."));
  // Without cache the 127th token reads 127 rows where the first read one. With it only the look
  // back grows.
  f.control(tr("with cache: last token's work over the first's"), growth, Relation::less, 4);
  f.control(tr("without cache: the same"), growth_without, Relation::at_least, kLength - 1);
  const bool same = f.check(tr("tokens that differ"), other_tokens, Relation::equal, 0);
  const bool close = f.check(tr("scores differ by"), gap, Relation::less, 1e-10);
  const bool saves =
      f.check(tr("work without cache, times"), again_work / kept_work, Relation::greater, 20);
  const bool bytes =
      f.check(tr("bytes differ from the formula by"), bytes_error, Relation::equal, 0);
  f.verdict(same && close && saves && bytes ? Verdict::holds : Verdict::refuted);
}

}  // namespace

Experiment experiment() {
  return {
      .name = "kv-cache",
      .topic = topics::cost,
      .title = mark("Keeping keys and values"),
      .claim = mark("Kept keys and values save a decoder from computing those of the earlier "
                    "tokens again for every new one; the price is memory."),
      .formula = "K_t = [K_{t-1}; k_t] quad V_t = [V_{t-1}; v_t]",
      .source = mark("Document 004, KV cache."),
      .method = mark("A decoder with 2 layers and 8 heads writes 128 tokens with Heddle's cache, "
                     "and again with an empty state for every token: tokens, scores, arithmetic of "
                     "each token. Bytes of the cache in memory against the formula, with 8, 2 and "
                     "1 heads of keys (multi-head, grouped, multi-query)."),
      .threshold =
          mark("The same tokens, scores equal to 1e-10 (other orders of summation), less than a "
               "twentieth of the work over 128 tokens, bytes equal to the formula."),
      .expected = Verdict::holds,
      .because = mark(
          "Keys and values of a token depend on the tokens before it only, so they never change. "
          "What is left per token is one row of every product and a look back over the kept keys. "
          "The memory grows with the key heads, so grouped heads save in proportion."),
      .faults = {{"cache-in-both", mark("both ways keep the cache")},
                 {"last-token-only", mark("without cache only the last token is read")},
                 {"meter-not-reset", mark("work is summed up over the tokens")},
                 {"all-key-heads", mark("the cache always has 8 heads of keys")}},
      .run = run,
  };
}

}  // namespace heddle::lab::kv_cache
