#include "text/models/unigram.h"

#include <algorithm>

#include "text/unicode.h"

namespace heddle::text {

Unigram::Unigram(const std::vector<Scored>& tokens, std::optional<std::int32_t> unknown,
                 bool byte_fallback, bool float_scores)
    : float_scores_(float_scores), unknown_(unknown) {
  constexpr double penalty = 10;
  double lowest = 0;
  NameIds all;
  scores_.reserve(tokens.size());
  for (const Scored& token : tokens) {
    const auto id = static_cast<std::int32_t>(scores_.size());
    lowest = scores_.empty() ? token.score : std::min(lowest, token.score);
    scores_.push_back(token.score);
    all[token.name] = id;
    if (!token.in_text || token.name.empty()) continue;
    ids_[token.name] = id;
    trie_.add(token.name, id);
  }
  unknown_score_ = rounded(lowest - penalty);
  if (byte_fallback) bytes_ = byte_fallback_ids(all);
}

Unigram::Unigram(const std::vector<Scored>& tokens, std::int32_t unknown, const NameIds& names,
                 bool float_scores)
    : Unigram(tokens, std::nullopt, false, float_scores) {
  unknown_ = unknown;
  renamed_.reserve(tokens.size());
  for (const Scored& token : tokens)
    renamed_.push_back(find_name(names, token.name).value_or(unknown));
  ids_ = names;
}

// Viterbi: from left to right, the best way to each place where a character ends.
std::vector<Unigram::Step> Unigram::best_steps(std::string_view word) const {
  std::vector<Step> steps(word.size() + 1);
  const auto offer = [&](std::size_t start, std::size_t end, double score, std::int32_t id) {
    Step& step = steps[end];
    const double sum = rounded(steps[start].score + score);
    if (step.id == kNoToken || sum > step.score) step = {sum, start, id};
  };
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t character = code_point_at(word, at).bytes;
    bool is_known = false;  // the character is a token
    std::uint32_t node = ByteTrie::kRoot;
    for (std::size_t end = at; end < word.size();) {
      node = trie_.child(node, word[end++]);
      if (node == ByteTrie::kNowhere) break;
      const std::int32_t id = trie_.id(node);
      if (id < 0) continue;
      offer(at, end, scores_[static_cast<std::size_t>(id)], id);
      is_known = is_known || end - at == character;
    }
    if (!is_known) offer(at, at + character, unknown_score_, kUnknownToken);
    at += character;
  }
  return steps;
}

void Unigram::encode(std::string_view word, std::size_t offset,
                     std::vector<std::int32_t>& ids) const {
  const std::vector<Step> steps = best_steps(word);
  std::vector<std::size_t> ends;  // from the right
  for (std::size_t end = word.size(); end > 0; end = steps[end].start) ends.push_back(end);
  // Unknown characters in a row are one unknown token.
  std::size_t unknown_from = 0, unknown_to = 0;
  const auto is_unknown = [&](std::int32_t id) {
    return id == kUnknownToken || (renamed_.empty() && unknown_ && id == *unknown_);
  };
  const auto flush = [&] {
    if (unknown_to > unknown_from)
      append_unknown(word.substr(unknown_from, unknown_to - unknown_from), offset + unknown_from,
                     ids);
    unknown_from = unknown_to = 0;
  };
  for (auto end = ends.rbegin(); end != ends.rend(); ++end) {
    const Step& step = steps[*end];
    if (is_unknown(step.id)) {
      if (unknown_to == unknown_from) unknown_from = step.start;
      unknown_to = *end;
      continue;
    }
    flush();
    ids.push_back(renamed_.empty() ? step.id : renamed_[static_cast<std::size_t>(step.id)]);
  }
  flush();
}

void Unigram::append_unknown(std::string_view text, std::size_t offset,
                             std::vector<std::int32_t>& ids) const {
  if (const auto id = find_name(ids_, text)) {
    ids.push_back(*id);
  } else if (bytes_ && append_bytes(*bytes_, text, ids)) {
    return;
  } else if (unknown_) {
    ids.push_back(*unknown_);
  } else {
    fail_unknown(text, offset);
  }
}

}  // namespace heddle::text
