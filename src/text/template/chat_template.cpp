#include "text/template/chat_template.h"

#include <utility>

#include "text/template/interpreter.h"
#include "text/template/syntax/parser.h"

namespace heddle::text::chat {
namespace {

std::vector<Piece> pieces_of(const MarkedText& text) {
  std::vector<Piece> pieces;
  std::size_t at = 0;
  const auto add = [&](std::size_t end, bool from_user) {
    if (end > at)
      pieces.push_back({.text = text.bytes().substr(at, end - at), .from_user = from_user});
    at = end;
  };
  for (const Span& span : text.user_spans()) {
    add(span.begin, false);
    add(span.end, true);
  }
  add(text.size(), false);
  return pieces;
}

}  // namespace

struct ChatTemplate::Parsed {
  std::string where;
  Limits limits;
  Body body;
};

std::string Rendered::text() const {
  std::string text;
  for (const Piece& piece : pieces) text += piece.text;
  return text;
}

std::tm local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm result{};
  localtime_r(&now, &result);
  return result;
}

ChatTemplate::ChatTemplate(std::shared_ptr<const Parsed> parsed) : parsed_(std::move(parsed)) {}

ChatTemplate ChatTemplate::parse(std::string_view text, const std::string& where,
                                 const Limits& limits) {
  return ChatTemplate(std::make_shared<const Parsed>(
      Parsed{.where = where, .limits = limits, .body = parse_template(text, where, limits)}));
}

Rendered ChatTemplate::render(const Value& context, const Clock& clock) const {
  if (!context.is(Kind::map))
    fail(ErrorCode::invalid_argument, parsed_->where, "the context of a chat template", "a mapping",
         context.kind_name());
  Run run(parsed_->where, parsed_->limits, clock);
  return {.pieces = pieces_of(Interpreter(run, context).render(parsed_->body))};
}

}  // namespace heddle::text::chat
