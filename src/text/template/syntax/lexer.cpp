#include "text/template/syntax/lexer.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "heddle/error.h"
#include "io/utf8.h"
#include "text/template/library/strings.h"
#include "text/template/run.h"
#include "text/template/syntax/string_literal.h"
#include "text/unicode.h"

namespace heddle::text::chat {
namespace {

// Line ends of all systems become \n, and one at the very end does not count.
std::string normalized(std::string_view source) {
  std::string result;
  result.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      result += source[i];
    } else {
      result += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    }
  }
  if (!result.empty() && result.back() == '\n') result.pop_back();
  return result;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool starts_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }

class Lexer {
 public:
  Lexer(const std::string& source, const std::string& where) : source_(source), where_(where) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) text_until_tag();
    tokens_.push_back({.kind = TokenKind::end, .text = "", .line = line_});
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void refuse(std::string_view problem, std::string_view expected = {},
                           std::string_view found = {}) const {
    fail(ErrorCode::io, template_place(where_, line_), problem, expected, found);
  }

  bool ahead(std::string_view word) const { return source_.compare(at_, word.size(), word) == 0; }

  // Moves on, and counts the lines passed.
  void advance(std::size_t to) {
    line_ += static_cast<std::size_t>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_),
                                                 source_.begin() + static_cast<std::ptrdiff_t>(to),
                                                 '\n'));
    at_ = to;
  }

  void skip_space() { advance(space_end(source_, at_)); }

  void push(TokenKind kind, std::string text) {
    tokens_.push_back({.kind = kind, .text = std::move(text), .line = line_});
  }

  void text_until_tag() {
    const bool line_starts = at_ == 0 || source_[at_ - 1] == '\n';
    std::size_t tag = source_.find('{', at_);
    while (tag != std::string::npos && !is_tag(tag)) tag = source_.find('{', tag + 1);
    if (tag == std::string::npos) {
      push(TokenKind::data, source_.substr(at_));
      return advance(source_.size());
    }
    const char kind = source_[tag + 1];
    const char sign = sign_at(tag + 2);
    push_data(at_, tag, sign, line_starts, kind != '{');
    advance(tag + 2 + (sign != ' ' ? 1 : 0));
    if (kind == '#') return comment();
    if (kind == '%' && raw_block()) return;
    push(kind == '{' ? TokenKind::output_begin : TokenKind::block_begin, "");
    tag_tokens(kind == '{');
  }

  bool is_tag(std::size_t at) const {
    return at + 1 < source_.size() &&
           std::string_view("{%#").find(source_[at + 1]) != std::string_view::npos;
  }

  char sign_at(std::size_t at) const {
    return at < source_.size() && (source_[at] == '-' || source_[at] == '+') ? source_[at] : ' ';
  }

  // Text before a tag: `-` takes all white space off its end; without a sign, what stands between
  // the start of a line and a block or comment is taken off when it is blank (lstrip_blocks).
  void push_data(std::size_t begin, std::size_t end, char sign, bool line_starts, bool lstrip) {
    std::string_view text = std::string_view(source_).substr(begin, end - begin);
    if (sign == '-') {
      text = text.substr(0, space_begin(text, text.size()));
    } else if (sign == ' ' && lstrip) {
      const std::size_t newline = text.rfind('\n');
      const std::size_t line_begin = newline == std::string_view::npos ? 0 : newline + 1;
      if ((line_begin > 0 || line_starts) && space_end(text, line_begin) == text.size())
        text = text.substr(0, line_begin);
    }
    if (!text.empty()) push(TokenKind::data, std::string(text));
  }

  void comment() {
    const std::size_t begin = at_;
    const std::size_t end = source_.find("#}", at_);
    if (end == std::string::npos) refuse("a comment does not end", "#}", "the end of the template");
    const char sign = end > begin ? sign_at(end - 1) : ' ';
    advance(end + 2);
    after_tag(sign);
  }

  // White space behind the end of a block or comment: `-` takes all of it, and without a sign one
  // line end is taken (trim_blocks).
  void after_tag(char sign) {
    if (sign == '-') {
      skip_space();
    } else if (sign == ' ' && ahead("\n")) {
      advance(at_ + 1);
    }
  }

  // {% raw %} ... {% endraw %}, just behind the first two characters. False when it is no such.
  bool raw_block() {
    const std::size_t word = space_end(source_, at_);
    if (source_.compare(word, 3, "raw") != 0) return false;
    const std::size_t end = space_end(source_, word + 3);
    if (source_.compare(end, 2, "%}") == 0) {
      advance(end + 2);
    } else if (source_.compare(end, 3, "-%}") == 0) {
      advance(end + 3);
      skip_space();
    } else {
      return false;
    }
    const bool line_starts = source_[at_ - 1] == '\n';
    const std::size_t begin = at_;
    for (std::size_t tag = begin; (tag = source_.find("{%", tag)) != std::string::npos; ++tag)
      if (raw_end(begin, tag, line_starts)) return true;
    refuse("a raw block does not end", "{% endraw %}", "the end of the template");
  }

  bool raw_end(std::size_t begin, std::size_t tag, bool line_starts) {
    const char sign = sign_at(tag + 2);
    const std::size_t word = space_end(source_, tag + 2 + (sign != ' ' ? 1 : 0));
    if (source_.compare(word, 6, "endraw") != 0) return false;
    std::size_t end = space_end(source_, word + 6);
    const char end_sign = sign_at(end);
    if (end_sign != ' ') ++end;
    if (source_.compare(end, 2, "%}") != 0) return false;
    push_data(begin, tag, sign, line_starts, true);
    advance(end + 2);
    after_tag(end_sign);
    return true;
  }

  void tag_tokens(bool output) {
    const std::string_view close = output ? "}}" : "%}";
    for (;;) {
      skip_space();
      if (at_ >= source_.size()) refuse("a tag does not end", close, "the end of the template");
      if (open_.empty() && tag_end(output, close)) return;
      token();
    }
  }

  bool tag_end(bool output, std::string_view close) {
    const char sign = sign_at(at_);
    if (output && sign == '+') return false;
    const std::size_t end = at_ + (sign != ' ' ? 1 : 0);
    if (source_.compare(end, 2, close) != 0) return false;
    push(output ? TokenKind::output_end : TokenKind::block_end, "");
    advance(end + 2);
    if (sign == '-') {
      skip_space();
    } else if (!output) {
      after_tag(sign);
    }
    return true;
  }

  void token() {
    const char c = source_[at_];
    if (is_digit(c)) return number();
    if (starts_name(c)) return word();
    if (c == '"' || c == '\'') return quoted(c);
    symbol();
  }

  void word() {
    std::size_t end = at_;
    while (end < source_.size() && (starts_name(source_[end]) || is_digit(source_[end]))) ++end;
    push(TokenKind::name, source_.substr(at_, end - at_));
    advance(end);
  }

  void number() {
    std::size_t end = digits_end(at_);
    bool real = false;
    if (end + 1 < source_.size() && source_[end] == '.' && is_digit(source_[end + 1]) &&
        !(at_ > 0 && source_[at_ - 1] == '.')) {
      real = true;
      end = digits_end(end + 1);
    }
    if (end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
      std::size_t exponent = end + 1;
      if (sign_at(exponent) != ' ') ++exponent;
      if (exponent < source_.size() && is_digit(source_[exponent])) {
        real = true;
        end = digits_end(exponent);
      }
    }
    std::string text = source_.substr(at_, end - at_);
    if (end < source_.size() && (starts_name(source_[end])))
      refuse("a number", "decimal digits", text + source_[end]);
    if (!real && text.size() > 1 && text[0] == '0' &&
        text.find_first_not_of("0_") != std::string::npos)
      refuse("a number", "no zero in front", text);
    std::erase(text, '_');
    push(real ? TokenKind::real : TokenKind::integer, std::move(text));
    advance(end);
  }

  // Digits, and single underscores between them.
  std::size_t digits_end(std::size_t at) const {
    while (at < source_.size() &&
           (is_digit(source_[at]) ||
            (source_[at] == '_' && at + 1 < source_.size() && is_digit(source_[at + 1]))))
      ++at;
    return at;
  }

  void quoted(char quote) {
    std::size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size())
      refuse("a string does not end", std::string(1, quote), "the end of the template");
    const std::string_view inside = std::string_view(source_).substr(at_ + 1, end - at_ - 1);
    push(TokenKind::string, resolve_escapes(inside, template_place(where_, line_)));
    advance(end + 1);
  }

  void symbol() {
    constexpr std::array<std::string_view, 24> symbols = {
        "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~",
        "[",  "]",  "(",  ")",  "{",  "}",  ">", "<", "=", ".", ":", "|"};
    for (const std::string_view s : symbols)
      if (ahead(s)) return push_symbol(s);
    if (ahead(",") || ahead(";")) return push_symbol(source_.substr(at_, 1));
    const CodePoint point = code_point_at(source_, at_);
    refuse("inside of a tag", "an expression", "'" + source_.substr(at_, point.bytes) + "'");
  }

  // Brackets are paired here, because a }} inside of {...} ends no tag.
  void push_symbol(std::string_view s) {
    const std::string symbol(s);
    if (s == "(") open_ += ')';
    if (s == "[") open_ += ']';
    if (s == "{") open_ += '}';
    if (s == ")" || s == "]" || s == "}") {
      if (open_.empty() || open_.back() != s[0])
        refuse("brackets", open_.empty() ? "none to close" : std::string(1, open_.back()),
               "'" + symbol + "'");
      open_.pop_back();
    }
    push(TokenKind::symbol, symbol);
    advance(at_ + s.size());
  }

  const std::string& source_;
  const std::string& where_;
  std::size_t at_ = 0, line_ = 1;
  std::string open_;  // closing brackets that are expected
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source, const std::string& where,
                            const Limits& limits) {
  if (source.size() > limits.source_bytes)
    fail(ErrorCode::out_of_range, where, "bytes of a chat template",
         "at most " + std::to_string(limits.source_bytes), std::to_string(source.size()));
  if (const std::size_t bad = io::first_invalid_utf8(source); bad != std::string_view::npos)
    fail(ErrorCode::io, where, "a chat template", "UTF-8",
         "something else at byte " + std::to_string(bad));
  const std::string text = normalized(source);
  return Lexer(text, where).run();
}

}  // namespace heddle::text::chat
