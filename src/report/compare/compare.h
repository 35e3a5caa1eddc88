// index.html of a comparison: curves, figures, and which differences are more than noise.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compare/results.h"

namespace heddle::report {

std::string comparison_page(const compare::ComparisonResults& results);

// "kv_heads=2 is worse than kv_heads=6 by 0.0120 ± 0.0040: more than the noise."
std::string in_words(const compare::PairResult& pair, const compare::ComparisonResults& results);

// Advice on a difference that is within the noise: how many seeds would tell. Empty where
// there is nothing to say.
std::string seeds_in_words(const compare::PairResult& pair,
                           const compare::ComparisonResults& results);
// How that number is computed.
std::string seeds_formula();

// "learning_rate=1 diverged at step 12: loss nan. It takes no part in the verdicts."
std::string divergence_in_words(const compare::VariantResult& variant, std::int64_t seeds);
// "diverged at step 12 (2 of 3 seeds)"
std::string divergence_text(const compare::VariantResult& variant, std::int64_t seeds);

// "0.90 times the time of a (0.85 to 0.95)": of b's step against a's.
std::string time_in_words(const compare::PairResult& pair,
                          const compare::ComparisonResults& results);

// The meaning of ±, and its consequences.
std::string noise_note(const compare::ComparisonResults& results);

// "2.5000 ± 0.2500", or that it diverged.
std::string loss_text(const compare::VariantResult& variant);
std::string step_time_text(double seconds);  // "8.60 ms"
// "250 ms (240 to 262)": the median, and the middle half.
std::string time_text(const compare::VariantResult& variant);

// The note below a table of these: `star` marks the lowest loss there.
std::string figures_note(const compare::ComparisonResults& results, const char* star);

// That times are of several ranks; empty where they were taken in turns.
std::string timing_note(const compare::ComparisonResults& results);

// "+0.0120 ± 0.0040"
std::string difference_text(const compare::Difference95& difference);
std::string verdict_text(compare::Verdict verdict);

// A table of main effects, its head first; empty where fewer than two keys vary.
std::vector<std::vector<std::string>> effects_table(const compare::ComparisonResults& results);
std::string effects_note(const compare::ComparisonResults& results);

// Writes index.html (or the page at `out`), and report.html of every run; returns the path of the
// page.
std::string write_comparison_report(const std::string& directory,
                                    const compare::ComparisonResults& results,
                                    const std::string& out = {});

// The page of whatever is at `directory`, a run or a comparison, from its files; `out`: where to,
// instead of its usual place. Returns what was written. A comparison that is not done yet has the
// pages of its runs alone, and none at `out`.
std::vector<std::string> write_report(const std::string& directory, const std::string& out = {});

}  // namespace heddle::report
