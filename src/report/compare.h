// index.html of a comparison: curves, figures, and which differences are more than noise.
#pragma once

#include <string>

#include "train/compare/results.h"

namespace heddle::report {

std::string comparison_page(const train::ComparisonResults& results);

// "kv_heads=2 is worse than kv_heads=6 by 0.0120 ± 0.0040: more than the noise."
std::string in_words(const train::PairResult& pair, const train::ComparisonResults& results);

// "learning_rate=1 diverged at step 12: loss nan. It takes no part in the verdicts."
std::string divergence_in_words(const train::VariantResult& variant, std::int64_t seeds);

// Writes index.html, and report.html of every run; returns the path of the page.
std::string write_comparison_report(const std::string& directory,
                                    const train::ComparisonResults& results);

}  // namespace heddle::report
