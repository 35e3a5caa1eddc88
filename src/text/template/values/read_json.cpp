#include "text/template/values/read_json.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "heddle/error.h"
#include "text/template/limits.h"

namespace heddle::text::chat {
namespace {

// Builds values from the parser's events. Nesting is bounded before anything is built.
class ValueBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  ValueBuilder(const std::string& where, bool from_user) : where_(where), from_user_(from_user) {}

  Value take() { return std::move(result_); }

  bool null() override { return put(Value::none()); }
  bool boolean(bool value) override { return put(Value::boolean(value)); }
  bool number_integer(number_integer_t value) override { return put(Value::integer(value)); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max()))
      refuse("an integer of 64 bits", std::to_string(value));
    return put(Value::integer(static_cast<std::int64_t>(value)));
  }
  bool number_float(number_float_t value, const string_t& text) override {
    if (text.find_first_of(".eE") == string_t::npos) refuse("an integer of 64 bits", text);
    return put(Value::real(value));
  }
  bool string(string_t& value) override { return put(Value::string(std::move(value), from_user_)); }
  bool binary(binary_t&) override { return false; }

  bool start_object(std::size_t) override { return open(); }
  bool key(string_t& value) override {
    open_.back().keys.push_back(Value::string(std::move(value), from_user_));
    return true;
  }
  bool end_object() override {
    Level level = close();
    std::vector<std::pair<Value, Value>> entries;
    entries.reserve(level.values.size());
    for (std::size_t i = 0; i < level.values.size(); ++i)
      entries.emplace_back(std::move(level.keys[i]), std::move(level.values[i]));
    return put(Value::map(std::move(entries)));
  }
  bool start_array(std::size_t) override { return open(); }
  bool end_array() override { return put(Value::list(close().values)); }

  bool parse_error(std::size_t at, const std::string&,
                   const nlohmann::detail::exception&) override {
    refuse("JSON", "something else at byte " + std::to_string(at));
  }

 private:
  struct Level {
    std::vector<Value> keys, values;
  };

  [[noreturn]] void refuse(std::string_view expected, std::string_view found) const {
    fail(ErrorCode::io, where_, "JSON", expected, found);
  }

  bool put(Value value) {
    (open_.empty() ? result_ : open_.back().values.emplace_back()) = std::move(value);
    return true;
  }

  bool open() {
    if (open_.size() >= kMaxValueDepth)
      refuse("at most " + std::to_string(kMaxValueDepth) + " levels", "more");
    open_.emplace_back();
    return true;
  }

  Level close() {
    Level level = std::move(open_.back());
    open_.pop_back();
    return level;
  }

  const std::string& where_;
  bool from_user_;
  std::vector<Level> open_;
  Value result_;
};

}  // namespace

Value read_json(std::string_view json, const std::string& where, bool from_user) {
  ValueBuilder builder(where, from_user);
  nlohmann::json::sax_parse(json.begin(), json.end(), &builder);
  return builder.take();
}

}  // namespace heddle::text::chat
