#include "heddle/chat.h"

#include <algorithm>
#include <utility>

#include "heddle/error.h"
#include "run/load_run.h"
#include "text/template/chat_template.h"

namespace heddle {

namespace {

using text::chat::ChatTemplate;
using text::chat::Value;
using Entries = std::vector<std::pair<Value, Value>>;

constexpr std::string_view kChat = "chat";

ChatTemplate template_of(const LanguageModel& model, const ChatOptions& options) {
  if (options.chat_template)
    return ChatTemplate::parse(*options.chat_template, "the chat template");
  const run::LoadedRun& run = run::loaded(model.model());
  const std::string where = "chat template of " + run.directory;
  if (run.templates.empty())
    fail(ErrorCode::invalid_argument, run.directory, "has no chat template",
         "a model that was trained for conversations, or a template of your own (--template FILE); "
         "heddle generate goes on from any text");
  const auto chosen = run.templates.size() == 1
                          ? run.templates.begin()
                          : std::ranges::find(run.templates, "default", &text::NamedTemplate::name);
  if (chosen == run.templates.end())
    fail(ErrorCode::invalid_argument, run.directory, "has several chat templates",
         "one that is called default", run.templates[0].name + ", " + run.templates[1].name);
  return ChatTemplate::parse(chosen->text, where);
}

// Names of special tokens, which templates write. These are the model's own, and become tokens.
void add_specials(const text::Tokenizer& tokenizer, Entries& context) {
  const text::SpecialIds& ids = tokenizer.specials();
  const auto add = [&](const char* name, std::optional<std::int32_t> id) {
    if (id) context.emplace_back(Value::string(name), Value::string(tokenizer.decode({&*id, 1})));
  };
  add("bos_token", ids.begin);
  add("eos_token", ids.end);
  add("pad_token", ids.pad);
  add("unk_token", ids.unknown);
  add("sep_token", ids.separator);
  add("cls_token", ids.classify);
  add("mask_token", ids.mask);
}

// Everything in a message is marked: none of it can become a special token.
Value value_of(std::span<const Message> messages) {
  std::vector<Value> list;
  list.reserve(messages.size());
  for (const Message& m : messages)
    list.push_back(Value::map({{Value::string("role"), Value::string(m.role, true)},
                               {Value::string("content"), Value::string(m.content, true)}}));
  return Value::list(std::move(list));
}

ChatPrompt encoded(const text::chat::Rendered& rendered, const text::Tokenizer& tokenizer) {
  ChatPrompt prompt;
  std::vector<text::TextRange> from_users;
  for (const text::chat::Piece& piece : rendered.pieces) {
    const std::size_t begin = prompt.text.size();
    prompt.text += piece.text;
    if (piece.from_user) from_users.push_back({begin, prompt.text.size()});
  }
  prompt.tokens = tokenizer.encode(prompt.text, from_users);
  return prompt;
}

}  // namespace

struct Chat::Parts {
  ChatTemplate chat_template;
};

Chat::Chat(LanguageModel model, ChatOptions options)
    : model_(std::move(model)),
      options_(std::move(options)),
      parts_(std::make_shared<const Parts>(Parts{template_of(model_, options_)})) {
  reset();
}

void Chat::reset() {
  messages_.clear();
  if (!options_.system.empty()) messages_.push_back({"system", options_.system});
}

ChatPrompt Chat::prompt(std::span<const Message> messages) const {
  const text::Tokenizer& tokenizer = run::loaded(model_.model()).codec->source();
  Entries context;
  add_specials(tokenizer, context);
  context.emplace_back(Value::string("messages"), value_of(messages));
  context.emplace_back(Value::string("tools"), Value::none());
  context.emplace_back(Value::string("documents"), Value::none());
  context.emplace_back(Value::string("add_generation_prompt"), Value::boolean(true));
  return encoded(parts_->chat_template.render(Value::map(std::move(context))), tokenizer);
}

ChatPrompt Chat::prompt(std::string_view message) const {
  std::vector<Message> all = messages_;
  all.push_back({"user", std::string(message)});
  return prompt(all);
}

Generation Chat::answer(std::span<const Message> messages, const GenerationOptions& options,
                        const TextSink& sink) const {
  if (options.samples != 1 || options.slide)
    fail(ErrorCode::invalid_argument, kChat, options.slide ? "option slide" : "option samples",
         options.slide ? "none: a conversation is read whole" : "1: a conversation has one answer",
         options.slide ? "sliding" : std::to_string(options.samples));
  const std::vector<std::int32_t> tokens = prompt(messages).tokens;
  GenerationOptions with = options;
  if (!model_.model().network().config().recurrent()) {
    const auto length = static_cast<std::int64_t>(tokens.size());
    const std::int64_t room = model_.context() - length;
    if (room < 1)
      fail(ErrorCode::out_of_range, kChat,
           "the conversation has " + std::to_string(length) + " tokens",
           "fewer than the " + std::to_string(model_.context()) +
               " of the model's context; a new conversation (/reset) begins with none",
           std::to_string(length));
    with.tokens = std::min(options.tokens.value_or(room), room);
  }
  return model_.generate(tokens, with, sink);
}

Generation Chat::say(std::string_view message, const GenerationOptions& options,
                     const TextSink& sink) {
  std::vector<Message> all = messages_;
  all.push_back({"user", std::string(message)});
  Generation result = answer(all, options, sink);
  const bool nothing = result.samples[0].finish == Finish::cancelled && result.text().empty();
  if (nothing) return result;
  all.push_back({"assistant", result.text()});
  messages_ = std::move(all);
  return result;
}

}  // namespace heddle
