#include "heddle/chat.h"

#include <algorithm>
#include <utility>

#include "data/chat/written.h"
#include "generate/decode/generate.h"
#include "generate/decode/reader.h"
#include "heddle/error.h"
#include "run/load_run.h"
#include "text/template/chat_template.h"

namespace heddle {

namespace {

using text::chat::ChatTemplate;
using text::chat::Value;

constexpr std::string_view kChat = "chat";

ChatTemplate template_of(const LanguageModel& model, const ChatOptions& options) {
  if (options.chat_template)
    return ChatTemplate::parse(*options.chat_template, "the chat template");
  const run::LoadedRun& run = run::loaded(model.model());
  return ChatTemplate::parse(data::chosen_template(run.templates, run.directory).text,
                             "chat template of " + run.directory);
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

}  // namespace

struct Chat::Parts {
  ChatTemplate chat_template;
};

struct Chat::Memory {
  generate::ReadBefore read;
};

Chat::Chat(LanguageModel model, ChatOptions options)
    : model_(std::move(model)),
      options_(std::move(options)),
      parts_(std::make_shared<const Parts>(Parts{template_of(model_, options_)})),
      memory_(std::make_shared<Memory>()) {
  reset();
}

void Chat::reset() {
  messages_.clear();
  if (!options_.system.empty()) messages_.push_back({"system", options_.system});
}

ChatPrompt Chat::prompt(std::span<const Message> messages) const {
  const text::Tokenizer& tokenizer = run::loaded(model_.model()).codec->source();
  data::Variables context = data::special_variables(tokenizer);
  context.emplace_back(Value::string("messages"), value_of(messages));
  context.emplace_back(Value::string("tools"), Value::none());
  context.emplace_back(Value::string("documents"), Value::none());
  context.emplace_back(Value::string("add_generation_prompt"), Value::boolean(true));
  data::Written written =
      data::written(parts_->chat_template.render(Value::map(std::move(context))));
  std::vector<std::int32_t> tokens = data::encode(tokenizer, written);
  return {std::move(written.text), std::move(tokens)};
}

ChatPrompt Chat::prompt(std::string_view message) const {
  std::vector<Message> all = messages_;
  all.push_back({"user", std::string(message)});
  return prompt(all);
}

Generation Chat::answer(std::span<const Message> messages, const GenerationOptions& options,
                        const TextSink& sink) const {
  Memory none;
  return answer(messages, options, sink, none);
}

Generation Chat::answer(std::span<const Message> messages, const GenerationOptions& options,
                        const TextSink& sink, Memory& memory) const {
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
  generate::Decoding decoding = generate::decoding_of(model_.model());
  decoding.before = &memory.read;
  return generate::generate(model_.model().network(), tokens, with, decoding, sink);
}

Generation Chat::say(std::string_view message, const GenerationOptions& options,
                     const TextSink& sink) {
  std::vector<Message> all = messages_;
  all.push_back({"user", std::string(message)});
  Generation result = answer(all, options, sink, *memory_);
  const bool nothing = result.samples[0].finish == Finish::cancelled && result.text().empty();
  if (nothing) return result;
  all.push_back({"assistant", result.text()});
  messages_ = std::move(all);
  return result;
}

}  // namespace heddle
