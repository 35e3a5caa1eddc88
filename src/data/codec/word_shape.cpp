#include "data/codec/word_shape.h"

#include <algorithm>

namespace heddle::data {
namespace {

constexpr std::int64_t kFewestOfShape = 5;  // rare words of a shape, for it to be a token

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_lower(char c) { return (c >= 'a' && c <= 'z') || static_cast<unsigned char>(c) >= 0x80; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
char lowered(char c) { return is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c; }

std::string letters_of(std::string_view word) {
  const bool upper = std::any_of(word.begin(), word.end(), is_upper);
  const bool lower = std::any_of(word.begin(), word.end(), is_lower);
  if (!upper) return lower ? "x" : "";
  if (!lower) return "X";
  const bool first_only =
      is_upper(word.front()) && std::none_of(word.begin() + 1, word.end(), is_upper);
  return first_only ? "Xx" : "xX";
}

// The last `count` characters, where they are letters.
std::string ending_of(std::string_view word, int count) {
  std::size_t begin = word.size();
  for (int i = 0; i < count && begin > 0; ++i) {
    --begin;
    while (begin > 0 && (static_cast<unsigned char>(word[begin]) & 0xC0) == 0x80) --begin;
  }
  std::string ending(word.substr(begin));
  std::transform(ending.begin(), ending.end(), ending.begin(), lowered);
  return std::all_of(ending.begin(), ending.end(), is_lower) ? ending : std::string();
}

}  // namespace

std::string word_shape(std::string_view word, int ending) {
  std::string shape = "<shape:" + letters_of(word);
  if (std::any_of(word.begin(), word.end(), is_digit)) shape += '9';
  if (word.find('-') != std::string_view::npos) shape += '-';
  if (word.find_first_of("@/_") != std::string_view::npos || word.find("www.") == 0) shape += '@';
  const auto sign = [](char c) { return !is_upper(c) && !is_lower(c) && !is_digit(c) && c != '-'; };
  if (std::any_of(word.begin(), word.end(), sign)) shape += '.';
  return shape + ":" + ending_of(word, ending) + ">";
}

std::vector<std::string> shape_rare_words(std::span<const std::string_view> words,
                                          std::int64_t min_count) {
  WordCounts counts;
  for (const std::string_view word : words) ++counts[word];

  std::unordered_map<std::string, std::int64_t> shapes;
  for (const auto& [word, count] : counts) {
    if (count >= min_count) continue;
    for (int ending = 0; ending <= kLongestEnding; ++ending)
      shapes[word_shape(word, ending)] += count;
  }

  std::vector<std::string> result;
  result.reserve(words.size());
  for (const std::string_view word : words) {
    if (counts[word] >= min_count) {
      result.emplace_back(word);
      continue;
    }
    int ending = kLongestEnding;
    while (ending > 0 && shapes[word_shape(word, ending)] < kFewestOfShape) --ending;
    result.push_back(word_shape(word, ending));
  }
  return result;
}

}  // namespace heddle::data
