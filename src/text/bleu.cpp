#include "text/bleu.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "heddle/error.h"

namespace heddle::text {

namespace {

using Words = std::vector<std::string>;

void replace_all(std::string& line, std::string_view from, std::string_view to) {
  for (std::size_t at = line.find(from); at != std::string::npos; at = line.find(from, at)) {
    line.replace(at, from.size(), to);
    at += to.size();
  }
}

// Bytes of the white space at `at`, as Python's str.split() knows it; 0: none.
std::size_t white_space(std::string_view line, std::size_t at) {
  const auto byte = [&](std::size_t i) -> unsigned {
    return at + i < line.size() ? static_cast<unsigned char>(line[at + i]) : 0u;
  };
  const unsigned first = byte(0);
  if (first == ' ' || (first >= 0x09 && first <= 0x0D) || (first >= 0x1C && first <= 0x1F))
    return 1;
  if (first == 0xC2) return byte(1) == 0x85 || byte(1) == 0xA0 ? 2 : 0;
  if (first < 0xE1 || first > 0xE3) return 0;
  const unsigned code = ((first & 0x0F) << 12) | ((byte(1) & 0x3F) << 6) | (byte(2) & 0x3F);
  const bool white = code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 ||
                     code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
  return white && byte(1) >= 0x80 && byte(2) >= 0x80 ? 3 : 0;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_stop(char c) { return c == '.' || c == ','; }
bool is_punctuation(char c) {
  return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') ||
         (c >= '(' && c <= '+') || (c >= ':' && c <= '@') || c == '/';
}

// The rules are substitutions of patterns of two characters that do not overlap: what a match took
// is not looked at again. Bytes serve as well as characters, because all that is named is ASCII.
template <class Matches>
std::string rewrite_pairs(const std::string& line, const Matches& matches, std::string_view before,
                          std::string_view between, std::string_view after) {
  std::string out;
  out.reserve(line.size() + line.size() / 2);
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (i + 1 < line.size() && matches(line[i], line[i + 1])) {
      out.append(before).append(1, line[i]).append(between).append(1, line[i + 1]).append(after);
      ++i;
    } else {
      out.push_back(line[i]);
    }
  }
  return out;
}

std::string separate_punctuation(const std::string& line) {
  std::string out;
  out.reserve(line.size() + line.size() / 2);
  for (const char c : line) {
    if (is_punctuation(c))
      out.append(1, ' ').append(1, c).append(1, ' ');
    else
      out.push_back(c);
  }
  return out;
}

Words split_white(std::string_view line) {
  Words words;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < line.size();) {
    const std::size_t white = white_space(line, i);
    if (white == 0) {
      ++i;
      continue;
    }
    if (i > begin) words.emplace_back(line.substr(begin, i - begin));
    i += white;
    begin = i;
  }
  if (line.size() > begin) words.emplace_back(line.substr(begin));
  return words;
}

// The line up to its last word: a line break at the end takes no part in the rules.
std::string_view without_end(std::string_view line) {
  std::size_t end = 0;
  for (std::size_t i = 0; i < line.size();) {
    const std::size_t white = white_space(line, i);
    i += white == 0 ? 1 : white;
    if (white == 0) end = i;
  }
  return line.substr(0, end);
}

struct BleuCounts {
  std::array<std::int64_t, kBleuOrder> correct{}, total{};
};

using Grams = std::unordered_map<std::string, std::int64_t>;

Grams grams(const Words& words, std::size_t order) {
  Grams counts;
  for (std::size_t i = 0; i + order <= words.size(); ++i) {
    std::string key;
    for (std::size_t j = 0; j < order; ++j) key.append(words[i + j]).push_back(' ');
    ++counts[key];
  }
  return counts;
}

// An n-gram of the hypothesis is correct as often as the reference has it.
void count(const Words& hypothesis, const Words& reference, BleuCounts& counts) {
  for (std::size_t n = 0; n < kBleuOrder; ++n) {
    const Grams expected = grams(reference, n + 1);
    for (const auto& [gram, times] : grams(hypothesis, n + 1)) {
      counts.total[n] += times;
      const auto found = expected.find(gram);
      if (found != expected.end()) counts.correct[n] += std::min(times, found->second);
    }
  }
}

// score = brevity · exp(mean of log precision). The i-th order without a match counts as 1 / 2^i
// matches.
void finish(const BleuCounts& counts, Bleu& bleu) {
  if (bleu.words < bleu.reference_words) {
    const double ratio =
        static_cast<double>(bleu.reference_words) / static_cast<double>(bleu.words);
    bleu.brevity_penalty = bleu.words > 0 ? std::exp(1 - ratio) : 0;
  }
  const auto none = [](std::int64_t n) { return n == 0; };
  if (std::all_of(counts.correct.begin(), counts.correct.end(), none)) return;
  double halves = 1;
  double logs = 0;
  for (std::size_t n = 0; n < kBleuOrder; ++n) {
    if (counts.total[n] == 0) return;  // no sentence has n words: the score is 0 by definition
    if (counts.correct[n] == 0) halves *= 2;
    const double matches =
        counts.correct[n] == 0 ? 1 / halves : static_cast<double>(counts.correct[n]);
    bleu.precisions[n] = 100 * matches / static_cast<double>(counts.total[n]);
    logs += std::log(bleu.precisions[n]);
  }
  bleu.score = bleu.brevity_penalty * std::exp(logs / kBleuOrder);
}

}  // namespace

std::vector<std::string> split_13a(std::string_view text) {
  std::string line(without_end(text));
  replace_all(line, "<skipped>", "");
  replace_all(line, "-\n", "");
  replace_all(line, "\n", " ");
  replace_all(line, "&quot;", "\"");
  replace_all(line, "&amp;", "&");
  replace_all(line, "&lt;", "<");
  replace_all(line, "&gt;", ">");
  line = separate_punctuation(" " + line + " ");
  line =
      rewrite_pairs(line, [](char a, char b) { return !is_digit(a) && is_stop(b); }, "", " ", " ");
  line =
      rewrite_pairs(line, [](char a, char b) { return is_stop(a) && !is_digit(b); }, " ", " ", "");
  line = rewrite_pairs(line, [](char a, char b) { return is_digit(a) && b == '-'; }, "", " ", " ");
  return split_white(line);
}

Bleu corpus_bleu(std::span<const std::string> hypotheses, std::span<const std::string> references) {
  if (hypotheses.size() != references.size())
    fail(ErrorCode::invalid_argument, "corpus_bleu", "references",
         "as many as hypotheses, " + std::to_string(hypotheses.size()),
         std::to_string(references.size()));
  Bleu bleu;
  BleuCounts counts;
  for (std::size_t i = 0; i < hypotheses.size(); ++i) {
    const Words hypothesis = split_13a(hypotheses[i]);
    const Words reference = split_13a(references[i]);
    bleu.words += static_cast<std::int64_t>(hypothesis.size());
    bleu.reference_words += static_cast<std::int64_t>(reference.size());
    count(hypothesis, reference, counts);
  }
  finish(counts, bleu);
  return bleu;
}

}  // namespace heddle::text
