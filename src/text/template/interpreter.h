// Runs the tree of a template.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/template/library/arguments.h"
#include "text/template/run.h"
#include "text/template/syntax/syntax.h"

namespace heddle::text::chat {

// Variables of a block, and the block around it. Loops, macros and captured texts have one of their
// own, each iteration a new one; `if` has none.
class Scope {
 public:
  explicit Scope(const Scope* outer) : outer_(outer) {}
  const Value* find(std::string_view name) const;
  void set(const std::string& name, Value value);

 private:
  const Scope* outer_;
  std::vector<std::pair<std::string, Value>> variables_;
};

class Interpreter {
 public:
  // `context` is a mapping: what the template is given.
  Interpreter(Run& run, const Value& context) : run_(run), context_(context), root_(nullptr) {}

  MarkedText render(const Body& body);

 private:
  enum class Flow : std::uint8_t { next, break_loop, continue_loop };

  // Statements: what they write goes to `out`.
  Flow execute(const Body& body, Scope& scope, MarkedText& out);
  Flow execute(const Statement& statement, Scope& scope, MarkedText& out);
  void write(const MarkedText& text, MarkedText& out);
  Flow branch(const Statement& statement, Scope& scope, MarkedText& out);
  void loop(const Statement& statement, Scope& scope, MarkedText& out);
  std::vector<Value> looped_items(const Statement& statement, Scope& scope);
  void assign(const Statement& statement, const Value& value, Scope& scope);
  void assign(const Target& target, Value value, Scope& scope);
  MarkedText captured(const Statement& statement, Scope& scope);

  // Expressions.
  Value evaluate(const Expression& e, Scope& scope);
  Value dispatch(const Expression& e, Scope& scope);
  Value name(const Expression& e, const Scope& scope);
  Value collection(const Expression& e, Scope& scope);
  Value map(const Expression& e, Scope& scope);
  Value slice(const Expression& e, Scope& scope);
  Value logical(const Expression& e, Scope& scope);
  Value conditional(const Expression& e, Scope& scope);
  Value concatenation(const Expression& e, Scope& scope);
  Value comparison(const Expression& e, Scope& scope);
  Value filter(const Expression& e, Scope& scope);
  Value call(const Expression& e, Scope& scope);
  Value call_macro(const Statement& macro, const Arguments& arguments);
  Arguments arguments(const Expression& e, Scope& scope);
  Value filtered(const Expression& filters, Value text, Scope& scope);

  Run& run_;
  const Value& context_;
  Scope root_;
  const Value* filter_subject_ = nullptr;  // of the innermost filter whose operand is absent
};

}  // namespace heddle::text::chat
