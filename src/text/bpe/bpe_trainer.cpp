#include "text/bpe/bpe_trainer.h"

#include <algorithm>
#include <array>
#include <limits>
#include <queue>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "heddle/error.h"
#include "text/bpe/byte_alphabet.h"
#include "text/bpe/flat_map.h"

namespace heddle::text {

namespace {

using Place = std::uint32_t;
constexpr Place kNone = std::numeric_limits<Place>::max();
constexpr std::int32_t kGone = -1;   // merged into the symbol before it
constexpr std::int64_t kFewest = 2;  // a pair seen once says nothing about other texts
constexpr std::int64_t kReportEvery = 256;

// One token of one word. All words lie one after the other in one list.
struct Symbol {
  std::int32_t id;
  Place previous, next;
  std::uint32_t word;
};

struct Pair {
  std::int32_t left = 0, right = 0;
  std::int64_t count = 0;     // in all texts: words count as often as they come
  std::vector<Place> places;  // of its left symbol; some may no longer hold
  std::int64_t touched = -1;  // the last merge that added to it
};

// A pair's count when it was pushed onto the heap: never less than its count now, unless it was
// pushed again. So the heap's first entry that is still valid is the pair to merge.
struct Candidate {
  std::int64_t count;
  std::int32_t left, right;
  std::uint32_t pair;

  // The heap has the largest first: the highest count, then the smallest ids.
  bool operator<(const Candidate& other) const {
    if (count != other.count) return count < other.count;
    if (left != other.left) return left > other.left;
    return right > other.right;
  }
};

class Trainer {
 public:
  explicit Trainer(std::span<const WordCount> words) : words_(words) {
    const std::array<std::uint8_t, 256> bytes = bytes_by_name();
    for (std::size_t id = 0; id < bytes.size(); ++id) {
      byte_ids_[bytes[id]] = static_cast<std::int32_t>(id);
      add_token(std::string(1, static_cast<char>(bytes[id])));
    }
    add_words();
    for (std::uint32_t pair = 0; pair < pairs_.size(); ++pair) offer(pair);
  }

  LearnedMerges run(std::size_t tokens, const ProgressSink& progress) {
    while (learned_.tokens.size() < tokens && !candidates_.empty()) {
      const Candidate best = candidates_.top();
      candidates_.pop();
      if (best.count != pairs_[best.pair].count) {
        offer(best.pair);
        continue;
      }
      merge(best.pair);
      const auto done = static_cast<std::int64_t>(learned_.tokens.size());
      if (progress && done % kReportEvery == 0)
        progress({TrainingProgress::Phase::merging, done, static_cast<std::int64_t>(tokens)});
    }
    return std::move(learned_);
  }

 private:
  // The id of the token. Two merges can spell the same bytes: they share it.
  std::int32_t add_token(const std::string& bytes) {
    const auto id = static_cast<std::int32_t>(learned_.tokens.size());
    const auto [known, is_new] = token_ids_.try_emplace(bytes, id);
    if (is_new) learned_.tokens.push_back(bytes);
    return known->second;
  }

  void add_words() {
    std::size_t total = 0;
    for (const WordCount& word : words_) total += word.word.size();
    if (total >= kNone)
      fail(ErrorCode::invalid_argument, "tokenizer", "too many different words to train on",
           "fewer than 2^32 bytes of them", std::to_string(total));
    symbols_.reserve(total);
    for (std::size_t i = 0; i < words_.size(); ++i) add_word(static_cast<std::uint32_t>(i));
  }

  void add_word(std::uint32_t index) {
    const WordCount& word = words_[index];
    const auto first = static_cast<Place>(symbols_.size());
    const auto end = static_cast<Place>(first + word.word.size());
    for (Place at = first; at < end; ++at) {
      const std::int32_t id = byte_ids_[static_cast<std::uint8_t>(word.word[at - first])];
      symbols_.push_back({id, at == first ? kNone : at - 1, at + 1 == end ? kNone : at + 1, index});
      if (at > first) change(symbols_[at - 1].id, id, word.count, at - 1);
    }
  }

  // Adds to the count of a pair, and notes where it is when there is a place.
  std::uint32_t change(std::int32_t left, std::int32_t right, std::int64_t by,
                       Place place = kNone) {
    std::uint32_t& entry = pair_index_[pair_key(left, right)];
    if (entry == 0) {
      pairs_.push_back({left, right, 0, {}, -1});
      entry = static_cast<std::uint32_t>(pairs_.size());
    }
    Pair& pair = pairs_[entry - 1];
    pair.count += by;
    if (place != kNone) pair.places.push_back(place);
    return entry - 1;
  }

  void offer(std::uint32_t pair) {
    const Pair& p = pairs_[pair];
    if (p.count >= kFewest) candidates_.push({p.count, p.left, p.right, pair});
  }

  void grow(std::int32_t left, std::int32_t right, std::int64_t by, Place place) {
    const std::uint32_t pair = change(left, right, by, place);
    const auto step = static_cast<std::int64_t>(learned_.merges.size());
    if (pairs_[pair].touched == step) return;
    pairs_[pair].touched = step;
    grown_.push_back(pair);
  }

  void merge(std::uint32_t pair) {
    const std::int32_t left = pairs_[pair].left, right = pairs_[pair].right;
    const std::int32_t result = add_token(learned_.tokens[static_cast<std::size_t>(left)] +
                                          learned_.tokens[static_cast<std::size_t>(right)]);
    learned_.merges.push_back({left, right, result});
    std::vector<Place> places = std::exchange(pairs_[pair].places, {});
    // Runs of one token ("aaa") are merged from the left. Places come in this order, unless two
    // merges have made the same token.
    if (!std::is_sorted(places.begin(), places.end())) std::sort(places.begin(), places.end());
    grown_.clear();
    for (const Place place : places) merge_at(place, learned_.merges.back());
    for (const std::uint32_t grown : grown_) offer(grown);
  }

  void merge_at(Place place, const Merge& rule) {
    Symbol& left = symbols_[place];
    if (left.id != rule.left || left.next == kNone) return;
    Symbol& right = symbols_[left.next];
    if (right.id != rule.right) return;
    const std::int64_t count = words_[left.word].count;
    change(rule.left, rule.right, -count);
    if (left.previous != kNone) {
      const std::int32_t before = symbols_[left.previous].id;
      change(before, rule.left, -count);
      grow(before, rule.result, count, left.previous);
    }
    left.id = rule.result;
    left.next = right.next;
    right.id = kGone;
    if (left.next != kNone) {
      Symbol& after = symbols_[left.next];
      after.previous = place;
      change(rule.right, after.id, -count);
      grow(rule.result, after.id, count, place);
    }
  }

  std::span<const WordCount> words_;
  std::array<std::int32_t, 256> byte_ids_{};
  std::vector<Symbol> symbols_;
  std::vector<Pair> pairs_;
  FlatMap<std::uint64_t, std::uint32_t> pair_index_;  // one more than the place in pairs_
  std::priority_queue<Candidate> candidates_;
  std::vector<std::uint32_t> grown_;  // by the merge at hand
  std::unordered_map<std::string, std::int32_t> token_ids_;
  LearnedMerges learned_;
};

}  // namespace

LearnedMerges learn_merges(std::span<const WordCount> words, std::size_t tokens,
                           const ProgressSink& progress) {
  return Trainer(words).run(tokens, progress);
}

}  // namespace heddle::text
