// Conversations as tokens, with the answers marked: by hand, for small templates.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/test_support.h"
#include "data/chat/answers.h"
#include "data/dataset.h"
#include "data/preview.h"
#include "data/test_support.h"
#include "model/model.h"
#include "text/train.h"

namespace heddle::data {
namespace {

// [user]hi</s>\n[assistant]yo</s>\n
constexpr const char* kTemplate =
    "{% for m in messages %}[{{ m.role }}]{{ m.content }}</s>\n{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}";

std::shared_ptr<const Codec> codec_with(const std::string& chat_template,
                                        std::int64_t length = 64) {
  const std::string_view text = "x";
  std::shared_ptr<const text::Tokenizer> bytes =
      text::train_tokenizer(text::TokenizerSpec::parse("byte", "test"), {&text, 1}, {.end = true});
  const std::int32_t end = *bytes->end();
  return std::make_shared<const Codec>(CodecParts{.source = std::move(bytes),
                                                  .length = length,
                                                  .framed = true,
                                                  .ends = {end},
                                                  .templates = {{"default", chat_template}}});
}

std::string message(const std::string& role, const std::string& content) {
  return R"({"role": ")" + role + R"(", "content": ")" + content + R"("})";
}

std::string chat(const std::vector<std::string>& messages, const std::string& more = "") {
  std::string all;
  for (const std::string& m : messages) all += (all.empty() ? "" : ", ") + m;
  return R"({"messages": [)" + all + "]" + more + "}";
}

const std::string kShort = chat({message("user", "hi"), message("assistant", "yo")});

// The tokens, those of answers in <>.
std::string marked(const Codec& codec, const std::string& json) {
  const Conversation c = Conversations(codec).encode(json);
  std::string text;
  auto answer = c.answers.begin();
  for (std::int64_t i = 0; i < std::ssize(c.tokens); ++i) {
    if (answer != c.answers.end() && answer->begin == i) text += "<";
    const std::int32_t token = c.tokens[static_cast<std::size_t>(i)];
    text += token == *codec.source().end() ? "$" : codec.source().decode({&token, 1});
    if (answer != c.answers.end() && answer->end == i + 1) {
      text += ">";
      ++answer;
    }
  }
  return text;
}

TEST(ChatAnswers, AreTheAssistantsWithTheTokenThatEndsThem) {
  const auto codec = codec_with(kTemplate);
  EXPECT_EQ(marked(*codec, kShort), "[user]hi$\n[assistant]<yo$>\n");
  EXPECT_EQ(
      marked(*codec, chat({message("system", "s"), message("user", "a"), message("assistant", "b"),
                           message("user", "c"), message("assistant", "d"), message("user", "e")})),
      "[system]s$\n[user]a$\n[assistant]<b$>\n[user]c$\n[assistant]<d$>\n[user]e$\n");
}

TEST(ChatAnswers, WithoutATokenThatEndsThemAreWhatTheTemplateWrites) {
  const auto codec = codec_with(
      "{% for m in messages %}{{ m.role }}: {{ m.content }};{% endfor %}"
      "{% if add_generation_prompt %}assistant:{% endif %}");
  EXPECT_EQ(marked(*codec, kShort), "user: hi;assistant:< yo;>");
}

TEST(ChatAnswers, TextsOfPeopleAreNoSpecialTokens) {
  const auto codec = codec_with(kTemplate);
  EXPECT_EQ(marked(*codec, chat({message("user", "a</s>"), message("assistant", "</s>b")})),
            "[user]a</s>$\n[assistant]<</s>b$>\n");
}

TEST(ChatAnswers, TemplatesAreToldToolsAndOtherValues) {
  const auto codec = codec_with(
      "{% if tools %}{{ tools[0].name }}{% endif %}{{ date_string }}|{% for m in messages %}"
      "{% if m.role == 'user' %}{{ m.content }}?{% else %}{{ m.content }}</s>{% endif %}"
      "{% endfor %}");
  EXPECT_EQ(marked(*codec, chat({message("user", "q"), message("assistant", "a")},
                                R"(, "tools": [{"name": "f"}], "chat_template_kwargs":
                                   {"date_string": "1 May"})")),
            "f1 May|q?<a$>");
}

TEST(ChatAnswers, TemplatesThatRewriteWhatWasSaidAreRefusedByName) {
  // Of earlier answers only a dot is left.
  const auto forgets = codec_with(
      "{% for m in messages %}{% if m.role == 'assistant' and not loop.last %}.{% else %}"
      "{{ m.content }}</s>{% endif %}{% endfor %}");
  EXPECT_EQ(marked(*forgets, kShort), "hi$<yo$>");
  expect_says(
      [&] {
        marked(*forgets, chat({message("user", "a"), message("assistant", "b"),
                               message("user", "c"), message("assistant", "d")}));
      },
      {"message 2", "where messages follow", "one answer"});
  const auto announces =
      codec_with("{{ messages | length }}{% for m in messages %}{{ m.content }}{% endfor %}");
  expect_says([&] { marked(*announces, kShort); }, {"message 2", "behind the prompt"});
}

TEST(ChatAnswers, WhatIsNoConversationIsRefused) {
  const auto codec = codec_with(kTemplate);
  const auto bad = [&](const std::string& json, std::initializer_list<std::string_view> parts) {
    expect_says([&] { marked(*codec, json); }, parts);
  };
  bad("[1]", {"is no conversation"});
  bad("{\"messages\": [", {"JSON"});
  bad("{}", {"no messages"});
  bad(R"({"messages": [], "id": 3})", {"id", "is not known"});
  bad(chat({message("user", "hi")}), {"no answer", "assistant"});
  bad(R"({"messages": [{"content": "x"}]})", {"message 1", "no role"});
  bad(R"({"messages": [{"role": "user"}]})", {"message 1", "no content"});
  expect_says([&] { marked(*codec_with("{{ strftime_now('%d') }}"), kShort); }, {"today's date"});
}

class ChatData : public testing::Test {
 protected:
  std::unique_ptr<Dataset> open(const std::string& lines, std::int64_t length = 64) {
    config_.training.chat = dir_.file("chat.jsonl", lines);
    OpenOptions options;
    options.codec = codec_with(kTemplate, length);
    return open_dataset(config_, model::Kind::decoder, model::Task::language, options);
  }

  io::TempDir dir_;
  DataConfig config_;
};

TEST_F(ChatData, BatchesAskForAnswersAlone) {
  const auto data = open(kShort + "\n\n" + chat({message("user", "a"), message("assistant", "")}));
  const model::Batch batch = data->training_batch(0, 2, 1);
  EXPECT_EQ(batch.counted, 3 + 1);
  EXPECT_EQ(data->training_shape(0, 2, 1), (BatchShape{2, batch.tokens.size(1)}));
  const std::vector<Preview> shown = preview(*data, 2, 2, 1);
  ASSERT_EQ(shown.size(), 2u);
  const bool first = shown[0].wanted.find('y') != std::string::npos;
  const Preview& p = shown[first ? 0 : 1];
  EXPECT_TRUE(p.read.starts_with("[ u s e r ] h i </s>")) << p.read;
  EXPECT_TRUE(p.wanted.ends_with("· y o </s> ·")) << p.wanted;
  EXPECT_NE(data->summary().find("2 conversations"), std::string::npos) << data->summary();
  EXPECT_NE(data->summary().find("4 of answers"), std::string::npos) << data->summary();
}

TEST_F(ChatData, LongConversationsAreRefusedOrLeftOutWhereTheRecipeSaysSo) {
  const std::string lines =
      kShort + "\n" + chat({message("user", std::string(99, 'q')), message("assistant", "a")});
  expect_says([&] { open(lines); }, {"chat.jsonl:2", "too long", "64", "skip_long"});
  config_.skip_long = true;
  EXPECT_NE(open(lines)->summary().find("1 dropped"), std::string::npos);
  config_.validation.chat = config_.training.chat;  // to leave one out would change the loss
  expect_says([&] { open(lines); }, {"chat.jsonl:2", "too long"});
}

TEST_F(ChatData, ErrorsNameFileAndLine) {
  expect_says([&] { open(kShort + "\n" + chat({message("user", "x")})); },
              {"chat.jsonl:2", "no answer"});
  config_.tokenizer = "byte";
  expect_says([&] { open(kShort); }, {"data.tokenizer", "chat template"});
  config_.tokenizer.clear();
  config_.context = 8;
  expect_says([&] { open(kShort); }, {"data.context", "max_length"});
}

// Each conversation is a row of its own: its scores are the same to the bit beside any other.
TEST_F(ChatData, ConversationsSeeNothingOfEachOther) {
  model::ModelConfig config;
  config.layers = 2;
  config.width = 16;
  config.attention.heads = 2;
  config.attention.position = nn::LearnedPosition{};
  config.sizes = codec_with(kTemplate)->sizes();
  const auto model = model::build_model(config, {.seed = 3});
  const auto scores = [&](const std::string& lines, std::int64_t rows) {
    const model::Batch batch = open(lines)->training_batch(0, rows, 1);
    const Tensor logits = model->logits(batch, {});  // [B, T, V]
    const std::int64_t length = 21;                  // of kShort, without its last token
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto* tokens = batch.tokens.data<std::int32_t>() + row * batch.tokens.size(1);
      if (tokens[6] != 'h') continue;
      const float* first = logits.data<float>() + row * logits.size(1) * logits.size(2);
      return std::vector<float>(first, first + length * logits.size(2));
    }
    return std::vector<float>();
  };
  const std::vector<float> alone = scores(kShort, 1);
  ASSERT_FALSE(alone.empty());
  for (const char* other : {"q", "another question", "and a much longer one than that"})
    EXPECT_EQ(scores(kShort + "\n" + chat({message("user", other), message("assistant", "a")}), 2),
              alone);
}

}  // namespace
}  // namespace heddle::data
