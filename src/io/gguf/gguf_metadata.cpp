#include "io/gguf/gguf_metadata.h"

#include <array>
#include <optional>
#include <type_traits>

#include "base/number_text.h"
#include "io/errors.h"

namespace heddle::io {
namespace {

constexpr std::array<std::string_view, 13> kTypeNames = {
    "u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "string", "array", "u64", "i64", "f64"};

static_assert(std::variant_size_v<GgufValue> == kTypeNames.size());
static_assert(std::variant_size_v<GgufArray> == kTypeNames.size());
static_assert(std::is_same_v<std::variant_alternative_t<kGgufBool, GgufValue>, bool>);
static_assert(std::is_same_v<std::variant_alternative_t<kGgufString, GgufValue>, std::string>);
static_assert(std::is_same_v<std::variant_alternative_t<kGgufArray, GgufValue>, GgufArray>);

template <class T>
constexpr bool is_gguf_integer = std::is_integral_v<T> && !std::is_same_v<T, bool>;
template <class T>
constexpr bool is_gguf_number = is_gguf_integer<T> || std::is_floating_point_v<T>;

// None where the value is of another kind, or too large.
template <class T>
std::optional<std::int64_t> as_integer(const T& value) {
  if constexpr (is_gguf_integer<T>) {
    if (std::in_range<std::int64_t>(value)) return static_cast<std::int64_t>(value);
  }
  return std::nullopt;
}

template <class T>
std::optional<double> as_number(const T& value) {
  if constexpr (is_gguf_number<T>) return static_cast<double>(value);
  return std::nullopt;
}

std::size_t array_size(const GgufArray& array) {
  return std::visit(
      [](const auto& values) -> std::size_t {
        if constexpr (requires { values.size(); }) return values.size();
        return 0;
      },
      array);
}

// A value as errors show it.
std::string value_text(const GgufValue& value) {
  return std::visit(
      [&](const auto& v) -> std::string {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::string>) return shown(v);
        if constexpr (std::is_same_v<T, bool>) return v ? "true" : "false";
        if constexpr (std::is_same_v<T, GgufArray>)
          return "an array of " + std::to_string(array_size(v)) + " of " +
                 std::string(gguf_type_name(v.index()));
        if constexpr (std::is_floating_point_v<T>) return number_text(v);
        if constexpr (is_gguf_integer<T>)
          return std::to_string(v) + " (" + std::string(gguf_type_name(value.index())) + ")";
        return {};
      },
      value);
}

}  // namespace

std::string_view gguf_type_name(std::size_t number) {
  return number < kTypeNames.size() ? kTypeNames[number] : std::string_view();
}

void GgufMetadata::add(std::string key, GgufValue value) {
  if (!index_.try_emplace(key, entries_.size()).second)
    fail_io(where_, "the key " + shown(key) + " comes twice");
  entries_.emplace_back(std::move(key), std::move(value));
}

std::vector<std::string> GgufMetadata::keys() const {
  std::vector<std::string> names;
  names.reserve(entries_.size());
  for (const auto& [key, value] : entries_) names.push_back(key);
  return names;
}

const GgufValue* GgufMetadata::find(std::string_view key) const {
  const auto found = index_.find(key);
  return found == index_.end() ? nullptr : &entries_[found->second].second;
}

const GgufValue& GgufMetadata::value(std::string_view key) const {
  if (const GgufValue* found = find(key)) return *found;
  constexpr std::size_t kSearched = 4000;  // hostile files have more
  const std::string near = entries_.size() <= kSearched ? nearest_name(key, keys()) : "";
  fail_io(where_, "key " + shown(key) + " is missing", {},
          near.empty() ? "" : "a key " + shown(near) + " in its place");
}

bool GgufMetadata::is_array(std::string_view key) const {
  const GgufValue* found = find(key);
  return found != nullptr && std::holds_alternative<GgufArray>(*found);
}

void GgufMetadata::refuse(std::string_view key, std::string_view expected) const {
  fail_io(where_, "key " + shown(key), expected, value_text(value(key)));
}

std::string GgufMetadata::string(std::string_view key) const {
  const auto* text = std::get_if<std::string>(&value(key));
  if (text == nullptr) refuse(key, "a string");
  return *text;
}

bool GgufMetadata::boolean(std::string_view key) const {
  const auto* flag = std::get_if<bool>(&value(key));
  if (flag == nullptr) refuse(key, "true or false");
  return *flag;
}

double GgufMetadata::number(std::string_view key) const {
  const auto found = std::visit([](const auto& v) { return as_number(v); }, value(key));
  if (!found) refuse(key, "a number");
  return *found;
}

std::int64_t GgufMetadata::integer(std::string_view key, std::int64_t low,
                                   std::int64_t high) const {
  const auto found = std::visit([](const auto& v) { return as_integer(v); }, value(key));
  const bool any = low == std::numeric_limits<std::int64_t>::min() &&
                   high == std::numeric_limits<std::int64_t>::max();
  if (!found || *found < low || *found > high)
    refuse(key, any ? "an integer below 2^63"
                    : "an integer from " + std::to_string(low) + " to " + std::to_string(high));
  return *found;
}

const GgufArray& GgufMetadata::array(std::string_view key, std::string_view expected) const {
  const auto* found = std::get_if<GgufArray>(&value(key));
  if (found == nullptr) refuse(key, expected);
  return *found;
}

std::vector<std::string> GgufMetadata::strings(std::string_view key) const {
  constexpr std::string_view kExpected = "an array of strings";
  const auto* texts = std::get_if<std::vector<std::string>>(&array(key, kExpected));
  if (texts == nullptr) refuse(key, kExpected);
  return *texts;
}

std::vector<double> GgufMetadata::numbers(std::string_view key) const {
  constexpr std::string_view kExpected = "an array of numbers";
  return std::visit(
      [&](const auto& values) -> std::vector<double> {
        if constexpr (requires { requires is_gguf_number<std::decay_t<decltype(values[0])>>; })
          return {values.begin(), values.end()};
        refuse(key, kExpected);
      },
      array(key, kExpected));
}

std::vector<std::int64_t> GgufMetadata::integers(std::string_view key) const {
  constexpr std::string_view kExpected = "an array of integers below 2^63";
  return std::visit(
      [&](const auto& values) -> std::vector<std::int64_t> {
        if constexpr (requires { requires is_gguf_integer<std::decay_t<decltype(values[0])>>; }) {
          for (const auto v : values)
            if (!std::in_range<std::int64_t>(v)) refuse(key, kExpected);
          return {values.begin(), values.end()};
        }
        refuse(key, kExpected);
      },
      array(key, kExpected));
}

std::string GgufMetadata::string_or(std::string_view key, std::string fallback) const {
  return has(key) ? string(key) : std::move(fallback);
}

bool GgufMetadata::boolean_or(std::string_view key, bool fallback) const {
  return has(key) ? boolean(key) : fallback;
}

double GgufMetadata::number_or(std::string_view key, double fallback) const {
  return has(key) ? number(key) : fallback;
}

std::int64_t GgufMetadata::integer_or(std::string_view key, std::int64_t fallback, std::int64_t low,
                                      std::int64_t high) const {
  return has(key) ? integer(key, low, high) : fallback;
}

}  // namespace heddle::io
