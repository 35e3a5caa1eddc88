#include "text/template/syntax/token_stream.h"

#include "text/template/run.h"

namespace heddle::text::chat {

Token TokenStream::next() {
  Token token = current();
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool TokenStream::skip_symbol(std::string_view symbol) {
  if (!at_symbol(symbol)) return false;
  next();
  return true;
}

bool TokenStream::skip_name(std::string_view name) {
  if (!at_name(name)) return false;
  next();
  return true;
}

void TokenStream::expect_symbol(std::string_view symbol) {
  if (!skip_symbol(symbol)) refuse("an expression", "'" + std::string(symbol) + "'", shown());
}

void TokenStream::expect_name(std::string_view name) {
  if (!skip_name(name)) refuse("a tag", "'" + std::string(name) + "'", shown());
}

void TokenStream::expect(TokenKind kind, std::string_view what) {
  if (!at(kind)) refuse("a tag", what, shown());
  next();
}

std::string TokenStream::identifier(std::string_view what) {
  if (!at(TokenKind::name)) refuse(what, "a name", shown());
  return next().text;
}

std::string TokenStream::shown() const {
  switch (current().kind) {
    case TokenKind::data: return "text";
    case TokenKind::output_begin: return "'{{'";
    case TokenKind::output_end: return "'}}'";
    case TokenKind::block_begin: return "'{%'";
    case TokenKind::block_end: return "'%}'";
    case TokenKind::string: return "a string";
    case TokenKind::end: return "the end of the template";
    default: return "'" + current().text + "'";
  }
}

void TokenStream::refuse(std::string_view problem, std::string_view expected,
                         std::string_view found) const {
  fail(ErrorCode::io, template_place(where_, line()), problem, expected, found);
}

void TokenStream::unsupported(std::string_view construct) const {
  fail(ErrorCode::unsupported, template_place(where_, line()),
       std::string(construct) + " is not supported in chat templates");
}

void TokenStream::enter() {
  check_depth(depth_ + 1);
  ++depth_;
}

void TokenStream::check_depth(std::size_t depth) const {
  if (depth > limits_.depth)
    fail(ErrorCode::out_of_range, template_place(where_, line()),
         "levels of blocks and expressions within each other",
         "at most " + std::to_string(limits_.depth), "more");
}

}  // namespace heddle::text::chat
