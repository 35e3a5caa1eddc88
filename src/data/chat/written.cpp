#include "data/chat/written.h"

#include <algorithm>
#include <optional>

#include "heddle/error.h"

namespace heddle::data {

using text::NamedTemplate;
using text::chat::Value;

const NamedTemplate& chosen_template(std::span<const NamedTemplate> templates,
                                     const std::string& where, bool tools) {
  if (templates.empty())
    fail(ErrorCode::invalid_argument, where, "the model has no chat template",
         "a model that was trained for conversations, or in heddle chat a template of your own "
         "(--template FILE); heddle generate goes on from any text");
  if (tools)
    if (const auto found = std::ranges::find(templates, "tool_use", &NamedTemplate::name);
        found != templates.end())
      return *found;
  if (templates.size() == 1) return templates.front();
  const auto found = std::ranges::find(templates, "default", &NamedTemplate::name);
  if (found == templates.end())
    fail(ErrorCode::invalid_argument, where, "the model has several chat templates",
         "one that is called default", templates[0].name + ", " + templates[1].name);
  return *found;
}

Variables special_variables(const text::Tokenizer& tokenizer) {
  const text::SpecialIds& ids = tokenizer.specials();
  Variables all;
  const auto add = [&](const char* name, std::optional<std::int32_t> id) {
    if (id) all.emplace_back(Value::string(name), Value::string(tokenizer.decode({&*id, 1})));
  };
  add("bos_token", ids.begin);
  add("eos_token", ids.end);
  add("pad_token", ids.pad);
  add("unk_token", ids.unknown);
  add("sep_token", ids.separator);
  add("cls_token", ids.classify);
  add("mask_token", ids.mask);
  return all;
}

Written written(const text::chat::Rendered& rendered) {
  Written all;
  for (const text::chat::Piece& piece : rendered.pieces) {
    const std::size_t begin = all.text.size();
    all.text += piece.text;
    if (piece.from_user) all.from_users.push_back({begin, all.text.size()});
  }
  return all;
}

std::vector<std::int32_t> encode(const text::Tokenizer& tokenizer, const Written& text) {
  return tokenizer.encode(text.text, text.from_users);
}

}  // namespace heddle::data
