// A model as its GGUF file describes it: keys such as "llama.block_count", each with a value of one
// of 13 types. Read with getters whose errors name the file and the key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace heddle::io {

// The place of a type in these two lists is its number in the file. Arrays of arrays, place 9 of
// the first list, are something that the format allows and no reader takes.
struct NoArray {
  friend bool operator==(NoArray, NoArray) = default;
};
using GgufArray =
    std::variant<std::vector<std::uint8_t>, std::vector<std::int8_t>, std::vector<std::uint16_t>,
                 std::vector<std::int16_t>, std::vector<std::uint32_t>, std::vector<std::int32_t>,
                 std::vector<float>, std::vector<bool>, std::vector<std::string>, NoArray,
                 std::vector<std::uint64_t>, std::vector<std::int64_t>, std::vector<double>>;
using GgufValue = std::variant<std::uint8_t, std::int8_t, std::uint16_t, std::int16_t,
                               std::uint32_t, std::int32_t, float, bool, std::string, GgufArray,
                               std::uint64_t, std::int64_t, double>;

inline constexpr std::size_t kGgufBool = 7;
inline constexpr std::size_t kGgufString = 8;
inline constexpr std::size_t kGgufArray = 9;

std::string_view gguf_type_name(std::size_t number);  // "u8", ... "array"; "" for other numbers

class GgufMetadata {
 public:
  GgufMetadata() = default;
  // `where` is what errors name: the path of the file.
  explicit GgufMetadata(std::string where) : where_(std::move(where)) {}

  // Throws Error for a key that is there already.
  void add(std::string key, GgufValue value);

  const std::vector<std::pair<std::string, GgufValue>>& entries() const noexcept {
    return entries_;  // in the order of the file
  }
  std::vector<std::string> keys() const;
  bool has(std::string_view key) const { return find(key) != nullptr; }
  bool is_array(std::string_view key) const;           // false as well when it is not there
  const GgufValue* find(std::string_view key) const;   // null when it is not there
  const GgufValue& value(std::string_view key) const;  // throws Error, naming the nearest

  std::string string(std::string_view key) const;
  bool boolean(std::string_view key) const;
  double number(std::string_view key) const;  // of any of the types of numbers
  // Of any of the types of integers: files differ in which one they use.
  std::int64_t integer(std::string_view key,
                       std::int64_t low = std::numeric_limits<std::int64_t>::min(),
                       std::int64_t high = std::numeric_limits<std::int64_t>::max()) const;
  std::vector<std::string> strings(std::string_view key) const;
  std::vector<double> numbers(std::string_view key) const;
  std::vector<std::int64_t> integers(std::string_view key) const;

  // The same, or the fallback when the key is not there.
  std::string string_or(std::string_view key, std::string fallback) const;
  bool boolean_or(std::string_view key, bool fallback) const;
  double number_or(std::string_view key, double fallback) const;
  std::int64_t integer_or(std::string_view key, std::int64_t fallback,
                          std::int64_t low = std::numeric_limits<std::int64_t>::min(),
                          std::int64_t high = std::numeric_limits<std::int64_t>::max()) const;

  // Refuses the value of a key: for conditions that only the caller knows.
  [[noreturn]] void refuse(std::string_view key, std::string_view expected) const;

 private:
  const GgufArray& array(std::string_view key, std::string_view expected) const;

  std::string where_ = "GGUF metadata";
  std::vector<std::pair<std::string, GgufValue>> entries_;
  std::map<std::string, std::size_t, std::less<>> index_;
};

}  // namespace heddle::io
