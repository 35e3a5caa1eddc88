#include "text/template/syntax/parser.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

namespace heddle::text::chat {
namespace {

using StatementPtr = std::unique_ptr<Statement>;

class Parser {
 public:
  explicit Parser(TokenStream& tokens) : tokens_(tokens) {}

  Body whole() {
    Body body = statements({});
    if (!tokens_.at(TokenKind::end)) tokens_.refuse("a block", "no end here", tokens_.shown());
    return body;
  }

 private:
  StatementPtr make(Act act) {
    auto result = std::make_unique<Statement>();
    result->act = act;
    result->line = tokens_.line();
    return result;
  }

  // Up to one of the words that end the block, which stays the current token.
  Body statements(std::initializer_list<std::string_view> ends) {
    const ParseLevel level(tokens_);
    Body body;
    for (;;) {
      switch (tokens_.current().kind) {
        case TokenKind::data:
          body.push_back(make(Act::text));
          body.back()->text = tokens_.next().text;
          break;
        case TokenKind::output_begin: body.push_back(output()); break;
        case TokenKind::block_begin: {
          tokens_.next();
          const std::string word = tokens_.current().text;
          if (!tokens_.at(TokenKind::name)) tokens_.refuse("a tag", "its name", tokens_.shown());
          if (std::find(ends.begin(), ends.end(), word) != ends.end()) return body;
          body.push_back(statement(word));
          break;
        }
        default:
          if (ends.size() > 0)
            tokens_.refuse("a block does not end", "{% " + std::string(*(ends.end() - 1)) + " %}",
                           tokens_.shown());
          return body;
      }
    }
  }

  StatementPtr output() {
    StatementPtr result = make(Act::output);
    tokens_.next();
    if (tokens_.at(TokenKind::output_end)) tokens_.refuse("{{ }}", "an expression", "nothing");
    result->expression = parse_expression(tokens_, true);
    tokens_.expect(TokenKind::output_end, "'}}'");
    return result;
  }

  StatementPtr statement(const std::string& word) {
    if (word == "if") return branch();
    if (word == "for") return loop();
    if (word == "set") return assignment();
    if (word == "macro") return macro();
    if (word == "filter") return filter_block();
    if (word == "generation") return generation();
    if (word == "break" || word == "continue") return jump(word);
    constexpr std::array<std::string_view, 12> ends = {
        "endif", "endfor", "endset", "endmacro", "endfilter", "endgeneration",
        "else",  "elif",   "endraw", "endcall",  "endblock",  "endwith"};
    if (std::find(ends.begin(), ends.end(), word) != ends.end())
      tokens_.refuse("a block", "one that is open", "'" + word + "'");
    tokens_.unsupported("the tag " + word);
  }

  void block_end() { tokens_.expect(TokenKind::block_end, "'%}'"); }

  StatementPtr branch() {
    StatementPtr result = make(Act::branch);
    do {  // at `if` or `elif`
      tokens_.next();
      result->branches.emplace_back();
      result->branches.back().condition = parse_expression(tokens_, true);
      block_end();
      result->branches.back().body = statements({"elif", "else", "endif"});
    } while (tokens_.at_name("elif"));
    if (tokens_.skip_name("else")) {
      block_end();
      result->branches.push_back({.condition = nullptr, .body = statements({"endif"})});
    }
    tokens_.expect_name("endif");
    block_end();
    return result;
  }

  std::string variable() {
    if (tokens_.at_symbol("(")) tokens_.unsupported("a target in parentheses");
    const std::string name = tokens_.identifier("a variable");
    constexpr std::array<std::string_view, 14> words = {"true", "True", "false", "False", "none",
                                                        "None", "if",   "else",  "and",   "or",
                                                        "not",  "in",   "is",    "loop"};
    if (std::find(words.begin(), words.end(), name) != words.end())
      tokens_.refuse("a variable", "a name of your own", "'" + name + "'");
    return name;
  }

  // a, b, ns.c
  void targets(Statement& result, bool attributes) {
    do {
      if (!result.targets.empty() && (tokens_.at_symbol("=") || tokens_.at_name("in"))) break;
      Target target{.name = variable(), .attribute = {}};
      if (attributes && tokens_.skip_symbol("."))
        target.attribute = tokens_.identifier("a namespace");
      result.targets.push_back(std::move(target));
      if (tokens_.at_symbol(",")) result.unpack = true;
    } while (tokens_.skip_symbol(","));
  }

  StatementPtr loop() {
    StatementPtr result = make(Act::loop);
    tokens_.next();
    targets(*result, false);
    tokens_.expect_name("in");
    result->expression = parse_iterated(tokens_);
    if (tokens_.skip_name("if")) result->condition = parse_expression(tokens_);
    if (tokens_.at_name("recursive")) tokens_.unsupported("a recursive for");
    block_end();
    ++scopes_;
    ++loops_;
    result->body = statements({"else", "endfor"});
    --loops_;
    if (tokens_.skip_name("else")) {
      block_end();
      result->otherwise = statements({"endfor"});
    }
    --scopes_;
    tokens_.expect_name("endfor");
    block_end();
    return result;
  }

  StatementPtr assignment() {
    StatementPtr result = make(Act::assign);
    tokens_.next();
    targets(*result, true);
    if (tokens_.skip_symbol("=")) {
      result->expression = parse_expression(tokens_, true);
      block_end();
      return result;
    }
    if (result->unpack) tokens_.refuse("set", "'='", tokens_.shown());
    result->act = Act::capture;
    if (tokens_.skip_symbol("|")) result->expression = parse_filters(tokens_);
    block_end();
    result->body = inner_body("endset");
    return result;
  }

  // A body with variables of its own, in which no loop outside of it can be left.
  Body inner_body(std::string_view end) {
    ++scopes_;
    const std::size_t loops = std::exchange(loops_, 0);
    Body body = statements({end});
    loops_ = loops;
    --scopes_;
    tokens_.next();
    block_end();
    return body;
  }

  StatementPtr macro() {
    if (scopes_ > 0) tokens_.unsupported("a macro inside of a loop, a macro or another block");
    StatementPtr result = make(Act::macro);
    tokens_.next();
    result->text = variable();
    tokens_.expect_symbol("(");
    while (!tokens_.skip_symbol(")")) {
      Parameter parameter{.name = variable(), .fallback = nullptr};
      if (tokens_.skip_symbol("=")) {
        parameter.fallback = parse_expression(tokens_);
      } else if (!result->parameters.empty() && result->parameters.back().fallback) {
        tokens_.refuse("a macro", "a default for '" + parameter.name + "'", "none");
      }
      result->parameters.push_back(std::move(parameter));
      if (!tokens_.at_symbol(")")) tokens_.expect_symbol(",");
    }
    block_end();
    result->body = inner_body("endmacro");
    return result;
  }

  StatementPtr filter_block() {
    StatementPtr result = make(Act::filter);
    tokens_.next();
    result->expression = parse_filters(tokens_);
    block_end();
    result->body = inner_body("endfilter");
    return result;
  }

  StatementPtr generation() {
    StatementPtr result = make(Act::generation);
    tokens_.next();
    block_end();
    result->body = inner_body("endgeneration");
    return result;
  }

  StatementPtr jump(const std::string& word) {
    if (loops_ == 0) tokens_.refuse("'" + word + "'", "a loop around it", "none");
    StatementPtr result = make(word == "break" ? Act::break_loop : Act::continue_loop);
    tokens_.next();
    block_end();
    return result;
  }

  TokenStream& tokens_;
  std::size_t scopes_ = 0, loops_ = 0;
};

}  // namespace

Body parse_template(std::string_view source, const std::string& where, const Limits& limits) {
  TokenStream tokens(tokenize(source, where, limits), where, limits);
  return Parser(tokens).whole();
}

}  // namespace heddle::text::chat
