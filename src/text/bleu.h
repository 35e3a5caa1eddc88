// BLEU of a corpus as sacreBLEU defines it (Post 2018), with its defaults: the words of
// mteval-v13a, upper and lower case kept apart, exponential smoothing, one reference.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::text {

inline constexpr int kBleuOrder = 4;  // n-grams of 1 to 4 words

struct Bleu {
  double score = 0;                             // 0 to 100
  std::array<double, kBleuOrder> precisions{};  // per cent, smoothed
  double brevity_penalty = 1;
  std::int64_t words = 0;            // of the hypotheses
  std::int64_t reference_words = 0;  // of the references
};

// Throws Error unless there are as many references as hypotheses.
Bleu corpus_bleu(std::span<const std::string> hypotheses, std::span<const std::string> references);

// The words that BLEU counts: punctuation stands alone, except for periods, commas and dashes
// within numbers.
std::vector<std::string> split_13a(std::string_view line);

}  // namespace heddle::text
