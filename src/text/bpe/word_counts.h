// How often each word comes in a text: the first half of training a tokenizer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/bpe/flat_map.h"
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

// The same of texts that come and go: it keeps a copy of each different word.
class WordCounter {
 public:
  explicit WordCounter(WordRule rule) : rule_(rule) {}

  // On all threads, a text on each. Cut where no word is; they may go away afterwards.
  void add(std::span<const std::string_view> texts);
  std::vector<WordCount> words() const;  // good for as long as the counter

 private:
  std::string_view kept(std::string_view word);

  WordRule rule_;
  FlatMap<std::string_view, std::int64_t> counts_;
  std::deque<std::string> blocks_;  // of words; none ever grows beyond what it has reserved
};

}  // namespace heddle::text
