// Clues in the form of an unknown word: "Heddling" ends in -ing and is a name or begins a sentence.
// A tagger that knows rare words by their shapes guesses new ones much better than one that sees
// <unk> for all of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace heddle::data {

inline constexpr int kLongestEnding = 3;

// Case, digits, hyphens and other signs of the word, and its last `ending` characters in lower case
// (ASCII letters; others have no case here): "<shape:Xx:ing>". It has no white space.
std::string word_shape(std::string_view word, int ending);

using WordCounts = std::unordered_map<std::string_view, std::int64_t>;

// The words with those that are rarer than `min_count` replaced by their shapes, each with the
// longest ending that is shared by enough rare words to be learned.
std::vector<std::string> shape_rare_words(std::span<const std::string_view> words,
                                          std::int64_t min_count);

}  // namespace heddle::data
