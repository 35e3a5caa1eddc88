// Results of a comparison: from its runs' logs, checkpoints and last evaluations.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compare/comparison.h"
#include "compare/run_end.h"
#include "compare/statistics.h"
#include "compare/timing.h"
#include "run/unit.h"

namespace heddle::compare {

struct CurvePoint {
  double step = 0;
  double loss = 0;                    // mean over seeds
  std::optional<double> spread = {};  // deviation over seeds
};

struct SeedDivergence {
  std::int64_t seed = 1;
  Divergence at;
};

// Values that were not measured are 0: a variant that diverged in its first steps may have no
// times, and no checkpoint that tells its memory.
struct VariantResult {
  std::string name;
  std::vector<Assignment> set;
  // Seeds that diverged. With any, the variant has no final loss and takes no part in verdicts.
  std::vector<SeedDivergence> diverged = {};
  std::vector<double> losses;  // at the end, of each seed
  double mean = 0;
  std::optional<double> spread = {};
  std::int64_t steps = 0;
  double step_seconds = 0;             // median,
  double step_low = 0, step_high = 0;  // the middle half of them is between these
  double tokens_per_s = 0;
  run::Unit unit = {"tokens"};  // what a reader counts instead of tokens
  double tokens = 0;            // read by a run
  std::int64_t peak_bytes = 0;
  BytesByPurpose peak_by_purpose = {};
  std::int64_t kv_bytes_per_token = 0;  // 0: keeps none
  std::int64_t parameters = 0;
  double flops_per_step = 0;
  std::vector<CurvePoint> curve;       // of training
  std::vector<CurvePoint> validation;  // evaluations on the way; may be empty
  std::vector<std::string> runs;       // directories below the comparison's
};

// The source of the estimate for the noise of a difference.
enum class Noise : std::uint8_t {
  seeds,       // differences of runs with the same seed
  evaluation,  // one seed: differences on the batches of the evaluation. The luck of the seed is
               // not in it
  none,        // one seed and no validation data: no estimate
};

struct PairResult {
  std::size_t a = 0, b = 0;  // variants
  Difference95 loss;         // of a, less that of b
  // Log of (seconds of a's step / seconds of b's). Without a verdict unless both went in turns.
  Difference95 time;
};

// The effect of one key, averaged over the values of the others: where several vary.
struct MainEffect {
  std::string key, value, against;
  std::int64_t settings = 0;       // of the other keys, of which both were trained to the end
  Difference95 loss;               // of `value`, less that of `against`; its noise is that of seeds
  double lowest = 0, highest = 0;  // of the differences at the single settings
  double time_ratio = 1;           // of a step, geometric mean; 0: not measured
};

struct ComparisonResults {
  std::string recipe;  // its name
  std::string budget;
  std::int64_t seeds = 1;
  bool validation = false;  // the loss is on the validation split; otherwise of the last tenth of
                            // training
  bool same_batches = true;
  Noise noise = Noise::none;
  Timing timing = {};
  std::vector<VariantResult> variants;
  std::vector<PairResult> pairs;         // each once, a < b; of variants that did not diverge
  std::optional<std::size_t> best = {};  // of the variants, by loss; none: all diverged
  std::vector<MainEffect> effects = {};  // none where fewer than two keys vary

  // The baseline of the others: the first variant that did not diverge.
  std::size_t base() const;
  // The unit that all variants read, where it is the same; otherwise tokens.
  run::Unit unit_of(const VariantResult& variant) const;
  // Whether variants were given different numbers of steps, as under a budget of time.
  bool unequal_steps() const;
};

ComparisonResults collect(const Comparison& comparison);

nlohmann::json to_json(const ComparisonResults& results);
// "same", "within-noise", "exceeds-noise", "models-differ", "unknown"
std::string_view to_string(Verdict verdict);
std::string_view to_string(Noise noise);  // "seeds", "evaluation", "none"

// Of variants that are combinations of the same keys; the first value of each is the baseline of
// the others.
std::vector<MainEffect> main_effects(const std::vector<VariantResult>& variants);

// The same of results, with times where they can be compared.
std::vector<MainEffect> effects_of(const ComparisonResults& results);

// DIR/results.json
void write_results(const std::string& directory, const ComparisonResults& results);
// And back, without what it does not tell. Error naming the file and the key that is not as it
// should be.
ComparisonResults read_results(const std::string& directory);

}  // namespace heddle::compare
