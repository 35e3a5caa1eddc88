// One conversation as tokens, and which of them are answers: those that a model learns to write.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/codec/codec.h"
#include "text/template/chat_template.h"

namespace heddle::data {

// Tokens from `begin` up to and without `end`.
struct TokenRange {
  std::int64_t begin = 0, end = 0;
  bool operator==(const TokenRange&) const = default;
};

struct Conversation {
  std::vector<std::int32_t> tokens;
  std::vector<TokenRange> answers;  // in order, none empty; the first token is in none
};

// Conversations by the templates of a model. All functions may be called from any number of
// threads.
class Conversations {
 public:
  // Error where the codec has no template.
  explicit Conversations(const Codec& codec);

  // {"messages": [{"role": ..., "content": ...}, ...], "tools": [...], "chat_template_kwargs":
  // {...}}, the last two where they are needed. An Error says what is wrong with it, or why the
  // template does not tell which tokens are the answers.
  Conversation encode(std::string_view json) const;

 private:
  const Codec& codec_;
  text::chat::ChatTemplate plain_, with_tools_;
};

}  // namespace heddle::data
