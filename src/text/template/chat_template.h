// Chat templates: how a model wants its conversations written. They come with models, in the subset
// of Jinja that models use, and turn a list of messages into one text.
//
//     const auto chat = ChatTemplate::parse(text, "tokenizer_config.json");
//     const Rendered prompt = chat.render(context);  // {"messages": [...], "bos_token": ...}
//
// Constructs outside of the subset are refused by name when the template is parsed. Errors name the
// template and the line.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/template/limits.h"
#include "text/template/run.h"
#include "text/template/values/value.h"

namespace heddle::text::chat {

struct Piece {
  std::string text;
  bool from_user = false;  // letters only: no special token, whatever they spell
  bool operator==(const Piece&) const = default;
};

struct Rendered {
  std::vector<Piece> pieces;  // no two neighbours of one kind, none empty
  std::string text() const;
};

// The time of this machine, in its zone.
std::tm local_time();

class ChatTemplate {
 public:
  // `where` is what errors call the template.
  static ChatTemplate parse(std::string_view text, const std::string& where,
                            const Limits& limits = {});

  // The context is a mapping. Strings marked as a user's (Value::string(text, true), read_json())
  // stay marked on whatever way they take through the template.
  Rendered render(const Value& context, const Clock& clock = local_time) const;

 private:
  struct Parsed;
  explicit ChatTemplate(std::shared_ptr<const Parsed> parsed);

  std::shared_ptr<const Parsed> parsed_;
};

}  // namespace heddle::text::chat
