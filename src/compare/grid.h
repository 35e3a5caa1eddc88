// The grid of a comparison: "model.attention.kv_heads=1,2,6", and all combinations of several.
#pragma once

#include <string>
#include <vector>

namespace heddle::compare {

struct Assignment {
  std::string key;    // "model.attention.kv_heads"
  std::string value;  // as after --set: TOML, or a bare word

  std::string text() const { return key + "=" + value; }
  friend bool operator==(const Assignment&, const Assignment&) = default;
};

struct Variation {
  std::string key;
  std::vector<std::string> values;
};

// Commas separate values, except within quotes and brackets. Error when there is no key, no value
// or an empty one.
Variation parse_variation(const std::string& text);

// Every combination, the last variation changing fastest; one empty combination without variations.
// Error when a key comes twice or there are more than kMostVariants.
inline constexpr std::size_t kMostVariants = 256;
std::vector<std::vector<Assignment>> combinations(const std::vector<Variation>& variations);

// "kv_heads=2, position=rope": the last part of each key, all of it where two keys end alike.
std::string name_of(const std::vector<Assignment>& combination);

}  // namespace heddle::compare
