// Finds the merges of a byte-level BPE tokenizer.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "text/bpe/merges.h"
#include "text/bpe/word_counts.h"
#include "text/train.h"

namespace heddle::text {

struct LearnedMerges {
  std::vector<std::string> tokens;  // bytes of each: first the 256 single ones, as bytes_by_name()
  std::vector<Merge> merges;
};

// Goes on until there are `tokens` tokens or no pair of neighbours comes twice.
LearnedMerges learn_merges(std::span<const WordCount> words, std::size_t tokens,
                           const ProgressSink& progress);

}  // namespace heddle::text
