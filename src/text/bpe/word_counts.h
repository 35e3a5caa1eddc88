// How often each word comes in a text: the first half of training a tokenizer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "text/train.h"

namespace heddle::text {

enum class WordRule : std::uint8_t { gpt2, white_space };

struct WordCount {
  std::string_view word;  // in one of the texts
  std::int64_t count = 0;
};

// On all threads. The counts do not depend on their number; the order of the words does.
std::vector<WordCount> count_words(std::span<const std::string_view> texts, WordRule rule,
                                   const ProgressSink& progress);

}  // namespace heddle::text
