#include "data/chat/answers.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "data/chat/written.h"
#include "heddle/error.h"
#include "io/errors.h"
#include "text/template/values/read_json.h"

namespace heddle::data {
namespace {

using text::chat::ChatTemplate;
using text::chat::Kind;
using text::chat::Value;

constexpr const char* kConversation = "conversation";

[[noreturn]] void refuse(const std::string& problem, std::string_view expected,
                         std::string_view got = {}) {
  fail(ErrorCode::invalid_argument, kConversation, problem, expected, got);
}

std::string message_name(std::size_t index) { return "message " + std::to_string(index + 1); }

// A date of today would make every day's data another, and no run could be resumed.
std::tm no_clock() {
  refuse("the chat template asks for today's date",
         "a date in the data, by the name that the template gives it: \"chat_template_kwargs\": "
         "{\"date_string\": \"26 Jul 2024\"}");
}

void check_message(const Value& message, std::size_t index) {
  if (!message.is(Kind::map))
    refuse(message_name(index), "an object with a role and a content", message.kind_name());
  const Value *role = message.find("role"), *content = message.find("content");
  if (role == nullptr || !role->is(Kind::string))
    refuse(message_name(index) + " has no role", R"("role": "user", "assistant" or another)",
           role == nullptr ? "nothing" : role->kind_name());
  const bool calls = message.find("tool_calls") != nullptr;
  const bool said =
      content != nullptr && (content->is(Kind::string) || content->is(Kind::sequence));
  if (!said && !calls)
    refuse(message_name(index) + " has no content", "a text, or tool_calls in place of one",
           content == nullptr ? "nothing" : content->kind_name());
}

bool is_answer(const Value& message) { return message.find("role")->bytes() == "assistant"; }

// One line of a file.
struct Line {
  std::vector<Value> messages;
  Variables variables;  // tools and others
  bool tools = false;
};

Line read_line(std::string_view json) {
  const Value root = text::chat::read_json(json, kConversation, true);
  if (!root.is(Kind::map))
    refuse("is no conversation", R"({"messages": [{"role": "user", "content": "..."}, ...]})",
           root.kind_name());
  Line line;
  for (const auto& [key, value] : root.map().entries) {
    const std::string& name = key.bytes();
    if (name == "messages") {
      if (!value.is(Kind::sequence))
        refuse("key messages", "a list of messages", value.kind_name());
      line.messages = value.sequence().items;
    } else if (name == "tools") {
      line.tools = value.is(Kind::sequence) && !value.sequence().items.empty();
      line.variables.emplace_back(Value::string("tools"), line.tools ? value : Value::none());
    } else if (name == "chat_template_kwargs") {
      if (!value.is(Kind::map)) refuse("key " + name, "an object", value.kind_name());
      for (const auto& entry : value.map().entries) line.variables.push_back(entry);
    } else {
      refuse("key " + io::shown(name) + " is not known",
             "messages, tools and chat_template_kwargs (values by the names that the template has "
             "for them)");
    }
  }
  if (line.messages.empty()) refuse("has no messages", "at least one, in the key messages");
  for (std::size_t i = 0; i < line.messages.size(); ++i) check_message(line.messages[i], i);
  if (std::ranges::none_of(line.messages, is_answer))
    refuse("has no answer to learn from", R"(a message with "role": "assistant")");
  return line;
}

bool begins_with(const std::vector<std::int32_t>& all, const std::vector<std::int32_t>& first) {
  return first.size() <= all.size() && std::equal(first.begin(), first.end(), all.begin());
}

// One conversation through the template, as far as it is asked for.
class Writer {
 public:
  Writer(const Codec& codec, const ChatTemplate& chat_template, Line line)
      : codec_(codec),
        template_(chat_template),
        line_(std::move(line)),
        whole_(write(line_.messages.size(), false)),
        tokens_(encode(whole_)) {}

  Conversation conversation() {
    Conversation result{.tokens = tokens_, .answers = {}};
    for (std::size_t i = 0; i < line_.messages.size(); ++i)
      if (is_answer(line_.messages[i])) result.answers.push_back(answer(i));
    return result;
  }

 private:
  Written write(std::size_t count, bool prompt) const {
    Variables context = special_variables(codec_.source());
    const auto end = line_.messages.begin() + static_cast<std::ptrdiff_t>(count);
    context.emplace_back(Value::string("tools"), Value::none());
    context.emplace_back(Value::string("documents"), Value::none());
    context.insert(context.end(), line_.variables.begin(), line_.variables.end());
    context.emplace_back(Value::string("messages"),
                         Value::list(std::vector<Value>(line_.messages.begin(), end)));
    context.emplace_back(Value::string("add_generation_prompt"), Value::boolean(prompt));
    return data::written(template_.render(Value::map(std::move(context)), no_clock));
  }

  std::vector<std::int32_t> encode(const Written& text) const {
    return data::encode(codec_.source(), text);
  }

  // The model reads what is before an answer, and then writes the tokens that come to it.
  TokenRange answer(std::size_t index) const {
    const Written before = write(index, true), with = write(index + 1, false);
    if (!with.text.starts_with(before.text))
      refuse("the chat template does not write " + message_name(index) +
                 " behind the prompt for it, so that its tokens cannot be told from others",
             "a template whose text with an answer begins with its text before it");
    if (!whole_.text.starts_with(with.text))
      refuse("the chat template writes " + message_name(index) +
                 " in another way where messages follow it, so that its tokens cannot be told",
             "conversations with one answer, the last message, for this template");
    const std::vector<std::int32_t> first = encode(before), all = encode(with);
    if (!begins_with(tokens_, first) || !begins_with(tokens_, all))
      refuse(message_name(index) +
                 " shares a token with the text around it, which a model that "
                 "answers would never see",
             "an answer that neither begins nor ends with white space");
    TokenRange range{std::max<std::int64_t>(std::ssize(first), 1), std::ssize(all)};
    range.end = end_of(range);
    if (range.end <= range.begin) refuse(message_name(index) + " has no tokens", "a text");
    return range;
  }

  // Text that a template writes behind the token that ends an answer is not the model's to say.
  std::int64_t end_of(const TokenRange& answer) const {
    const std::vector<std::int32_t>& ends = codec_.ends();
    for (std::int64_t i = answer.end; i > answer.begin; --i)
      if (std::ranges::find(ends, tokens_[static_cast<std::size_t>(i - 1)]) != ends.end()) return i;
    return answer.end;
  }

  const Codec& codec_;
  const ChatTemplate& template_;
  Line line_;
  Written whole_;
  std::vector<std::int32_t> tokens_;
};

}  // namespace

Conversations::Conversations(const Codec& codec)
    : codec_(codec),
      plain_(ChatTemplate::parse(chosen_template(codec.templates(), kConversation).text,
                                 "chat template of the model")),
      with_tools_(ChatTemplate::parse(chosen_template(codec.templates(), kConversation, true).text,
                                      "chat template of the model")) {}

Conversation Conversations::encode(std::string_view json) const {
  Line line = read_line(json);
  const ChatTemplate& chosen = line.tools ? with_tools_ : plain_;
  return Writer(codec_, chosen, std::move(line)).conversation();
}

}  // namespace heddle::data
