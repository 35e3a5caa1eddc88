#include "text/template/interpreter.h"

#include <memory>

#include "text/template/values/operations.h"
#include "text/template/values/print.h"

namespace heddle::text::chat {

const Value* Scope::find(std::string_view name) const {
  for (const Scope* scope = this; scope; scope = scope->outer_)
    for (const auto& [known, value] : scope->variables_)
      if (known == name) return &value;
  return nullptr;
}

void Scope::set(const std::string& name, Value value) {
  for (auto& [known, old] : variables_) {
    if (known != name) continue;
    old = std::move(value);
    return;
  }
  variables_.emplace_back(name, std::move(value));
}

MarkedText Interpreter::render(const Body& body) {
  MarkedText out;
  execute(body, root_, out);
  return out;
}

Interpreter::Flow Interpreter::execute(const Body& body, Scope& scope, MarkedText& out) {
  const Level level(run_);
  for (const auto& statement : body)
    if (const Flow flow = execute(*statement, scope, out); flow != Flow::next) return flow;
  return Flow::next;
}

Interpreter::Flow Interpreter::execute(const Statement& statement, Scope& scope, MarkedText& out) {
  run_.step();
  run_.line = statement.line;
  switch (statement.act) {
    case Act::text: write(MarkedText(statement.text), out); break;
    case Act::output: write(to_text(run_, evaluate(*statement.expression, scope)), out); break;
    case Act::branch: return branch(statement, scope, out);
    case Act::loop: loop(statement, scope, out); break;
    case Act::assign: assign(statement, evaluate(*statement.expression, scope), scope); break;
    case Act::capture: {
      Value text = Value::string(captured(statement, scope));
      if (statement.expression) text = filtered(*statement.expression, std::move(text), scope);
      assign(statement.targets[0], std::move(text), scope);
      break;
    }
    case Act::filter: {
      const Value text = Value::string(captured(statement, scope));
      write(to_text(run_, filtered(*statement.expression, text, scope)), out);
      break;
    }
    case Act::macro: scope.set(statement.text, Value::macro(&statement)); break;
    case Act::generation: write(captured(statement, scope), out); break;
    case Act::break_loop: return Flow::break_loop;
    case Act::continue_loop: return Flow::continue_loop;
  }
  return Flow::next;
}

void Interpreter::write(const MarkedText& text, MarkedText& out) {
  run_.output(text.size());
  out.append(text);
}

// The text of a body with variables of its own.
MarkedText Interpreter::captured(const Statement& statement, Scope& scope) {
  Scope inner(&scope);
  MarkedText text;
  execute(statement.body, inner, text);
  return text;
}

Interpreter::Flow Interpreter::branch(const Statement& statement, Scope& scope, MarkedText& out) {
  for (const Branch& b : statement.branches)
    if (!b.condition || evaluate(*b.condition, scope).truth()) return execute(b.body, scope, out);
  return Flow::next;
}

std::vector<Value> Interpreter::looped_items(const Statement& statement, Scope& scope) {
  const Value list = evaluate(*statement.expression, scope);
  run_.line = statement.line;
  std::vector<Value> items = items_of(run_, list, "for");
  if (!statement.condition) return items;
  std::vector<Value> chosen;
  for (Value& item : items) {
    Scope inner(&scope);
    assign(statement, item, inner);
    if (evaluate(*statement.condition, inner).truth()) chosen.push_back(std::move(item));
  }
  return chosen;
}

namespace {

void set_loop(Attributes& loop, const std::vector<Value>& items, std::size_t i) {
  const auto number = [](std::size_t n) { return Value::integer(static_cast<std::int64_t>(n)); };
  const std::size_t size = items.size();
  loop.set("index", number(i + 1));
  loop.set("index0", number(i));
  loop.set("first", Value::boolean(i == 0));
  loop.set("last", Value::boolean(i + 1 == size));
  loop.set("length", number(size));
  loop.set("revindex", number(size - i));
  loop.set("revindex0", number(size - i - 1));
  loop.set("previtem", i == 0 ? Value::undefined("the item before the first") : items[i - 1]);
  loop.set("nextitem", i + 1 == size ? Value::undefined("the item after the last") : items[i + 1]);
  loop.set("depth", number(1));
  loop.set("depth0", number(0));
}

}  // namespace

void Interpreter::loop(const Statement& statement, Scope& scope, MarkedText& out) {
  const std::vector<Value> items = looped_items(statement, scope);
  if (items.empty()) {
    Scope inner(&scope);
    execute(statement.otherwise, inner, out);
    return;
  }
  const auto attributes = std::make_shared<Attributes>();
  // Its items go when the loop ends, so that none can hold the loop itself.
  const std::unique_ptr<Attributes, void (*)(Attributes*)> cleared(
      attributes.get(), [](Attributes* a) { a->entries.clear(); });
  for (std::size_t i = 0; i < items.size(); ++i) {
    run_.step();
    Scope inner(&scope);
    set_loop(*attributes, items, i);
    inner.set("loop", Value::attributes(attributes, Kind::loop));
    assign(statement, items[i], inner);
    if (execute(statement.body, inner, out) == Flow::break_loop) break;
  }
}

void Interpreter::assign(const Statement& statement, const Value& value, Scope& scope) {
  if (!statement.unpack) return assign(statement.targets[0], value, scope);
  const std::vector<Value> parts = items_of(run_, value, "several variables at once");
  if (value.is(Kind::undefined) || parts.size() != statement.targets.size())
    run_.refuse("several variables at once", std::to_string(statement.targets.size()) + " values",
                std::to_string(parts.size()));
  for (std::size_t i = 0; i < parts.size(); ++i) assign(statement.targets[i], parts[i], scope);
}

void Interpreter::assign(const Target& target, Value value, Scope& scope) {
  if (target.attribute.empty()) return scope.set(target.name, std::move(value));
  const Value* const found = scope.find(target.name);
  if (!found || !found->is(Kind::name_space))
    run_.refuse("set " + target.name + "." + target.attribute, "a namespace before the dot",
                found ? found->kind_name() : "nothing of that name");
  found->attributes().set(target.attribute, std::move(value));
}

}  // namespace heddle::text::chat
