#include "compare/results.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "heddle/error.h"
#include "io/files/file.h"
#include "run/log/log.h"
#include "run/state.h"

namespace heddle::compare {

namespace {

// Results of one run.
struct RunFindings {
  run::TrainingLog log;
  run::TrainState state;
  std::optional<Divergence> diverged;  // without a loss that counts, then
  std::int64_t seed = 1;
  FinalEvaluation final_losses;       // empty without validation data
  double loss = 0;                    // that counts
  std::vector<double> step_seconds;   // of each line of the log
  std::vector<double> round_seconds;  // of the usual step, in each round; 0: none
};

void add_times(RunFindings& f, std::int64_t steps) {
  std::vector<std::vector<double>> rounds(kRounds);
  f.step_seconds = run::step_seconds(f.log);
  for (std::size_t i = 0; i < f.log.steps.size(); ++i) {
    const double share = (f.log.steps[i].step - 1) / static_cast<double>(steps);
    const auto round =
        std::min(static_cast<std::size_t>(share * static_cast<double>(kRounds)), rounds.size() - 1);
    rounds[round].push_back(f.step_seconds[i]);
  }
  // The first step of a turn fetches memory: a line that is of it alone is not the usual one.
  for (const std::vector<double>& seconds : rounds)
    f.round_seconds.push_back(seconds.empty() ? 0 : median_of(seconds));
}

// The last tenth of the log, but at least its last line.
double last_losses(const run::TrainingLog& log) {
  std::vector<double> last;
  const std::size_t count = std::max<std::size_t>(1, log.steps.size() / 10);
  for (std::size_t i = log.steps.size() - count; i < log.steps.size(); ++i)
    last.push_back(log.steps[i].loss);
  return mean_of(last);
}

RunFindings findings_of(const ComparedRun& run, std::int64_t steps, bool validation) {
  const run::RunPaths paths{run.directory};
  RunFindings f;
  f.log = run::parse_training_log(io::read_file(paths.log(), run::kMostLog), paths.log());
  f.seed = run.seed;
  f.diverged = read_divergence(run.directory);
  if (f.diverged) {
    f.state = run::newest_state(paths).value_or(run::TrainState{});
    add_times(f, steps);
    return f;
  }
  f.state = run::read_state(paths.checkpoint(steps));
  if (f.log.steps.empty()) fail(ErrorCode::io, paths.log(), "has no lines", "a finished run");
  if (validation) f.final_losses = read_final(run.directory);
  f.loss = validation ? f.final_losses.mean() : last_losses(f.log);
  add_times(f, steps);
  return f;
}

using Seeds = std::vector<RunFindings>;  // of one variant

template <class Lines>
std::vector<CurvePoint> curve_of(const Seeds& seeds, Lines run::TrainingLog::* lines) {
  std::map<double, std::vector<double>> by_step;
  for (const RunFindings& f : seeds)
    for (const auto& line : f.log.*lines) by_step[line.step].push_back(line.loss);
  std::vector<CurvePoint> curve;
  curve.reserve(by_step.size());
  for (const auto& [step, losses] : by_step)
    curve.push_back({step, mean_of(losses), deviation_of(losses)});
  return curve;
}

// By the last line of a log: the same for all seeds. 0: there is no line.
double tokens_per_step(const Seeds& seeds) {
  for (const RunFindings& f : seeds)
    if (!f.log.steps.empty()) return f.log.steps.back().tokens / f.log.steps.back().step;
  return 0;
}

VariantResult summary(const Comparison& c, std::size_t index, const Seeds& seeds) {
  VariantResult r;
  r.name = c.variants()[index].name;
  r.set = c.variants()[index].set;
  r.steps = c.steps(index);
  std::vector<double> seconds;
  for (const RunFindings& f : seeds) {
    if (f.diverged) r.diverged.push_back({f.seed, *f.diverged});
    if (!f.diverged) r.losses.push_back(f.loss);
    seconds.insert(seconds.end(), f.step_seconds.begin(), f.step_seconds.end());
    if (f.state.peak_bytes > r.peak_bytes) {
      r.peak_bytes = f.state.peak_bytes;
      r.peak_by_purpose = f.state.peak_by_purpose;
    }
  }
  r.mean = mean_of(r.losses);
  r.spread = deviation_of(r.losses);
  r.step_seconds = median_of(seconds);
  r.step_low = quantile_of(seconds, 0.25);
  r.step_high = quantile_of(seconds, 0.75);
  if (!r.diverged.empty()) {
    r.mean = 0;
    r.spread = {};
  }
  if (r.diverged.empty()) r.tokens = static_cast<double>(seeds[0].state.tokens);
  if (r.step_seconds > 0) r.tokens_per_s = tokens_per_step(seeds) / r.step_seconds;
  const plan::Plan& plan = c.plan(index);
  r.kv_bytes_per_token = plan.kv_bytes_per_token;
  r.parameters = plan.parameters;
  r.flops_per_step = plan.flops_per_step;
  r.curve = curve_of(seeds, &run::TrainingLog::steps);
  r.validation = curve_of(seeds, &run::TrainingLog::evals);
  for (const ComparedRun& run : c.runs())
    if (run.variant == index)
      r.runs.push_back(
          std::filesystem::path(run.directory).lexically_relative(c.spec().out).generic_string());
  r.unit = run::unit_read(c.variants()[index].recipe.model, c.data(index).codec());
  return r;
}

Difference95 loss_difference(const Seeds& a, const Seeds& b, Noise noise) {
  std::vector<double> all;
  if (noise == Noise::seeds) {
    for (std::size_t i = 0; i < a.size(); ++i) all.push_back(a[i].loss - b[i].loss);
    return judge(all);
  }
  if (noise == Noise::none) return judge(std::vector<double>{a[0].loss - b[0].loss});
  const FinalEvaluation &x = a[0].final_losses, &y = b[0].final_losses;
  for (std::size_t i = 0; i < std::min(x.losses.size(), y.losses.size()); ++i)
    all.push_back(x.losses[i] - y.losses[i]);
  Difference95 found = judge(all, x.weights);
  if (found.verdict == Verdict::exceeds_noise) found.verdict = Verdict::models_differ;
  return found;
}

// Rounds in which both had a turn. On ranks a round of one is no round of another: the ratio is
// told, and no verdict.
Difference95 time_difference(const Seeds& a, const Seeds& b, bool in_turns) {
  std::vector<double> ratios;
  for (std::size_t s = 0; s < a.size(); ++s)
    for (std::size_t i = 0; i < a[s].round_seconds.size(); ++i)
      if (a[s].round_seconds[i] > 0 && b[s].round_seconds[i] > 0)
        ratios.push_back(std::log(a[s].round_seconds[i] / b[s].round_seconds[i]));
  return in_turns ? judge(ratios) : Difference95{mean_of(ratios), {}, Verdict::unknown};
}

}  // namespace

ComparisonResults collect(const Comparison& c) {
  ComparisonResults r;
  r.recipe = std::filesystem::path(c.spec().recipe).stem().string();
  r.budget = c.budget().text;
  r.seeds = c.seeds();
  r.validation = c.validates();
  r.same_batches = c.same_batches();
  if (c.seeds() >= 2)
    r.noise = Noise::seeds;
  else if (r.validation)
    r.noise = Noise::evaluation;
  std::vector<Seeds> found(c.variants().size());
  std::vector<std::string> directories;
  for (const ComparedRun& run : c.runs()) directories.push_back(run.directory);
  r.timing = timing_of(directories);
  for (const ComparedRun& run : c.runs())
    found[run.variant].push_back(findings_of(run, c.steps(run.variant), r.validation));
  const auto judged = [&r](std::size_t i) { return r.variants[i].diverged.empty(); };
  for (std::size_t i = 0; i < found.size(); ++i) {
    r.variants.push_back(summary(c, i, found[i]));
    if (judged(i) && (!r.best || r.variants[i].mean < r.variants[*r.best].mean)) r.best = i;
  }
  for (std::size_t a = 0; a < found.size(); ++a)
    for (std::size_t b = a + 1; b < found.size(); ++b)
      if (judged(a) && judged(b))
        r.pairs.push_back({a, b, loss_difference(found[a], found[b], r.noise),
                           time_difference(found[a], found[b], r.timing.in_turns())});
  r.effects = effects_of(r);
  return r;
}

std::vector<MainEffect> effects_of(const ComparisonResults& results) {
  std::vector<MainEffect> effects = main_effects(results.variants);
  if (!results.timing.in_turns())
    for (MainEffect& e : effects) e.time_ratio = 0;
  return effects;
}

std::size_t ComparisonResults::base() const {
  const auto found =
      std::ranges::find_if(variants, [](const VariantResult& v) { return v.diverged.empty(); });
  return found == variants.end() ? 0 : static_cast<std::size_t>(found - variants.begin());
}

run::Unit ComparisonResults::unit_of(const VariantResult& variant) const {
  const bool alike = std::ranges::all_of(
      variants, [&](const VariantResult& v) { return v.unit.name == variant.unit.name; });
  return alike ? variant.unit : run::Unit{"tokens"};
}

bool ComparisonResults::unequal_steps() const {
  return std::ranges::any_of(
      variants, [this](const VariantResult& v) { return v.steps != variants[0].steps; });
}

}  // namespace heddle::compare
