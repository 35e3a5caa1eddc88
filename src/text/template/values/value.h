// Values of a chat template: those of Python that templates can tell apart.
//
// Values do not change once made (only namespaces do, as the sandbox of other engines has it), so
// copies share their contents and no value can contain itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "text/template/values/marked_text.h"

namespace heddle::text::chat {

struct Statement;  // a macro, in the tree
class Value;

enum class Kind : std::uint8_t {
  undefined,
  none,
  boolean,
  integer,
  real,
  string,
  sequence,
  map,
  name_space,
  loop,  // the variable `loop`
  macro,
  function,  // range and others
  method,    // of a value: content.strip
};

// Sequences that behave alike in loops, and differ in what may be done with them besides.
enum class Form : std::uint8_t {
  list,
  tuple,
  range,
  items,  // of a map, as its methods give them
  keys,
  values,
  generator,  // what map, select and other filters give: read once, has no length
};

struct String {
  MarkedText text;
  bool markup = false;  // the filter `safe` was here: `+` escapes the other side for HTML
};

struct Sequence {
  Form form = Form::list;
  std::vector<Value> items;
  std::size_t depth = 1;
  std::uint64_t weight = 1;
  mutable bool consumed = false;  // a generator gives its items once
};

struct Map {
  std::vector<std::pair<Value, Value>> entries;              // in the order of insertion
  std::unordered_map<std::string_view, std::size_t> places;  // of keys that are strings
  std::size_t depth = 1;
  std::uint64_t weight = 1;
};

// Of namespace() and of `loop`.
struct Attributes {
  std::vector<std::pair<std::string, Value>> entries;
  const Value* find(std::string_view name) const;
  void set(std::string_view name, Value value);
};

struct Method;

class Value {
 public:
  Value() = default;  // undefined
  static Value undefined(std::string what);
  static Value none();
  static Value boolean(bool value);
  static Value integer(std::int64_t value);
  static Value real(double value);
  static Value string(std::string bytes, bool from_user = false);
  static Value string(MarkedText text, bool markup = false);
  static Value list(std::vector<Value> items, Form form = Form::list);
  // Of equal keys the last value counts, in the place of the first.
  static Value map(std::vector<std::pair<Value, Value>> entries);
  static Value attributes(std::shared_ptr<Attributes> attributes, Kind kind);
  static Value macro(const Statement* macro);
  static Value function(std::string_view name);  // a name that lives for ever
  static Value method(Value self, std::string name);

  Kind kind() const noexcept { return kind_; }
  bool is(Kind kind) const noexcept { return kind_ == kind; }
  bool is_number() const noexcept {  // as in Python, true and false are numbers
    return is(Kind::boolean) || is(Kind::integer) || is(Kind::real);
  }

  // Each for values of that kind only.
  const std::string& what() const;  // of undefined: what is not defined
  bool boolean() const { return std::get<bool>(data_); }
  std::int64_t integer() const;  // booleans are 0 and 1
  double real() const;           // of any number
  const MarkedText& text() const { return str().text; }
  const std::string& bytes() const { return str().text.bytes(); }
  const String& str() const { return *std::get<std::shared_ptr<const String>>(data_); }
  const Sequence& sequence() const { return *std::get<std::shared_ptr<const Sequence>>(data_); }
  const Map& map() const { return *std::get<std::shared_ptr<const Map>>(data_); }
  Attributes& attributes() const { return *std::get<std::shared_ptr<Attributes>>(data_); }
  const Statement* macro() const { return std::get<const Statement*>(data_); }
  std::string_view function() const { return std::get<std::string_view>(data_); }
  const Method& method() const { return *std::get<std::shared_ptr<const Method>>(data_); }

  // The value of a key of a map, or null.
  const Value* find(std::string_view key) const;
  const Value* find(const Value& key) const;

  bool truth() const;
  bool operator==(const Value& other) const;
  bool same_object(const Value& other) const {
    return kind_ == other.kind_ && data_ == other.data_;
  }
  // "a list", "none", "a string": for messages.
  std::string_view kind_name() const noexcept;
  std::size_t depth() const noexcept;
  // The cost of looking at all of the value: items, and a share for the bytes of strings. A list
  // that holds a list twice counts it twice, as printing would.
  std::uint64_t weight() const noexcept;

 private:
  template <class T>
  Value(Kind kind, T data) : kind_(kind), data_(std::move(data)) {}

  Kind kind_ = Kind::undefined;
  std::variant<std::shared_ptr<const std::string>, bool, std::int64_t, double,
               std::shared_ptr<const String>, std::shared_ptr<const Sequence>,
               std::shared_ptr<const Map>, std::shared_ptr<Attributes>, const Statement*,
               std::string_view, std::shared_ptr<const Method>>
      data_;
};

struct Method {
  Value self;
  std::string name;
};

// Python's order of two values: negative, zero, positive. False in `ordered` when they have none.
struct Order {
  bool ordered = true;
  int sign = 0;
};
Order compare(const Value& a, const Value& b);

}  // namespace heddle::text::chat
