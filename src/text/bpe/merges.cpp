#include "text/bpe/merges.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <queue>

#include "heddle/error.h"

namespace heddle::text {

namespace {

// Words up to this length are scanned for each merge; longer ones pay for a heap.
constexpr std::size_t kShort = 48;
constexpr std::uint32_t kNoRank = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint32_t kNoSymbol = std::numeric_limits<std::uint32_t>::max();

struct WordSymbol {
  std::int32_t id;
  std::uint32_t previous, next;
};

// A symbol that was merged into the one before it.
constexpr std::int32_t kMergedAway = -1;

// Rank in the upper half, place in the lower: the smallest is the merge that comes next.
using Candidates = std::priority_queue<std::uint64_t, std::vector<std::uint64_t>, std::greater<>>;

}  // namespace

MergeTable::MergeTable(std::span<const Merge> merges) {
  std::uint32_t rank = 0;
  for (const Merge& merge : merges)
    rules_[pair_key(merge.left, merge.right)] = {rank++, merge.result};
}

std::uint32_t MergeTable::rank(std::int32_t left, std::int32_t right) const noexcept {
  const Rule* const rule = find(left, right);
  return rule == nullptr ? kNoRank : rule->rank;
}

void MergeTable::apply(std::vector<std::int32_t>& word) const {
  if (word.size() >= kNoSymbol)
    fail(ErrorCode::invalid_argument, "text", "a word is too long", "fewer than 2^32 bytes",
         std::to_string(word.size()));
  if (word.size() <= kShort) {
    apply_short(word);
  } else {
    apply_long(word);
  }
}

void MergeTable::apply_short(std::vector<std::int32_t>& word) const {
  std::size_t size = word.size();
  if (size < 2) return;
  std::array<std::uint32_t, kShort> ranks{};  // of each token with its right neighbour
  for (std::size_t i = 0; i + 1 < size; ++i) ranks[i] = rank(word[i], word[i + 1]);
  while (size > 1) {
    const auto* const best = std::min_element(ranks.begin(), ranks.begin() + size - 1);
    if (*best == kNoRank) break;
    const auto at = static_cast<std::size_t>(best - ranks.begin());
    word[at] = find(word[at], word[at + 1])->result;
    std::copy(word.begin() + at + 2, word.begin() + size, word.begin() + at + 1);
    std::copy(ranks.begin() + at + 1, ranks.begin() + size - 1, ranks.begin() + at);
    --size;
    if (at > 0) ranks[at - 1] = rank(word[at - 1], word[at]);
    if (at + 1 < size) ranks[at] = rank(word[at], word[at + 1]);
  }
  word.resize(size);
}

void MergeTable::apply_long(std::vector<std::int32_t>& word) const {
  const auto size = static_cast<std::uint32_t>(word.size());
  std::vector<WordSymbol> symbols(size);
  Candidates candidates;
  const auto offer = [&](std::uint32_t at) {
    const std::uint32_t next = symbols[at].next;
    if (next == kNoSymbol) return;
    const std::uint32_t found = rank(symbols[at].id, symbols[next].id);
    if (found != kNoRank) candidates.push((std::uint64_t{found} << 32) | at);
  };
  for (std::uint32_t i = 0; i < size; ++i)
    symbols[i] = {word[i], i == 0 ? kNoSymbol : i - 1, i + 1 < size ? i + 1 : kNoSymbol};
  for (std::uint32_t i = 0; i < size; ++i) offer(i);

  while (!candidates.empty()) {
    const auto at = static_cast<std::uint32_t>(candidates.top());
    const auto wanted = static_cast<std::uint32_t>(candidates.top() >> 32);
    candidates.pop();
    WordSymbol& left = symbols[at];
    if (left.id == kMergedAway || left.next == kNoSymbol) continue;
    // A candidate is stale when one of the two was merged with another neighbour meanwhile.
    const Rule* const rule = find(left.id, symbols[left.next].id);
    if (rule == nullptr || rule->rank != wanted) continue;
    symbols[left.next].id = kMergedAway;
    left.id = rule->result;
    left.next = symbols[left.next].next;
    if (left.next != kNoSymbol) symbols[left.next].previous = at;
    offer(at);
    if (left.previous != kNoSymbol) offer(left.previous);
  }
  word.clear();
  for (const WordSymbol& symbol : symbols)
    if (symbol.id != kMergedAway) word.push_back(symbol.id);
}

}  // namespace heddle::text
