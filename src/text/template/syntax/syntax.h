// The tree of a template.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/template/values/value.h"

namespace heddle::text::chat {

struct Expression;
struct Statement;
using ExpressionPtr = std::unique_ptr<Expression>;
using Body = std::vector<std::unique_ptr<Statement>>;

enum class Op : std::uint8_t {
  literal,    // value
  name,       // name
  list,       // operands
  tuple,      // operands
  map,        // operands: key, value, key, value ...
  attribute,  // operands[0].name
  item,       // operands[0][operands[1]]
  slice,      // operands[0][operands[1] : operands[2] : operands[3]], each of the three may be null
  call,       // operands[0](operands[1...], named...)
  filter,     // operands[0] | name(operands[1...], named...); operands[0] is null in a filter block
  test,       // operands[0] is name(operands[1...], named...)
  negate,     // -operands[0]
  plus,       // +operands[0]
  logical_not,
  logical_and,
  logical_or,
  conditional,  // operands[1] if operands[0] else operands[2], which may be null
  concat,       // operands ~ ...
  arithmetic,   // operands[0] name operands[1]
  comparison,   // operands[0] names[0] operands[1] names[1] operands[2] ...
};

struct Expression {
  Op op = Op::literal;
  std::size_t line = 0;
  std::string name;
  Value value;
  std::vector<ExpressionPtr> operands;
  std::vector<std::string> names;  // operators of a comparison; names of named arguments
  std::vector<ExpressionPtr> named;
  std::size_t depth = 1;
};

enum class Act : std::uint8_t {
  text,        // text
  output,      // {{ expression }}
  branch,      // if: branches, in order; an absent condition is `else`
  loop,        // for targets in expression if condition: body; else: otherwise
  assign,      // set targets = expression
  capture,     // set targets[0] | filters: body
  filter,      // filter filters: body
  macro,       // macro name(parameters): body
  generation,  // body
  break_loop,
  continue_loop,
};

struct Branch {
  ExpressionPtr condition;
  Body body;
};

struct Target {
  std::string name;
  std::string attribute;  // of a namespace; empty for a plain variable
};

struct Parameter {
  std::string name;
  ExpressionPtr fallback;
};

struct Statement {
  Act act = Act::text;
  std::size_t line = 0;
  std::string text;  // or the name of a macro
  ExpressionPtr expression, condition;
  std::vector<Target> targets;
  bool unpack = false;  // targets take one item each, even when there is only one target
  std::vector<Branch> branches;
  std::vector<Parameter> parameters;
  Body body, otherwise;
};

}  // namespace heddle::text::chat
