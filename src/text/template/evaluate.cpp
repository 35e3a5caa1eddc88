#include <utility>

#include "text/template/interpreter.h"
#include "text/template/library/filters.h"
#include "text/template/library/functions.h"
#include "text/template/library/methods.h"
#include "text/template/library/predicates.h"
#include "text/template/values/operations.h"
#include "text/template/values/print.h"

namespace heddle::text::chat {

Value Interpreter::evaluate(const Expression& e, Scope& scope) {
  const Level level(run_);
  run_.step();
  run_.line = e.line;
  return dispatch(e, scope);
}

Value Interpreter::dispatch(const Expression& e, Scope& scope) {
  switch (e.op) {
    case Op::literal: return e.value;
    case Op::name: return name(e, scope);
    case Op::list:
    case Op::tuple: return collection(e, scope);
    case Op::map: return map(e, scope);
    case Op::attribute: return attribute_of(run_, evaluate(*e.operands[0], scope), e.name);
    case Op::item: {
      const Value value = evaluate(*e.operands[0], scope);
      return item_of(run_, value, evaluate(*e.operands[1], scope));
    }
    case Op::slice: return slice(e, scope);
    case Op::call: return call(e, scope);
    case Op::filter: return filter(e, scope);
    case Op::test: {
      const Value value = evaluate(*e.operands[0], scope);
      return Value::boolean(holds(run_, e.name, value, arguments(e, scope)));
    }
    case Op::negate:
    case Op::plus: return negated(run_, evaluate(*e.operands[0], scope), e.op == Op::negate);
    case Op::logical_not: return Value::boolean(!evaluate(*e.operands[0], scope).truth());
    case Op::logical_and:
    case Op::logical_or: return logical(e, scope);
    case Op::conditional: return conditional(e, scope);
    case Op::concat: return concatenation(e, scope);
    case Op::arithmetic: {
      const Value left = evaluate(*e.operands[0], scope);
      const Value right = evaluate(*e.operands[1], scope);
      run_.line = e.line;
      return arithmetic(run_, e.name, left, right);
    }
    case Op::comparison: return comparison(e, scope);
  }
  return {};
}

Value Interpreter::name(const Expression& e, const Scope& scope) {
  if (const Value* const found = scope.find(e.name)) return *found;
  if (const Value* const found = context_.find(e.name)) return *found;
  return global_function(e.name);
}

Value Interpreter::collection(const Expression& e, Scope& scope) {
  std::vector<Value> items;
  items.reserve(e.operands.size());
  for (const ExpressionPtr& operand : e.operands) items.push_back(evaluate(*operand, scope));
  return Value::list(std::move(items), e.op == Op::list ? Form::list : Form::tuple);
}

Value Interpreter::map(const Expression& e, Scope& scope) {
  std::vector<std::pair<Value, Value>> entries;
  std::size_t others = 0;
  for (std::size_t i = 0; i + 1 < e.operands.size(); i += 2) {
    Value key = evaluate(*e.operands[i], scope);
    if (key.is(Kind::sequence) || key.is(Kind::map) || key.is(Kind::undefined))
      run_.refuse("a mapping", "strings and numbers as keys", key.kind_name());
    if (!key.is(Kind::string)) run_.step(++others);  // found by going through all
    entries.emplace_back(std::move(key), evaluate(*e.operands[i + 1], scope));
  }
  return Value::map(std::move(entries));
}

Value Interpreter::slice(const Expression& e, Scope& scope) {
  const Value value = evaluate(*e.operands[0], scope);
  const auto part = [&](std::size_t i) {
    return e.operands[i] ? evaluate(*e.operands[i], scope) : Value::none();
  };
  const Value begin = part(1), end = part(2), step = part(3);
  return slice_of(run_, value, begin, end, step);
}

Value Interpreter::logical(const Expression& e, Scope& scope) {
  Value left = evaluate(*e.operands[0], scope);
  if (left.truth() == (e.op == Op::logical_or)) return left;
  return evaluate(*e.operands[1], scope);
}

Value Interpreter::conditional(const Expression& e, Scope& scope) {
  if (evaluate(*e.operands[0], scope).truth()) return evaluate(*e.operands[1], scope);
  if (e.operands[2]) return evaluate(*e.operands[2], scope);
  return Value::undefined("the value of an `if` without `else`");
}

Value Interpreter::concatenation(const Expression& e, Scope& scope) {
  MarkedText text;
  for (const ExpressionPtr& operand : e.operands) {
    const Value value = evaluate(*operand, scope);
    const MarkedText part = to_text(run_, value);
    run_.make_string(text.size() + part.size());
    text.append(part);
  }
  return Value::string(std::move(text));
}

// a < b < c: true when each pair is; later ones are evaluated only while it is.
Value Interpreter::comparison(const Expression& e, Scope& scope) {
  Value left = evaluate(*e.operands[0], scope);
  for (std::size_t i = 0; i < e.names.size(); ++i) {
    Value right = evaluate(*e.operands[i + 1], scope);
    run_.line = e.line;
    if (!compares(run_, e.names[i], left, right)) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Arguments Interpreter::arguments(const Expression& e, Scope& scope) {
  Arguments result;
  for (std::size_t i = 1; i < e.operands.size(); ++i)
    result.plain.push_back(evaluate(*e.operands[i], scope));
  for (std::size_t i = 0; i < e.named.size(); ++i)
    result.named.emplace_back(e.names[i], evaluate(*e.named[i], scope));
  return result;
}

Value Interpreter::filter(const Expression& e, Scope& scope) {
  const Value value = e.operands[0] ? evaluate(*e.operands[0], scope) : *filter_subject_;
  const Arguments given = arguments(e, scope);
  run_.line = e.line;
  return apply_filter(run_, e.name, value, given);
}

Value Interpreter::filtered(const Expression& filters, Value text, Scope& scope) {
  const Value* const outer = std::exchange(filter_subject_, &text);
  Value result = evaluate(filters, scope);
  filter_subject_ = outer;
  return result;
}

Value Interpreter::call(const Expression& e, Scope& scope) {
  const Value callee = evaluate(*e.operands[0], scope);
  const Arguments given = arguments(e, scope);
  run_.line = e.line;
  switch (callee.kind()) {
    case Kind::macro: return call_macro(*callee.macro(), given);
    case Kind::function: return call_function(run_, callee.function(), given);
    case Kind::method: return call_method(run_, callee.method(), given);
    case Kind::undefined:
      run_.refuse("a call", "a function, macro or method",
                  callee.what() + ", which is not defined");
    default: run_.refuse("a call", "a function, macro or method", callee.kind_name());
  }
}

Value Interpreter::call_macro(const Statement& macro, const Arguments& given) {
  const std::size_t line = run_.line;
  if (given.plain.size() > macro.parameters.size())
    run_.refuse("arguments of the macro " + macro.text,
                "at most " + std::to_string(macro.parameters.size()),
                std::to_string(given.plain.size()));
  Scope scope(&root_);
  std::size_t used = 0;
  for (std::size_t i = 0; i < macro.parameters.size(); ++i) {
    const Parameter& parameter = macro.parameters[i];
    Value value = Value::undefined("the parameter '" + parameter.name + "'");
    bool found = i < given.plain.size();
    if (found) value = given.plain[i];
    for (const auto& [name, argument] : given.named) {
      if (name != parameter.name) continue;
      if (std::exchange(found, true))
        run_.refuse("arguments of the macro " + macro.text, "each once", "'" + name + "' twice");
      value = argument;
      ++used;
    }
    if (!found && parameter.fallback) value = evaluate(*parameter.fallback, scope);
    scope.set(parameter.name, std::move(value));
  }
  if (used < given.named.size())
    run_.refuse("arguments of the macro " + macro.text, "names that it has", "another");
  MarkedText text;
  execute(macro.body, scope, text);
  run_.line = line;
  run_.make_string(text.size());
  return Value::string(std::move(text));
}

}  // namespace heddle::text::chat
