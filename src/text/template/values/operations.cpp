#include "text/template/values/operations.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "text/template/library/methods.h"
#include "text/template/library/strings.h"

namespace heddle::text::chat {
namespace {

[[noreturn]] void wrong_operands(Run& run, std::string_view op, std::string_view expected,
                                 const Value& a, const Value& b) {
  for (const Value* const v : {&a, &b})
    if (v->is(Kind::undefined))
      run.refuse("the operator " + std::string(op), expected, v->what() + ", which is not defined");
  run.refuse("the operator " + std::string(op), expected,
             std::string(a.kind_name()) + " and " + std::string(b.kind_name()));
}

[[noreturn]] void not_an_integer_of_64_bits(Run& run, std::string_view op) {
  run.refuse("the operator " + std::string(op), "a result of 64 bits", "a larger one",
             ErrorCode::out_of_range);
}

bool is_list_or_tuple(const Value& v) {
  return v.is(Kind::sequence) &&
         (v.sequence().form == Form::list || v.sequence().form == Form::tuple);
}

Value joined_strings(Run& run, const Value& a, const Value& b) {
  const bool markup = a.str().markup || b.str().markup;
  const auto side = [&](const Value& v) {
    return markup && !v.str().markup ? html_escaped(v.text()) : v.text();
  };
  run.make_string(a.text().size() + b.text().size());
  MarkedText text = side(a);
  text.append(side(b));
  run.make_string(text.size());
  return Value::string(std::move(text), markup);
}

Value joined_lists(Run& run, const Value& a, const Value& b) {
  run.make_list(a.sequence().items.size() + b.sequence().items.size());
  std::vector<Value> items = a.sequence().items;
  items.insert(items.end(), b.sequence().items.begin(), b.sequence().items.end());
  return Value::list(std::move(items), a.sequence().form);
}

// "ab" * 3, [1] * 3
Value repeated(Run& run, const Value& what, std::int64_t count) {
  const auto times = static_cast<std::uint64_t>(count < 0 ? 0 : count);
  const std::size_t size =
      what.is(Kind::string) ? what.text().size() : what.sequence().items.size();
  const std::uint64_t most =
      what.is(Kind::string) ? run.limits().string_bytes : run.limits().list_items;
  if (size > 0 && times > most / size)
    run.refuse("a repetition", "at most " + std::to_string(most) + " bytes or items",
               std::to_string(times) + " times " + std::to_string(size), ErrorCode::out_of_range);
  if (what.is(Kind::string)) {
    run.make_string(size * times);
    MarkedText text;
    for (std::uint64_t i = 0; size > 0 && i < times; ++i) text.append(what.text());
    return Value::string(std::move(text), what.str().markup);
  }
  run.make_list(size * times);
  std::vector<Value> items;
  for (std::uint64_t i = 0; size > 0 && i < times; ++i)
    items.insert(items.end(), what.sequence().items.begin(), what.sequence().items.end());
  return Value::list(std::move(items), what.sequence().form);
}

std::int64_t floor_quotient(std::int64_t a, std::int64_t b) {
  const std::int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

Value divided(Run& run, std::string_view op, const Value& a, const Value& b) {
  if (b.real() == 0) run.refuse("the operator " + std::string(op), "no zero on its right", "zero");
  if (op == "/") return Value::real(a.real() / b.real());
  if (a.is(Kind::real) || b.is(Kind::real)) {
    const double quotient = std::floor(a.real() / b.real());
    if (op == "//") return Value::real(quotient);
    const double rest = std::fmod(a.real(), b.real());
    return Value::real(rest != 0 && (rest < 0) != (b.real() < 0) ? rest + b.real() : rest);
  }
  if (b.integer() == -1) {  // the quotient of the smallest integer would not fit
    return op == "%" ? Value::integer(0) : arithmetic(run, "-", Value::integer(0), a);
  }
  const std::int64_t quotient = floor_quotient(a.integer(), b.integer());
  return Value::integer(op == "//" ? quotient : a.integer() - quotient * b.integer());
}

Value number_arithmetic(Run& run, std::string_view op, const Value& a, const Value& b) {
  if (op == "/" || op == "//" || op == "%") return divided(run, op, a, b);
  if (a.is(Kind::real) || b.is(Kind::real)) {
    if (op == "+") return Value::real(a.real() + b.real());
    return Value::real(op == "-" ? a.real() - b.real() : a.real() * b.real());
  }
  std::int64_t result = 0;
  const bool over = op == "+"   ? __builtin_add_overflow(a.integer(), b.integer(), &result)
                    : op == "-" ? __builtin_sub_overflow(a.integer(), b.integer(), &result)
                                : __builtin_mul_overflow(a.integer(), b.integer(), &result);
  if (over) not_an_integer_of_64_bits(run, op);
  return Value::integer(result);
}

bool is_contained(Run& run, const Value& item, const Value& in) {
  run.look_at(in);
  run.look_at(item);
  switch (in.kind()) {
    case Kind::undefined: return false;
    case Kind::map: return in.find(item) != nullptr;
    case Kind::string:
      if (!item.is(Kind::string)) wrong_operands(run, "in", "a string before a string", item, in);
      run.search(in.text().size());
      return find_text(in.bytes(), item.bytes()) != std::string::npos;
    case Kind::sequence: {
      for (const Value& other : items_of(run, in, "in"))
        if (other == item) return true;
      return false;
    }
    default: wrong_operands(run, "in", "a list, mapping or string on its right", item, in);
  }
}

// A place counted from the end when negative, or nothing when there is no such item.
const Value* nth(const std::vector<Value>& items, std::int64_t index) {
  const auto size = static_cast<std::int64_t>(items.size());
  if (index < 0) index += size;
  return index < 0 || index >= size ? nullptr : &items[static_cast<std::size_t>(index)];
}

Value letter_of(Run& run, const Value& string, std::int64_t index) {
  run.search(string.text().size());
  const std::vector<std::size_t> places = code_point_places(string.bytes());
  const auto size = static_cast<std::int64_t>(places.size()) - 1;
  if (index < 0) index += size;
  if (index < 0 || index >= size) return Value::undefined("a letter behind the end of a string");
  const auto at = static_cast<std::size_t>(index);
  return Value::string(string.text().part(places[at], places[at + 1]));
}

struct Steps {
  std::int64_t begin = 0, end = 0, step = 1;
};

// One end of a slice within 0...size, as Python has it: from the end when negative, cut when
// outside. Going down, one before the first (-1) stands for the end.
std::int64_t slice_place(Run& run, const Value& given, std::int64_t fallback, std::int64_t low,
                         std::int64_t high, std::int64_t size) {
  if (given.is(Kind::undefined) || given.is(Kind::none)) return fallback;
  if (!given.is(Kind::integer) && !given.is(Kind::boolean))
    run.refuse("a slice", "integers", given.kind_name());
  std::int64_t at = given.integer();
  if (at < 0) at = at < -size ? low : at + size;
  return std::min(std::max(at, low), high);
}

Steps slice_steps(Run& run, std::int64_t size, const Value& begin, const Value& end,
                  const Value& step) {
  Steps steps;
  if (!step.is(Kind::undefined) && !step.is(Kind::none)) {
    if (!step.is(Kind::integer) && !step.is(Kind::boolean))
      run.refuse("a slice", "integers", step.kind_name());
    steps.step = std::min(std::max(step.integer(), -size - 1), size + 1);
  }
  if (steps.step == 0) run.refuse("a slice", "a step that is not zero", "0");
  const bool down = steps.step < 0;
  const std::int64_t low = down ? -1 : 0, high = down ? size - 1 : size;
  steps.begin = slice_place(run, begin, down ? high : low, low, high, size);
  steps.end = slice_place(run, end, down ? low : high, low, high, size);
  return steps;
}

template <class Visit>
void each_of(const Steps& steps, Visit visit) {
  for (std::int64_t i = steps.begin; steps.step > 0 ? i < steps.end : i > steps.end;
       i += steps.step)
    visit(static_cast<std::size_t>(i));
}

}  // namespace

std::vector<Value> items_of(Run& run, const Value& value, std::string_view what) {
  std::vector<Value> items;
  switch (value.kind()) {
    case Kind::undefined: return items;
    case Kind::sequence:
      run.make_list(value.sequence().items.size());
      if (value.sequence().form == Form::generator &&
          std::exchange(value.sequence().consumed, true))
        return items;
      return value.sequence().items;
    case Kind::map:
      run.make_list(value.map().entries.size());
      for (const auto& entry : value.map().entries) items.push_back(entry.first);
      return items;
    case Kind::string: {
      const std::vector<std::size_t> places = code_point_places(value.bytes());
      run.make_list(places.size());
      for (std::size_t i = 0; i + 1 < places.size(); ++i)
        items.push_back(Value::string(value.text().part(places[i], places[i + 1])));
      return items;
    }
    default: run.refuse(what, "a list, mapping or string to go through", value.kind_name());
  }
}

Value length_of(Run& run, const Value& value) {
  std::size_t size = 0;
  if (value.is(Kind::string)) {
    run.search(value.text().size());
    size = count_code_points(value.bytes());
  } else if (value.is(Kind::map)) {
    size = value.map().entries.size();
  } else if (value.is(Kind::sequence) && value.sequence().form != Form::generator) {
    size = value.sequence().items.size();
  } else if (!value.is(Kind::undefined)) {
    run.refuse("length", "a list, mapping or string", value.kind_name());
  }
  return Value::integer(static_cast<std::int64_t>(size));
}

Value attribute_of(Run& run, const Value& value, std::string_view name) {
  switch (value.kind()) {
    case Kind::undefined:
      run.refuse("." + std::string(name), "a value before the dot",
                 value.what() + ", which is not defined");
    case Kind::name_space:
    case Kind::loop:
      if (const Value* const found = value.attributes().find(name)) return *found;
      if (value.is(Kind::loop) && (name == "cycle" || name == "changed"))
        run.unsupported("loop." + std::string(name));
      break;
    default:
      if (has_method(value, name)) return Value::method(value, std::string(name));
      if (!value.is(Kind::map)) break;
      if (const Value* const found = value.find(name)) return *found;
  }
  return Value::undefined("'" + std::string(name) + "' of " + std::string(value.kind_name()));
}

Value item_of(Run& run, const Value& value, const Value& key) {
  if (value.is(Kind::undefined))
    run.refuse("[]", "a value before the bracket", value.what() + ", which is not defined");
  run.look_at(key);
  if (value.is(Kind::map)) {
    if (const Value* const found = value.find(key)) return *found;
  } else if (key.is(Kind::integer) || key.is(Kind::boolean)) {
    if (value.is(Kind::sequence) &&
        (is_list_or_tuple(value) || value.sequence().form == Form::range)) {
      if (const Value* const found = nth(value.sequence().items, key.integer())) return *found;
    } else if (value.is(Kind::string)) {
      return letter_of(run, value, key.integer());
    }
  }
  if (key.is(Kind::string) && (!value.is(Kind::map) || has_method(value, key.bytes())))
    return attribute_of(run, value, key.bytes());
  const std::string shown = key.is(Kind::string)    ? "'" + key.bytes() + "'"
                            : key.is(Kind::integer) ? std::to_string(key.integer())
                                                    : std::string(key.kind_name());
  return Value::undefined(shown + " of " + std::string(value.kind_name()));
}

Value slice_of(Run& run, const Value& value, const Value& begin, const Value& end,
               const Value& step) {
  if (value.is(Kind::string)) {
    run.make_string(value.text().size());
    const std::vector<std::size_t> places = code_point_places(value.bytes());
    const Steps steps =
        slice_steps(run, static_cast<std::int64_t>(places.size()) - 1, begin, end, step);
    MarkedText text;
    each_of(steps, [&](std::size_t i) { text.append(value.text(), places[i], places[i + 1]); });
    return Value::string(std::move(text), value.str().markup);
  }
  if (value.is(Kind::sequence) &&
      (is_list_or_tuple(value) || value.sequence().form == Form::range)) {
    const std::vector<Value>& all = value.sequence().items;
    run.make_list(all.size());
    const Steps steps = slice_steps(run, static_cast<std::int64_t>(all.size()), begin, end, step);
    std::vector<Value> items;
    each_of(steps, [&](std::size_t i) { items.push_back(all[i]); });
    return Value::list(std::move(items), value.sequence().form);
  }
  if (value.is(Kind::undefined))
    run.refuse("a slice", "a list or string", value.what() + ", which is not defined");
  // As with any subscript that a value does not have.
  return Value::undefined("a slice of " + std::string(value.kind_name()));
}

MarkedText joined(Run& run, const std::vector<Value>& strings, const MarkedText& separator) {
  std::size_t size = separator.size() * (strings.empty() ? 0 : strings.size() - 1);
  for (const Value& string : strings) size += string.text().size();
  run.make_string(size);
  MarkedText text;
  for (std::size_t i = 0; i < strings.size(); ++i) {
    if (i > 0) text.append(separator);
    text.append(strings[i].text());
  }
  return text;
}

MarkedText replace_text(Run& run, const MarkedText& text, const std::string& old,
                        const MarkedText& by, std::int64_t most) {
  run.search(text.size());
  std::size_t count = count_text(text.bytes(), old);
  if (most >= 0) count = std::min(count, static_cast<std::size_t>(most));
  run.make_string(text.size() + count * by.size());
  return replaced(text, old, by, most);
}

Value arithmetic(Run& run, std::string_view op, const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return number_arithmetic(run, op, a, b);
  if (op == "+" && a.is(Kind::string) && b.is(Kind::string)) return joined_strings(run, a, b);
  if (op == "+" && is_list_or_tuple(a) && is_list_or_tuple(b) &&
      a.sequence().form == b.sequence().form)
    return joined_lists(run, a, b);
  if (op == "*") {
    const bool turned = a.is_number();
    const Value& what = turned ? b : a;
    const Value& count = turned ? a : b;
    if ((what.is(Kind::string) || is_list_or_tuple(what)) && count.is_number() &&
        !count.is(Kind::real))
      return repeated(run, what, count.integer());
  }
  if (op == "%" && a.is(Kind::string)) run.unsupported("formatting with %");
  wrong_operands(run, op, "values that go together", a, b);
}

Value negated(Run& run, const Value& value, bool minus) {
  if (!value.is_number())
    run.refuse(minus ? "the sign -" : "the sign +", "a number", value.kind_name());
  if (value.is(Kind::real)) return Value::real(minus ? -value.real() : value.real());
  return arithmetic(run, minus ? "-" : "+", Value::integer(0), value);
}

bool compares(Run& run, std::string_view op, const Value& a, const Value& b) {
  if (op == "in") return is_contained(run, a, b);
  if (op == "not in") return !is_contained(run, a, b);
  run.step(std::min(a.weight(), b.weight()));
  if (op == "==") return a == b;
  if (op == "!=") return !(a == b);
  const Order order = compare(a, b);
  if (!order.ordered) {
    if (a.is_number() && b.is_number()) return false;  // one is not a number
    wrong_operands(run, op, "values that have an order", a, b);
  }
  if (op == "<") return order.sign < 0;
  if (op == "<=") return order.sign <= 0;
  return op == ">" ? order.sign > 0 : order.sign >= 0;
}

}  // namespace heddle::text::chat
