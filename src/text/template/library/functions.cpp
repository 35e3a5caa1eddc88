#include "text/template/library/functions.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/template/values/print.h"

namespace heddle::text::chat {
namespace {

using Function = Value (*)(Run&, const Arguments&);

Value raise_exception(Run& run, const Arguments& arguments) {
  const Bound bound(run, "raise_exception", arguments, {"message"});
  run.refuse("the template refuses these messages: " + to_text(run, bound.required(0)).bytes(), {},
             {}, ErrorCode::failed);
}

Value strftime_now(Run& run, const Arguments& arguments) {
  const Bound bound(run, "strftime_now", arguments, {"format"});
  constexpr std::size_t longest_format = 256;
  const std::string& format = bound.string(0).bytes();
  if (format.size() > longest_format || format.find('\0') != std::string::npos)
    run.refuse("the format of strftime_now", "at most 256 bytes, none of them NUL",
               std::to_string(format.size()) + " bytes");
  const std::tm now = run.now();
  // A byte more than the format gives, or strftime() could not tell no text from too much of it.
  std::string text(longest_format * 16, '\0');
  const std::size_t size = std::strftime(text.data(), text.size(), (format + "x").c_str(), &now);
  if (size == 0) run.refuse("the format of strftime_now", "a shorter text", "more than 4096 bytes");
  text.resize(size - 1);
  return Value::string(std::move(text), bound.string(0).text().has_user_text());
}

Value range(Run& run, const Arguments& arguments) {
  const Bound bound(run, "range", arguments, {"start", "stop", "step"});
  const bool one = !bound.has(1);
  const std::int64_t start = one ? 0 : bound.required_integer(0);
  const std::int64_t stop = bound.required_integer(one ? 0 : 1);
  const std::int64_t step = bound.integer(2, 1);
  if (step == 0) run.refuse("range", "a step that is not zero", "0");
  std::vector<Value> items;
  std::int64_t at = start;
  while (step > 0 ? at < stop : at > stop) {
    if (items.size() == run.limits().list_items) run.make_list(items.size() + 1);
    items.push_back(Value::integer(at));
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  run.make_list(items.size());
  return Value::list(std::move(items), Form::range);
}

Value make_namespace(Run& run, const Arguments& arguments) {
  auto attributes = std::make_shared<Attributes>();
  if (arguments.plain.size() > 1 ||
      (arguments.plain.size() == 1 && !arguments.plain[0].is(Kind::map)))
    run.refuse("namespace", "names with values, or one mapping", "something else");
  if (!arguments.plain.empty()) {
    run.step(arguments.plain[0].map().entries.size() * arguments.plain[0].map().entries.size());
    for (const auto& [key, value] : arguments.plain[0].map().entries) {
      if (!key.is(Kind::string)) run.refuse("namespace", "names", key.kind_name());
      attributes->set(key.bytes(), value);
    }
  }
  for (const auto& [name, value] : arguments.named) attributes->set(name, value);
  return run.make_namespace(std::move(attributes));
}

constexpr auto kFunctions = std::to_array<std::pair<std::string_view, Function>>({
    {"namespace", make_namespace},
    {"raise_exception", raise_exception},
    {"range", range},
    {"strftime_now", strftime_now},
});

const auto* known_function(std::string_view name) {
  return std::find_if(kFunctions.begin(), kFunctions.end(),
                      [&](const auto& entry) { return entry.first == name; });
}

}  // namespace

Value global_function(std::string_view name) {
  const auto* const found = known_function(name);
  return found == kFunctions.end() ? Value::undefined("'" + std::string(name) + "'")
                                   : Value::function(found->first);
}

Value call_function(Run& run, std::string_view name, const Arguments& arguments) {
  return known_function(name)->second(run, arguments);
}

}  // namespace heddle::text::chat
