#include "io/json/json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/memory_error.h"
#include "io/errors.h"
#include "io/files/file.h"
#include "io/files/memory_limit.h"

namespace heddle::io {
namespace {

using Value = nlohmann::json;

// "[]," is three bytes in a file, and as a value of an array that grows it is 64 and more.
constexpr std::size_t kPerValue = 80;

// Tells where it is by writing to a place outside, because the parser copies its iterators.
class Cursor {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Cursor(const char* at, const char** seen) : at_(at), seen_(seen) {}
  const char& operator*() const { return *at_; }
  Cursor& operator++() {
    *seen_ = ++at_;
    return *this;
  }
  Cursor operator++(int) {
    Cursor old = *this;
    ++*this;
    return old;
  }
  bool operator==(const Cursor& other) const { return at_ == other.at_; }
  bool operator!=(const Cursor& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  const char** seen_;
};

// Builds the document from the parser's events, and refuses what nlohmann's own builder takes: any
// depth, and keys that come twice (the last one would win in silence).
class Builder {
 public:
  Builder(std::string_view text, const std::string& where, const JsonLimits& limits)
      : text_(text), where_(where), limits_(limits), seen_(text.data()) {}

  Value build() {
    // No JSON text has one, and the parser would take it for the end of the text.
    if (const std::size_t nul = text_.find('\0'); nul != std::string_view::npos)
      refuse(nul, "a NUL byte");
    const Cursor begin(std::to_address(text_.begin()), &seen_);
    const Cursor end(std::to_address(text_.end()), &seen_);
    Value::sax_parse(begin, end, this);
    return std::move(root_);
  }

  bool null() { return add(nullptr); }
  bool boolean(bool v) { return add(v); }
  bool number_integer(Value::number_integer_t v) { return add(v); }
  bool number_unsigned(Value::number_unsigned_t v) { return add(v); }
  bool number_float(Value::number_float_t v, const std::string&) { return add(v); }
  bool string(std::string& v) { return add(std::move(v)); }
  bool binary(Value::binary_t&) { return false; }  // JSON text has none
  bool start_object(std::size_t) { return open(Value::object()); }
  bool start_array(std::size_t) { return open(Value::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    auto& members = open_.back()->get_ref<Value::object_t&>();
    const auto [member, added] = members.try_emplace(std::move(name));
    if (!added) refuse(offset(), "the key " + shown(member->first) + " comes twice");
    member_ = &member->second;
    return true;
  }

  bool parse_error(std::size_t position, const std::string& token, const Value::exception& error) {
    // "[code] parse error at line 1, column 2: what we want; last read: 'of any length'"
    std::string_view message = error.what();
    message.remove_prefix(std::min(message.size(), message.find("] ") + 2));
    if (message.starts_with("parse error"))
      message.remove_prefix(std::min(message.size(), message.find(": ") + 2));
    message = message.substr(0, message.find("; last read"));
    const std::size_t tail = token.size() - std::min<std::size_t>(token.size(), 40);
    refuse(position == 0 ? 0 : position - 1, "is not JSON: " + std::string(message.substr(0, 200)),
           shown(std::string_view(token).substr(tail)));
  }

 private:
  std::size_t offset() const { return static_cast<std::size_t>(seen_ - text_.data()); }

  [[noreturn]] void refuse(std::size_t at, const std::string& problem,
                           const std::string& got = {}) const {
    const LineColumn place = line_column(text_, at);
    fail_io(where_ + ":" + std::to_string(place.line) + ":" + std::to_string(place.column), problem,
            {}, got);
  }

  Value* put(Value&& value) {
    if (++values_ > most_values_)
      refuse(offset(), "has too many values for the memory that this process may use",
             "more than " + std::to_string(most_values_));
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    if (open_.back()->is_object()) {
      *member_ = std::move(value);
      return member_;
    }
    auto& elements = open_.back()->get_ref<Value::array_t&>();
    return &elements.emplace_back(std::move(value));
  }
  bool add(Value value) {
    put(std::move(value));
    return true;
  }
  bool open(Value value) {
    if (open_.size() >= limits_.max_depth)
      refuse(offset() - 1, "is nested too deeply",
             "more than " + std::to_string(limits_.max_depth) + " levels");
    open_.push_back(put(std::move(value)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  std::string_view text_;
  const std::string& where_;
  const JsonLimits& limits_;
  const char* seen_;
  Value root_;
  std::vector<Value*> open_;  // objects and arrays not yet closed
  Value* member_ = nullptr;   // of the innermost object: where its next value goes
  std::size_t values_ = 0;
  const std::size_t most_values_ = item_limit(kPerValue);
};

// A key as part of a path: as it is, unless it would do harm in a message.
std::string path_part(std::string_view key) {
  const bool harmless = !key.empty() && key.size() <= 100 && std::ranges::all_of(key, [](char c) {
    return c > ' ' && c < 0x7f && c != '"';
  });
  return harmless ? std::string(key) : shown(key);
}

std::string described(const Value& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array";
  if (value.is_string()) return shown(value.get_ref<const std::string&>());
  return value.dump();
}

}  // namespace

Json::Json(std::shared_ptr<const Value> value, std::shared_ptr<const std::string> file,
           std::string path)
    : value_(std::move(value)), file_(std::move(file)), path_(std::move(path)) {}

Json Json::read(const std::string& path, const JsonLimits& limits) {
  return parse(read_file(path, limits.max_bytes), path, limits);
}

Json Json::parse(std::string_view text, const std::string& where, const JsonLimits& limits) {
  if (text.size() > limits.max_bytes)
    fail_io(where, "is too large", "at most " + std::to_string(limits.max_bytes) + " bytes",
            std::to_string(text.size()));
  return with_stage("reading " + where, [&] {
    Builder builder(text, where, limits);
    return Json(std::make_shared<const Value>(builder.build()),
                std::make_shared<const std::string>(where), "");
  });
}

bool Json::is_null() const noexcept { return value_->is_null(); }
bool Json::is_object() const noexcept { return value_->is_object(); }
bool Json::is_array() const noexcept { return value_->is_array(); }
bool Json::is_string() const noexcept { return value_->is_string(); }
bool Json::is_number() const noexcept { return value_->is_number(); }
bool Json::is_integer() const noexcept { return value_->is_number_integer(); }
bool Json::is_boolean() const noexcept { return value_->is_boolean(); }

void Json::refuse(std::string_view expected) const {
  fail_io(*file_, path_.empty() ? "the document" : "key " + path_, expected, described(*value_));
}

Json Json::child(const Value& value, std::string path) const {
  return {std::shared_ptr<const Value>(value_, &value), file_, std::move(path)};
}

bool Json::has(std::string_view key) const {
  if (!is_object()) refuse("an object");
  const auto found = value_->find(key);
  return found != value_->end() && !found->is_null();
}

Json Json::at(std::string_view key) const {
  if (!is_object()) refuse("an object");
  const auto found = value_->find(key);
  const std::string path = (path_.empty() ? "" : path_ + ".") + path_part(key);
  if (found == value_->end()) {
    const std::string near = nearest_name(key, keys());
    fail_io(*file_, "key " + path + " is missing", {},
            near.empty() ? "" : "a key " + shown(near) + " in its place");
  }
  return child(*found, path);
}

std::vector<std::string> Json::keys() const {
  if (!is_object()) refuse("an object");
  std::vector<std::string> names;
  names.reserve(value_->size());
  for (const auto& [name, value] : value_->get_ref<const Value::object_t&>()) names.push_back(name);
  return names;
}

std::size_t Json::size() const {
  if (!is_array() && !is_object()) refuse("an array");
  return value_->size();
}

Json Json::at(std::size_t index) const {
  if (!is_array()) refuse("an array");
  if (index >= value_->size()) refuse("an array of more than " + std::to_string(index) + " values");
  return child((*value_)[index], path_ + "[" + std::to_string(index) + "]");
}

std::string Json::string() const {
  if (!is_string()) refuse("a string");
  return value_->get<std::string>();
}

bool Json::boolean() const {
  if (!is_boolean()) refuse("true or false");
  return value_->get<bool>();
}

double Json::number() const {
  if (!is_number()) refuse("a number");
  return value_->get<double>();
}

std::int64_t Json::integer(std::int64_t low, std::int64_t high) const {
  const bool any = low == std::numeric_limits<std::int64_t>::min() &&
                   high == std::numeric_limits<std::int64_t>::max();
  const auto expected = [&] {
    return any ? "an integer"
               : "an integer from " + std::to_string(low) + " to " + std::to_string(high);
  };
  if (!is_integer()) refuse(expected());
  // Numbers that do not fit are parsed as unsigned.
  if (value_->is_number_unsigned() &&
      value_->get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()})
    refuse(expected());
  const auto value = value_->get<std::int64_t>();
  if (value < low || value > high) refuse(expected());
  return value;
}

template <class T, class Get>
std::vector<T> Json::all(Get get) const {
  std::vector<T> out;
  if (!is_array()) refuse("an array");
  out.reserve(value_->size());
  for (std::size_t i = 0; i < value_->size(); ++i) out.push_back(get(at(i)));
  return out;
}

std::vector<std::string> Json::strings() const {
  return all<std::string>([](const Json& v) { return v.string(); });
}

std::vector<double> Json::numbers() const {
  return all<double>([](const Json& v) { return v.number(); });
}

std::vector<std::int64_t> Json::integers() const {
  return all<std::int64_t>([](const Json& v) { return v.integer(); });
}

std::string Json::string_or(std::string_view key, std::string fallback) const {
  return has(key) ? at(key).string() : std::move(fallback);
}

bool Json::boolean_or(std::string_view key, bool fallback) const {
  return has(key) ? at(key).boolean() : fallback;
}

double Json::number_or(std::string_view key, double fallback) const {
  return has(key) ? at(key).number() : fallback;
}

std::int64_t Json::integer_or(std::string_view key, std::int64_t fallback) const {
  return has(key) ? at(key).integer() : fallback;
}

void write_json(const std::string& path, const Value& document) {
  std::string text;
  try {
    text = document.dump(2);
  } catch (const Value::exception& e) {
    fail_io(path, "cannot be written as JSON", "strings in UTF-8");
  }
  write_file_atomic(path, text + "\n");
}

}  // namespace heddle::io
