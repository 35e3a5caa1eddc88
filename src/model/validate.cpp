// The one place that refuses models that make no sense.
#include <cmath>
#include <string>

#include "model/config.h"
#include "model/kinds.h"
#include "nn/require.h"

namespace heddle::model {

namespace {

constexpr const char* kWhere = "model";
constexpr std::int64_t kMostLayers = nn::kSecondStack - 2;

void expect(bool ok, std::string_view key, std::string_view expected, std::string_view got) {
  nn::require(ok, kWhere, key, expected, got);
}

void expect_at_least_one(std::int64_t value, std::string_view key) {
  nn::require(value > 0, kWhere, key, "1 or more", static_cast<double>(value));
}

void expect_share(double value, std::string_view key) {
  nn::require(value >= 0 && value < 1, kWhere, key, "0 or more and below 1", value);
}

void check_task(const ModelConfig& c) {
  const auto only = [&c](Task task) {
    expect(
        c.task == task, "task",
        std::string(to_string(task)) + ", the only one of kind = " + std::string(to_string(c.kind)),
        to_string(c.task));
  };
  switch (c.kind) {
    case Kind::decoder:
    case Kind::rnn: only(Task::language); break;
    case Kind::encoder_decoder:
    case Kind::rnn_seq2seq: only(Task::translate); break;
    case Kind::vit: only(Task::classify); break;
    case Kind::encoder:
      expect(c.task == Task::tag || c.task == Task::classify || c.task == Task::masked, "task",
             "tag, classify or masked with kind = encoder", to_string(c.task));
      break;
    case Kind::birnn:
      expect(c.task == Task::tag || c.task == Task::language, "task",
             "tag or language with kind = birnn", to_string(c.task));
      break;
  }
}

void check_sizes(const ModelConfig& c) {
  const DataSizes& s = c.sizes;
  if (c.task == Task::tag || c.task == Task::classify) expect_at_least_one(s.classes, "classes");
  if (c.kind != Kind::vit) {
    expect_at_least_one(s.vocabulary, "vocabulary");
    expect_at_least_one(s.context, "context");
    expect(c.patch == 0, "patch", "none: only kind = vit cuts images", std::to_string(c.patch));
    return;
  }
  expect_at_least_one(c.patch, "patch");
  expect_at_least_one(s.channels, "channels");
  const std::string pixels = std::to_string(s.height) + " × " + std::to_string(s.width);
  expect(s.height > 0 && s.width > 0 && s.height % c.patch == 0 && s.width % c.patch == 0, "patch",
         "a divisor of the images' " + pixels + " pixels", std::to_string(c.patch));
}

void check_numbers(const ModelConfig& c) {
  expect_at_least_one(c.layers, "layers");
  expect_at_least_one(c.width, "width");
  nn::require(c.layers <= kMostLayers && c.decoder_layers <= kMostLayers, kWhere, "layers",
              "at most " + std::to_string(kMostLayers), static_cast<double>(c.layers));
  nn::require(c.ffn_width >= 0, kWhere, "ffn_width", "1 or more", static_cast<double>(c.ffn_width));
  nn::require(c.decoder_layers >= 0, kWhere, "decoder_layers", "1 or more",
              static_cast<double>(c.decoder_layers));
  expect(c.two_stacks() || c.decoder_layers == 0, "decoder_layers",
         "none: only encoder-decoder and rnn-seq2seq have a second stack",
         std::to_string(c.decoder_layers));
  expect_share(c.dropout, "dropout");
  expect_share(c.embedding_dropout, "embedding_dropout");
  nn::require(std::isfinite(c.norm_epsilon) && c.norm_epsilon > 0, kWhere, "norm_epsilon",
              "above 0", c.norm_epsilon);
  nn::require(std::isfinite(c.init_deviation) && c.init_deviation > 0, kWhere, "init_deviation",
              "above 0", c.init_deviation);
  expect(!c.tied || c.generates() || c.task == Task::masked, "tied",
         "false: the classifier scores labels, not tokens", "true");
}

void check_transformer(const ModelConfig& c) {
  expect(!c.residual, "residual",
         "none: it is a choice of the recurrent kinds, every Transformer has a residual stream",
         "true");
  expect(!c.attention.prefix || c.kind == Kind::decoder, "attention.prefix",
         "false: only kind = decoder has a prompt in the sequence that it continues", "true");
  const bool causal = c.kind == Kind::decoder;
  if (c.kind == Kind::encoder_decoder) {
    // One set of options serves both stacks.
    expect(!c.attention.look_ahead, "attention.look_ahead", "none: the decoder sees no later token",
           "a number");
    nn::validate(self_attention(c, true));
    nn::validate(cross_attention(c));
  }
  nn::validate(self_attention(c, causal));
  if (c.moe)
    nn::validate(moe_config(c));
  else
    nn::validate(ffn_config(c));
}

}  // namespace

void validate(const ModelConfig& config) {
  check_numbers(config);
  check_task(config);
  check_sizes(config);
  if (config.recurrent())
    validate_recurrent(config);
  else
    check_transformer(config);
}

}  // namespace heddle::model
