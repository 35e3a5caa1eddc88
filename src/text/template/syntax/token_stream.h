// The tokens of a template while they are parsed.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heddle/error.h"
#include "text/template/limits.h"
#include "text/template/syntax/lexer.h"
#include "text/template/syntax/syntax.h"

namespace heddle::text::chat {

class TokenStream {
 public:
  TokenStream(std::vector<Token> tokens, const std::string& where, const Limits& limits)
      : tokens_(std::move(tokens)), where_(where), limits_(limits) {}

  const Token& current() const noexcept { return tokens_[at_]; }
  const Token& ahead() const noexcept { return tokens_[at_ + (at_ + 1 < tokens_.size() ? 1 : 0)]; }
  std::size_t line() const noexcept { return current().line; }
  bool at(TokenKind kind) const noexcept { return current().kind == kind; }
  bool at_symbol(std::string_view symbol) const noexcept {
    return at(TokenKind::symbol) && current().text == symbol;
  }
  bool at_name(std::string_view name) const noexcept {
    return at(TokenKind::name) && current().text == name;
  }

  Token next();
  bool skip_symbol(std::string_view symbol);
  bool skip_name(std::string_view name);
  void expect_symbol(std::string_view symbol);
  void expect_name(std::string_view name);
  void expect(TokenKind kind, std::string_view what);
  std::string identifier(std::string_view what);

  // The text of the current token, for messages.
  std::string shown() const;
  [[noreturn]] void refuse(std::string_view problem, std::string_view expected,
                           std::string_view found) const;
  [[noreturn]] void unsupported(std::string_view construct) const;

  void enter();
  void leave() noexcept { --depth_; }
  // Chains such as a + b + c grow a tree without any nesting in the parser.
  void check_depth(std::size_t depth) const;

 private:
  std::vector<Token> tokens_;
  const std::string& where_;
  const Limits& limits_;
  std::size_t at_ = 0, depth_ = 0;
};

// A level of nesting, for as long as it lives.
class ParseLevel {
 public:
  explicit ParseLevel(TokenStream& stream) : stream_(stream) { stream_.enter(); }
  ~ParseLevel() { stream_.leave(); }
  ParseLevel(const ParseLevel&) = delete;
  ParseLevel& operator=(const ParseLevel&) = delete;

 private:
  TokenStream& stream_;
};

}  // namespace heddle::text::chat
