#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "text/template/library/filters.h"
#include "text/template/library/predicates.h"
#include "text/template/syntax/parser.h"

namespace heddle::text::chat {
namespace {

constexpr std::array<std::string_view, 6> kComparisons = {"==", "!=", "<", "<=", ">", ">="};
// Of Jinja, and not of chat templates.
constexpr std::array<std::string_view, 8> kRefusedNames = {"lipsum", "cycler",  "joiner", "dict",
                                                           "caller", "varargs", "kwargs", "self"};

class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& tokens) : tokens_(tokens) {}

  // "a" or "a, b" or "(a, b)"
  ExpressionPtr tuple_or_one(bool conditional) {
    const std::size_t line = tokens_.line();
    ExpressionPtr first = conditional ? condition() : logical_or();
    if (!tokens_.at_symbol(",")) return first;
    ExpressionPtr tuple = node(Op::tuple, line, std::move(first));
    while (tokens_.skip_symbol(",") && !at_tuple_end())
      add(*tuple, conditional ? condition() : logical_or());
    return tuple;
  }

  // a if b else c
  ExpressionPtr condition() {
    const ParseLevel level(tokens_);
    ExpressionPtr result = logical_or();
    while (tokens_.at_name("if")) {
      const std::size_t line = tokens_.next().line;
      ExpressionPtr when = logical_or();
      ExpressionPtr otherwise = tokens_.skip_name("else") ? condition() : nullptr;
      ExpressionPtr choice = node(Op::conditional, line, std::move(when), std::move(result));
      add(*choice, std::move(otherwise));
      result = std::move(choice);
    }
    return result;
  }

  ExpressionPtr filters(ExpressionPtr subject) {
    do {
      subject = filter(std::move(subject));
    } while (tokens_.skip_symbol("|"));
    return subject;
  }

 private:
  ExpressionPtr node(Op op, std::size_t line, ExpressionPtr a = {}, ExpressionPtr b = {}) {
    auto result = std::make_unique<Expression>();
    result->op = op;
    result->line = line;
    if (a) add(*result, std::move(a));
    if (b) add(*result, std::move(b));
    return result;
  }

  void add(Expression& parent, ExpressionPtr child) {
    if (child) deepen(parent, *child);
    parent.operands.push_back(std::move(child));
  }

  void deepen(Expression& parent, const Expression& child) {
    parent.depth = std::max(parent.depth, child.depth + 1);
    tokens_.check_depth(parent.depth);
  }

  bool at_tuple_end() const {
    return tokens_.at(TokenKind::output_end) || tokens_.at(TokenKind::block_end) ||
           tokens_.at_symbol(")") || tokens_.at_name("in");
  }

  ExpressionPtr logical_or() {
    ExpressionPtr left = logical_and();
    while (tokens_.at_name("or")) {
      const std::size_t line = tokens_.next().line;
      left = node(Op::logical_or, line, std::move(left), logical_and());
    }
    return left;
  }

  ExpressionPtr logical_and() {
    ExpressionPtr left = logical_not();
    while (tokens_.at_name("and")) {
      const std::size_t line = tokens_.next().line;
      left = node(Op::logical_and, line, std::move(left), logical_not());
    }
    return left;
  }

  ExpressionPtr logical_not() {
    if (!tokens_.at_name("not")) return comparison();
    const ParseLevel level(tokens_);
    const std::size_t line = tokens_.next().line;
    return node(Op::logical_not, line, logical_not());
  }

  // The operator of a comparison, or nothing.
  std::string comparison_operator() {
    if (tokens_.at(TokenKind::symbol) && std::find(kComparisons.begin(), kComparisons.end(),
                                                   tokens_.current().text) != kComparisons.end())
      return tokens_.next().text;
    if (tokens_.skip_name("in")) return "in";
    if (tokens_.at_name("not") && tokens_.ahead().kind == TokenKind::name &&
        tokens_.ahead().text == "in") {
      tokens_.next();
      tokens_.next();
      return "not in";
    }
    return {};
  }

  ExpressionPtr comparison() {
    const std::size_t line = tokens_.line();
    ExpressionPtr left = sum();
    std::string op = comparison_operator();
    if (op.empty()) return left;
    ExpressionPtr result = node(Op::comparison, line, std::move(left));
    for (; !op.empty(); op = comparison_operator()) {
      result->names.push_back(std::move(op));
      add(*result, sum());
    }
    return result;
  }

  ExpressionPtr sum() {
    ExpressionPtr left = concatenation();
    while (tokens_.at_symbol("+") || tokens_.at_symbol("-"))
      left = arithmetic(std::move(left), &ExpressionParser::concatenation);
    return left;
  }

  ExpressionPtr concatenation() {
    const std::size_t line = tokens_.line();
    ExpressionPtr first = product();
    if (!tokens_.at_symbol("~")) return first;
    ExpressionPtr result = node(Op::concat, line, std::move(first));
    while (tokens_.skip_symbol("~")) add(*result, product());
    return result;
  }

  ExpressionPtr product() {
    ExpressionPtr left = unary(true);
    while (tokens_.at_symbol("*") || tokens_.at_symbol("/") || tokens_.at_symbol("//") ||
           tokens_.at_symbol("%"))
      left = arithmetic(std::move(left), &ExpressionParser::filtered_unary);
    if (tokens_.at_symbol("**")) tokens_.unsupported("the operator **");
    return left;
  }

  ExpressionPtr filtered_unary() { return unary(true); }

  ExpressionPtr arithmetic(ExpressionPtr left, ExpressionPtr (ExpressionParser::*right)()) {
    const Token op = tokens_.next();
    ExpressionPtr result = node(Op::arithmetic, op.line, std::move(left), (this->*right)());
    result->name = op.text;
    return result;
  }

  ExpressionPtr unary(bool with_filters) {
    ExpressionPtr result;
    if (tokens_.at_symbol("-") || tokens_.at_symbol("+")) {
      const ParseLevel level(tokens_);
      const Token sign = tokens_.next();
      result = node(sign.text == "-" ? Op::negate : Op::plus, sign.line, unary(false));
    } else {
      result = primary();
    }
    result = postfix(std::move(result));
    return with_filters ? filters_and_tests(std::move(result)) : std::move(result);
  }

  ExpressionPtr literal(Value value, std::size_t line) {
    ExpressionPtr result = node(Op::literal, line);
    result->value = std::move(value);
    return result;
  }

  ExpressionPtr primary() {
    const std::size_t line = tokens_.line();
    switch (tokens_.current().kind) {
      case TokenKind::name: return name();
      case TokenKind::string: {
        std::string text = tokens_.next().text;
        while (tokens_.at(TokenKind::string)) text += tokens_.next().text;  // as in Python
        return literal(Value::string(std::move(text)), line);
      }
      case TokenKind::integer: return integer();
      case TokenKind::real: return real();
      default: break;
    }
    if (tokens_.skip_symbol("(")) return parenthesis(line);
    if (tokens_.skip_symbol("[")) return list(line);
    if (tokens_.skip_symbol("{")) return map(line);
    tokens_.refuse("an expression", "a value", tokens_.shown());
  }

  ExpressionPtr name() {
    const Token word = tokens_.current();
    const std::string& text = word.text;
    if (text == "true" || text == "True" || text == "false" || text == "False") {
      tokens_.next();
      return literal(Value::boolean(text == "true" || text == "True"), word.line);
    }
    if (text == "none" || text == "None") {
      tokens_.next();
      return literal(Value::none(), word.line);
    }
    constexpr std::array<std::string_view, 8> words = {"if",  "else", "and", "or",
                                                       "not", "in",   "is",  "elif"};
    if (std::find(words.begin(), words.end(), text) != words.end())
      tokens_.refuse("an expression", "a value", tokens_.shown());
    if (std::find(kRefusedNames.begin(), kRefusedNames.end(), text) != kRefusedNames.end())
      tokens_.unsupported("the name " + text);
    tokens_.next();
    ExpressionPtr result = node(Op::name, word.line);
    result->name = text;
    return result;
  }

  ExpressionPtr integer() {
    const Token token = tokens_.current();
    std::int64_t value = 0;
    const auto [end, error] =
        std::from_chars(token.text.data(), token.text.data() + token.text.size(), value);
    if (error != std::errc()) tokens_.refuse("an integer", "one of 64 bits", token.text);
    tokens_.next();
    return literal(Value::integer(value), token.line);
  }

  ExpressionPtr real() {
    const Token token = tokens_.current();
    double value = 0;
    const auto [end, error] =
        std::from_chars(token.text.data(), token.text.data() + token.text.size(), value);
    if (error != std::errc()) tokens_.refuse("a number", "one of 64 bits", token.text);
    tokens_.next();
    return literal(Value::real(value), token.line);
  }

  ExpressionPtr parenthesis(std::size_t line) {
    if (tokens_.skip_symbol(")")) return node(Op::tuple, line);
    ExpressionPtr inside = tuple_or_one(true);
    tokens_.expect_symbol(")");
    return inside;
  }

  ExpressionPtr list(std::size_t line) {
    ExpressionPtr result = node(Op::list, line);
    while (!tokens_.skip_symbol("]")) {
      add(*result, condition());
      if (!tokens_.at_symbol("]")) tokens_.expect_symbol(",");
    }
    return result;
  }

  ExpressionPtr map(std::size_t line) {
    ExpressionPtr result = node(Op::map, line);
    while (!tokens_.skip_symbol("}")) {
      add(*result, condition());
      tokens_.expect_symbol(":");
      add(*result, condition());
      if (!tokens_.at_symbol("}")) tokens_.expect_symbol(",");
    }
    return result;
  }

  ExpressionPtr postfix(ExpressionPtr subject) {
    for (;;) {
      if (tokens_.at_symbol(".")) {
        subject = attribute(std::move(subject));
      } else if (tokens_.at_symbol("[")) {
        subject = subscript(std::move(subject));
      } else if (tokens_.at_symbol("(")) {
        subject = call(std::move(subject));
      } else {
        return subject;
      }
    }
  }

  ExpressionPtr attribute(ExpressionPtr subject) {
    const std::size_t line = tokens_.next().line;
    if (tokens_.at(TokenKind::integer)) return node(Op::item, line, std::move(subject), integer());
    ExpressionPtr result = node(Op::attribute, line, std::move(subject));
    result->name = tokens_.identifier("an attribute");
    return result;
  }

  ExpressionPtr subscript(ExpressionPtr subject) {
    const std::size_t line = tokens_.next().line;
    ExpressionPtr first = tokens_.at_symbol(":") ? nullptr : condition();
    if (tokens_.skip_symbol("]")) {
      if (!first) tokens_.refuse("a subscript", "an index", "nothing");
      return node(Op::item, line, std::move(subject), std::move(first));
    }
    if (tokens_.at_symbol(",")) tokens_.unsupported("a subscript of several values");
    ExpressionPtr result = node(Op::slice, line, std::move(subject));
    add(*result, std::move(first));
    for (int part = 0; part < 2; ++part) {
      const bool given =
          tokens_.skip_symbol(":") && !tokens_.at_symbol("]") && !tokens_.at_symbol(":");
      add(*result, given ? condition() : nullptr);
    }
    tokens_.expect_symbol("]");
    return result;
  }

  ExpressionPtr call(ExpressionPtr callee) {
    ExpressionPtr result = node(Op::call, tokens_.line(), std::move(callee));
    arguments(*result);
    return result;
  }

  // (a, b, name=c)
  void arguments(Expression& result) {
    tokens_.expect_symbol("(");
    while (!tokens_.skip_symbol(")")) {
      if (tokens_.at_symbol("*") || tokens_.at_symbol("**"))
        tokens_.unsupported("an argument with " + tokens_.current().text);
      if (tokens_.at(TokenKind::name) && tokens_.ahead().kind == TokenKind::symbol &&
          tokens_.ahead().text == "=") {
        result.names.push_back(tokens_.next().text);
        tokens_.next();
        result.named.push_back(condition());
        deepen(result, *result.named.back());
      } else {
        if (!result.named.empty())
          tokens_.refuse("arguments", "a name before '='", tokens_.shown());
        add(result, condition());
      }
      if (!tokens_.at_symbol(")")) tokens_.expect_symbol(",");
    }
  }

  ExpressionPtr filters_and_tests(ExpressionPtr subject) {
    for (;;) {
      if (tokens_.skip_symbol("|")) {
        subject = filter(std::move(subject));
      } else if (tokens_.at_name("is")) {
        subject = test(std::move(subject));
      } else if (tokens_.at_symbol("(")) {
        subject = call(std::move(subject));
      } else {
        return subject;
      }
    }
  }

  ExpressionPtr filter(ExpressionPtr subject) {
    const std::size_t line = tokens_.line();
    std::string name = tokens_.current().text;
    if (!tokens_.at(TokenKind::name)) tokens_.refuse("a filter", "its name", tokens_.shown());
    if (!is_filter(name)) tokens_.unsupported("the filter " + name);
    tokens_.next();
    if (tokens_.at_symbol(".")) tokens_.unsupported("a filter with a dot");
    ExpressionPtr result = node(Op::filter, line);
    result->name = std::move(name);
    add(*result, std::move(subject));
    if (tokens_.at_symbol("(")) arguments(*result);
    return result;
  }

  bool at_test_argument() const {
    switch (tokens_.current().kind) {
      case TokenKind::string:
      case TokenKind::integer:
      case TokenKind::real: return true;
      case TokenKind::symbol: return tokens_.at_symbol("[") || tokens_.at_symbol("{");
      case TokenKind::name:
        return !tokens_.at_name("else") && !tokens_.at_name("or") && !tokens_.at_name("and");
      default: return false;
    }
  }

  ExpressionPtr test(ExpressionPtr subject) {
    const std::size_t line = tokens_.next().line;
    const bool negated = tokens_.skip_name("not");
    std::string name = tokens_.current().text;
    if (!tokens_.at(TokenKind::name)) tokens_.refuse("a test", "its name", tokens_.shown());
    if (!is_predicate(name)) tokens_.unsupported("the test " + name);
    tokens_.next();
    ExpressionPtr result = node(Op::test, line, std::move(subject));
    result->name = std::move(name);
    if (tokens_.at_symbol("(")) {
      arguments(*result);
    } else if (at_test_argument()) {
      if (tokens_.at_name("is")) tokens_.refuse("a test", "no second `is`", tokens_.shown());
      add(*result, postfix(primary()));
    }
    return negated ? node(Op::logical_not, line, std::move(result)) : std::move(result);
  }

  TokenStream& tokens_;
};

}  // namespace

ExpressionPtr parse_expression(TokenStream& tokens, bool commas) {
  ExpressionParser parser(tokens);
  return commas ? parser.tuple_or_one(true) : parser.condition();
}

ExpressionPtr parse_iterated(TokenStream& tokens) {
  return ExpressionParser(tokens).tuple_or_one(false);
}

ExpressionPtr parse_filters(TokenStream& tokens) {
  return ExpressionParser(tokens).filters(nullptr);
}

}  // namespace heddle::text::chat
