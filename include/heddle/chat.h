// A conversation with a language model that was trained for it.
//
//   heddle::Chat chat(heddle::LanguageModel("SmolLM2-135M-Instruct.gguf"));
//   std::cout << chat.say("What is a heddle?").text() << "\n";
//   std::cout << chat.say("And a shuttle?").text() << "\n";  // it knows what was said before
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/generation.h"
#include "heddle/language_model.h"

namespace heddle {

struct Message {
  std::string role;  // "system", "user", "assistant", or another that the model's template knows
  std::string content;
  bool operator==(const Message&) const = default;
};

struct ChatOptions {
  std::string system = {};  // what the model is told before everything else; empty: nothing
  // How messages are written for the model, in the subset of Jinja that templates use; absent: as
  // the model's files say (chat_template.jinja, tokenizer_config.json, GGUF).
  std::optional<std::string> chat_template = {};
};

// A prompt as a model reads it. No text of a message is ever a special token, whatever it spells:
// these come from the template alone.
struct ChatPrompt {
  std::string text;
  std::vector<std::int32_t> tokens;
};

// Every function throws heddle::Error. One thread at a time may use a Chat.
class Chat {
 public:
  // An Error says what to do where the model has no template.
  explicit Chat(LanguageModel model, ChatOptions options = {});

  // Sends a message of the user's and gives the answer, whose text the sink receives as it comes;
  // both become part of the conversation. One that was cancelled stays as far as it came; an Error
  // leaves the conversation as it was. Of messages that were read for the answer before, whole
  // blocks of 256 tokens are not read again; that changes no bit of the answer.
  Generation say(std::string_view message, const GenerationOptions& options = {},
                 const TextSink& sink = {});

  // The answer to any messages; the conversation of this object has no part in it. Without
  // options.tokens an answer may fill the model's context. Messages that leave no room for one are
  // an Error with both numbers: nothing is ever cut.
  Generation answer(std::span<const Message> messages, const GenerationOptions& options = {},
                    const TextSink& sink = {}) const;

  // The prompt that the model reads before it answers.
  ChatPrompt prompt(std::span<const Message> messages) const;
  ChatPrompt prompt(std::string_view message) const;  // as say() would send it now

  // The conversation, with the system's text where there is one.
  const std::vector<Message>& messages() const { return messages_; }
  void set_messages(std::vector<Message> messages) { messages_ = std::move(messages); }
  void reset();  // as it began

  const LanguageModel& model() const { return model_; }

 private:
  struct Parts;
  struct Memory;
  Generation answer(std::span<const Message> messages, const GenerationOptions& options,
                    const TextSink& sink, Memory& memory) const;

  LanguageModel model_;
  ChatOptions options_;
  std::vector<Message> messages_;
  std::shared_ptr<const Parts> parts_;
  std::shared_ptr<Memory> memory_;  // what the model has read; shared by copies, as the model is
};

}  // namespace heddle
