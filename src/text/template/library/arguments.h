// Arguments of calls, and how callees read them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/template/run.h"
#include "text/template/values/value.h"

namespace heddle::text::chat {

struct Arguments {
  std::vector<Value> plain;
  std::vector<std::pair<std::string, Value>> named;
};

// The arguments by the names of the parameters, in their order.
class Bound {
 public:
  // More arguments than names, or a name that is none of them, is an Error that names the callee.
  Bound(Run& run, std::string_view callee, const Arguments& arguments,
        std::initializer_list<std::string_view> names);

  bool has(std::size_t i) const { return values_[i].has_value(); }
  const Value& required(std::size_t i) const;
  Value or_else(std::size_t i, Value fallback) const;
  bool truth(std::size_t i, bool fallback) const;
  std::int64_t integer(std::size_t i, std::int64_t fallback) const;
  std::int64_t required_integer(std::size_t i) const;
  const Value& string(std::size_t i) const;                // required
  const std::string* string_or_none(std::size_t i) const;  // null when absent or none

 private:
  [[noreturn]] void wrong(std::size_t i, std::string_view expected) const;

  Run& run_;
  std::string_view callee_;
  std::vector<std::string_view> names_;
  std::vector<std::optional<Value>> values_;
};

}  // namespace heddle::text::chat
