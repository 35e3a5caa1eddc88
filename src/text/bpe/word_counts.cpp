#include "text/bpe/word_counts.h"

#include <algorithm>
#include <utility>

#include "base/parallel.h"
#include "base/parallel_each.h"
#include "text/split/word_end.h"

namespace heddle::text {

namespace {

using Counts = FlatMap<std::string_view, std::int64_t>;

constexpr std::size_t kChunkBytes = std::size_t{1} << 20;
constexpr std::size_t kBatchChunks = 32;  // between two reports of progress

// Pieces of about a megabyte, cut where no word is.
std::vector<std::string_view> cut(std::span<const std::string_view> texts) {
  std::vector<std::string_view> chunks;
  for (const std::string_view text : texts) {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end =
          text.size() - at <= kChunkBytes ? text.size() : safe_cut(text, at + kChunkBytes);
      chunks.push_back(text.substr(at, end - at));
      at = end;
    }
  }
  return chunks;
}

void count_chunk(std::string_view text, WordRule rule, Counts& counts) {
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = 0;
    bool is_word = true;
    if (rule == WordRule::gpt2) {
      end = gpt2_word_end(text, at);
    } else {
      const Run run = space_run(text, at);
      end = run.end;
      is_word = !run.is_space;
    }
    if (is_word) ++counts[text.substr(at, end - at)];
    at = end;
  }
}

std::vector<WordCount> listed(const Counts& all) {
  std::vector<WordCount> words;
  words.reserve(all.size());
  all.for_each([&](std::string_view word, std::int64_t count) { words.push_back({word, count}); });
  return words;
}

std::vector<WordCount> sum(std::vector<Counts>& maps) {
  Counts& all = maps.front();
  for (std::size_t i = 1; i < maps.size(); ++i) {
    maps[i].for_each([&](std::string_view word, std::int64_t count) { all[word] += count; });
    maps[i] = Counts();
  }
  return listed(all);
}

}  // namespace

std::vector<WordCount> count_words(std::span<const std::string_view> texts, WordRule rule,
                                   const ProgressSink& progress) {
  const std::vector<std::string_view> chunks = cut(texts);
  std::int64_t total = 0, done = 0;
  for (const std::string_view chunk : chunks) total += static_cast<std::int64_t>(chunk.size());

  const auto slots = static_cast<std::size_t>(thread_count());
  std::vector<Counts> maps(slots);
  for (std::size_t first = 0; first < chunks.size(); first += kBatchChunks) {
    const std::size_t count = std::min(kBatchChunks, chunks.size() - first);
    parallel_each(static_cast<std::int64_t>(count), 1, [&](std::int64_t i) {
      const auto slot = static_cast<std::size_t>(thread_index());
      count_chunk(chunks[first + static_cast<std::size_t>(i)], rule, maps[slot]);
    });
    for (std::size_t i = first; i < first + count; ++i)
      done += static_cast<std::int64_t>(chunks[i].size());
    if (progress) progress({TrainingProgress::Phase::counting, done, total});
  }
  return sum(maps);
}

void WordCounter::add(std::span<const std::string_view> texts) {
  std::vector<Counts> maps(static_cast<std::size_t>(thread_count()));
  parallel_each(static_cast<std::int64_t>(texts.size()), 1, [&](std::int64_t i) {
    count_chunk(texts[static_cast<std::size_t>(i)], rule_,
                maps[static_cast<std::size_t>(thread_index())]);
  });
  for (const Counts& map : maps) {
    map.for_each([&](std::string_view word, std::int64_t count) {
      counts_[counts_.find(word) != nullptr ? word : kept(word)] += count;
    });
  }
}

std::string_view WordCounter::kept(std::string_view word) {
  constexpr std::size_t kBlock = std::size_t{1} << 16;
  if (blocks_.empty() || blocks_.back().capacity() - blocks_.back().size() < word.size())
    blocks_.emplace_back().reserve(std::max(kBlock, word.size()));
  std::string& block = blocks_.back();
  block += word;
  return std::string_view(block).substr(block.size() - word.size());
}

std::vector<WordCount> WordCounter::words() const { return listed(counts_); }

}  // namespace heddle::text
