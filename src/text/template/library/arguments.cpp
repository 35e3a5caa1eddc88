#include "text/template/library/arguments.h"

#include <algorithm>

namespace heddle::text::chat {

Bound::Bound(Run& run, std::string_view callee, const Arguments& arguments,
             std::initializer_list<std::string_view> names)
    : run_(run), callee_(callee), names_(names), values_(names.size()) {
  if (arguments.plain.size() > names_.size())
    run.refuse("arguments of " + std::string(callee), "at most " + std::to_string(names_.size()),
               std::to_string(arguments.plain.size()));
  std::copy(arguments.plain.begin(), arguments.plain.end(), values_.begin());
  for (const auto& [name, value] : arguments.named) {
    const auto known = std::find(names_.begin(), names_.end(), name);
    const auto i = static_cast<std::size_t>(known - names_.begin());
    if (known == names_.end() || values_[i])
      run.refuse("arguments of " + std::string(callee),
                 known == names_.end() ? "names that it has" : "each once", "'" + name + "'");
    values_[i] = value;
  }
}

void Bound::wrong(std::size_t i, std::string_view expected) const {
  run_.refuse("argument '" + std::string(names_[i]) + "' of " + std::string(callee_), expected,
              values_[i] ? values_[i]->kind_name() : "none");
}

const Value& Bound::required(std::size_t i) const {
  if (!values_[i]) wrong(i, "a value");
  return *values_[i];
}

Value Bound::or_else(std::size_t i, Value fallback) const {
  if (values_[i]) return *values_[i];
  return fallback;
}

bool Bound::truth(std::size_t i, bool fallback) const {
  return values_[i] ? values_[i]->truth() : fallback;
}

std::int64_t Bound::integer(std::size_t i, std::int64_t fallback) const {
  return values_[i] ? required_integer(i) : fallback;
}

std::int64_t Bound::required_integer(std::size_t i) const {
  const Value& value = required(i);
  if (!value.is(Kind::integer) && !value.is(Kind::boolean)) wrong(i, "an integer");
  return value.integer();
}

const Value& Bound::string(std::size_t i) const {
  if (!required(i).is(Kind::string)) wrong(i, "a string");
  return *values_[i];
}

const std::string* Bound::string_or_none(std::size_t i) const {
  return !values_[i] || values_[i]->is(Kind::none) ? nullptr : &string(i).bytes();
}

}  // namespace heddle::text::chat
