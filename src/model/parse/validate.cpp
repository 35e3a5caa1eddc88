// The one place that refuses models that make no sense.
#include <cmath>
#include <functional>
#include <string>

#include "model/config.h"
#include "model/kinds/kinds.h"
#include "nn/require.h"

namespace heddle::model {

namespace {

constexpr const char* kWhere = "model";
constexpr std::int64_t kMostLayers = nn::kSecondStack - 2;

void expect(bool ok, nn::Keys keys, std::string_view expected, std::string_view got) {
  nn::require(ok, kWhere, keys, expected, got);
}

void expect_at_least_one(std::int64_t value, std::string_view key) {
  nn::require(value > 0, kWhere, key, "1 or more", static_cast<double>(value));
}

void expect_share(double value, std::string_view key) {
  nn::require(value >= 0 && value < 1, kWhere, key, "0 or more and below 1", value);
}

// Runs a layer's own validate(), whose errors name the keys of its configuration, and names those
// of the recipe instead.
void in_recipe(const std::function<void()>& validate_layer,
               const std::function<std::string(const std::string&)>& name) {
  try {
    validate_layer();
  } catch (const KeyError& e) {
    throw e.renamed(kWhere, name);
  }
}

std::string attention_key(const std::string& key) {
  if (key == "width") return "model.width";
  if (key == "causal" || key == "cross") return "model.kind";  // follow from it
  if (key == "position.positions") return "data.context";
  return "model.attention." + key;
}

std::string ffn_key(const std::string& key) {
  const bool own = key == "width" || key == "ffn_width" || key == "ffn_clamp";
  return (own ? "model." : "model.moe.") + key;
}

std::string stack_key(const std::string& key) {
  return key == "cross" ? "model.kind" : "model." + key;
}

void check_task(const ModelConfig& c) {
  const auto only = [&c](Task task) {
    expect(
        c.task == task, {"model.task", "model.kind"},
        std::string(to_string(task)) + ", the only one of kind = " + std::string(to_string(c.kind)),
        to_string(c.task));
  };
  switch (c.kind) {
    case Kind::decoder:
    case Kind::rnn: only(Task::language); break;
    case Kind::encoder_decoder:
    case Kind::rnn_seq2seq: only(Task::translate); break;
    case Kind::vit:
      if (c.task != Task::embed) only(Task::classify);
      break;
    case Kind::encoder:
      expect(c.task == Task::tag || c.task == Task::classify || c.task == Task::masked ||
                 c.task == Task::embed,
             {"model.task", "model.kind"}, "tag, classify or masked with kind = encoder",
             to_string(c.task));
      break;
    case Kind::birnn:
      expect(c.task == Task::tag || c.task == Task::language, {"model.task", "model.kind"},
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
    expect(c.patch == 0, {"model.patch", "model.kind"}, "none: only kind = vit cuts images",
           std::to_string(c.patch));
    return;
  }
  expect_at_least_one(c.patch, "model.patch");
  expect_at_least_one(s.channels, "channels");
  const std::string pixels = std::to_string(s.height) + " × " + std::to_string(s.width);
  expect(s.height > 0 && s.width > 0 && s.height % c.patch == 0 && s.width % c.patch == 0,
         {"model.patch", "data.images", "data.image_folder"},
         "a divisor of the images' " + pixels + " pixels", std::to_string(c.patch));
}

// How large numbers are on their way in, between layers and out.
void check_factors(const ModelConfig& c) {
  const auto above_zero = [](double value, std::string_view key) {
    nn::require(std::isfinite(value) && value > 0, kWhere, key, "above 0", value);
  };
  above_zero(c.logit_scale, "model.logit_scale");
  nn::require(std::isfinite(c.logit_softcap) && c.logit_softcap >= 0, kWhere, "model.logit_softcap",
              "above 0, or 0 for none", c.logit_softcap);
  if (!c.embedding_scale) return;
  above_zero(*c.embedding_scale, "model.embedding_scale");
  expect(!c.scale_embedding || !*c.scale_embedding,
         {"model.embedding_scale", "model.scale_embedding"},
         "none beside scale_embedding = true: embeddings are multiplied once",
         "another factor than √width");
}

// A classifier of two layers, and what it reads of a whole.
void check_head(const ModelConfig& c) {
  const bool transformed = c.head_transform != HeadTransform::none;
  expect(transformed || !c.head_norm, {"model.head_norm", "model.head_transform"},
         "none without head_transform: it stands behind that layer", "true");
  expect(transformed || !c.head_transform_bias,
         {"model.head_transform_bias", "model.head_transform"},
         "none without head_transform: it is a part of that layer", "a bias");
  expect(!transformed || c.task != Task::embed, {"model.head_transform", "model.task"},
         "none: a model of task embed has no classifier", to_string(c.head_transform));
  expect(c.pooling != Pooling::first_token || c.kind != Kind::vit, {"model.pooling", "model.kind"},
         "class-token, class-mean, class-extra or mean: patches have no first one",
         to_string(c.pooling));
  const bool two = c.pooling == Pooling::class_mean || c.pooling == Pooling::class_extra;
  expect(!two || (c.kind == Kind::vit && c.task == Task::classify), {"model.pooling", "model.kind"},
         "class-token, first-token or mean: only a classifier of images reads two vectors",
         to_string(c.pooling));
  expect(c.extra_tokens >= 0 && (c.extra_tokens == 0 || c.kind == Kind::vit),
         {"model.extra_tokens", "model.kind"}, "none: only kind = vit has tokens beside patches",
         std::to_string(c.extra_tokens));
  expect(c.pooling != Pooling::class_extra || c.extra_tokens > 0,
         {"model.pooling", "model.extra_tokens"}, "another one: there is no extra token to read",
         to_string(c.pooling));
  expect(c.kind == Kind::vit || c.task != Task::embed || c.pooling != Pooling::class_token,
         {"model.pooling", "model.task"},
         "first-token or mean: a model of task embed has no class token of its own",
         to_string(c.pooling));
}

void check_numbers(const ModelConfig& c) {
  expect_at_least_one(c.layers, "model.layers");
  expect_at_least_one(c.width, "model.width");
  nn::require(c.layers <= kMostLayers && c.decoder_layers <= kMostLayers, kWhere,
              {"model.layers", "model.decoder_layers"}, "at most " + std::to_string(kMostLayers),
              static_cast<double>(c.layers));
  nn::require(c.ffn_width >= 0, kWhere, "model.ffn_width", "1 or more",
              static_cast<double>(c.ffn_width));
  nn::require(c.decoder_layers >= 0, kWhere, "model.decoder_layers", "1 or more",
              static_cast<double>(c.decoder_layers));
  expect(c.two_stacks() || c.decoder_layers == 0, {"model.decoder_layers", "model.kind"},
         "none: only encoder-decoder and rnn-seq2seq have a second stack",
         std::to_string(c.decoder_layers));
  expect_share(c.dropout, "model.dropout");
  expect_share(c.embedding_dropout, "model.embedding_dropout");
  nn::require(std::isfinite(c.norm_epsilon) && c.norm_epsilon > 0, kWhere, "model.norm_epsilon",
              "above 0", c.norm_epsilon);
  nn::require(std::isfinite(c.init_deviation) && c.init_deviation > 0, kWhere,
              "model.init_deviation", "above 0", c.init_deviation);
  expect(!c.tied || c.generates() || c.task == Task::masked,
         {"model.tied", "model.task", "model.kind"},
         "false: the classifier scores labels, not tokens", "true");
  expect(!c.shared_embedding || c.two_stacks(), {"model.shared_embedding", "model.kind"},
         "none: only encoder-decoder and rnn-seq2seq embed two sequences",
         c.shared_embedding.value_or(false) ? "true" : "false");
  expect(!c.shared_embedding.value_or(false) || c.sizes.target_vocabulary == 0,
         {"model.shared_embedding", "data.target_tokenizer"},
         "false: source and target have vocabularies of their own", "true");
}

void check_transformer(const ModelConfig& c) {
  expect(!c.residual, {"model.residual", "model.kind"},
         "none: it is a choice of the recurrent kinds, every Transformer has a residual stream",
         "true");
  expect(!c.attention.prefix || c.kind == Kind::decoder, {"model.attention.prefix", "model.kind"},
         "false: only kind = decoder has a prompt in the sequence that it continues", "true");
  in_recipe([&c] { nn::validate_layers(stack_config(c)); }, stack_key);
  expect(c.parallel == nn::ParallelResidual::none || c.kind != Kind::encoder_decoder,
         {"model.parallel", "model.kind"},
         "none: cross-attention stands between the two that would be side by side",
         to_string(c.parallel));
  const bool causal = c.kind == Kind::decoder;
  if (c.kind == Kind::encoder_decoder) {
    // One set of options serves both stacks.
    for (const nn::AttentionConfig& a : self_attentions(c, false))
      expect(!a.look_ahead, {"model.attention.look_ahead", "model.kind"},
             "none: the decoder sees no later token", "a number");
    for (const nn::AttentionConfig& a : self_attentions(c, true)) validate_attention(a);
    validate_attention(cross_attention(c));
  }
  for (const nn::AttentionConfig& a : self_attentions(c, causal)) validate_attention(a);
  in_recipe(
      [&c] {
        if (c.moe)
          nn::validate(moe_config(c));
        else if (c.ffn != nn::FfnKind::none)
          nn::validate(ffn_config(c));
      },
      ffn_key);
}

}  // namespace

void validate_attention(const nn::AttentionConfig& config) {
  in_recipe([&config] { nn::validate(config); }, attention_key);
}

void validate_choices(ModelConfig config) {
  DataSizes& s = config.sizes;
  for (std::int64_t* size : {&s.vocabulary, &s.classes, &s.context, &s.channels})
    if (*size == 0) *size = 1;
  if (s.height == 0 && s.width == 0) s.height = s.width = config.patch;
  validate(config);
}

void validate(const ModelConfig& config) {
  check_numbers(config);
  check_factors(config);
  check_task(config);
  check_sizes(config);
  check_head(config);
  if (config.recurrent())
    validate_recurrent(config);
  else
    check_transformer(config);
}

}  // namespace heddle::model
