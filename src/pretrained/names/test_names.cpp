// Names at both sides of a family's table.
#include <gtest/gtest.h>

#include <string>

#include "heddle/error.h"
#include "io/json/json.h"
#include "io/safetensors/safetensors.h"
#include "io/test_support.h"
#include "io/toml/toml.h"
#include "pretrained/names/names.h"

namespace heddle::pretrained {
namespace {

std::string refusal(const auto& body) {
  try {
    body();
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing was thrown";
}

void expect_parts(const std::string& message, std::initializer_list<std::string_view> parts) {
  for (const std::string_view part : parts)
    EXPECT_NE(message.find(part), std::string::npos) << "no " << part << " in: " << message;
}

TEST(PretrainedNames, NumbersAndTheLastWordGoOver) {
  EXPECT_EQ(rename("layers.12.ffn.in.bias", "layers.#.ffn.in.*", "h.#.mlp.c_fc.*"),
            "h.12.mlp.c_fc.bias");
  EXPECT_EQ(rename("layers.3.ffn.experts.17.in.weight", "layers.#.ffn.experts.#.in.weight",
                   "model.layers.#.experts.#.w1.weight"),
            "model.layers.3.experts.17.w1.weight");
  EXPECT_EQ(rename("norm.weight", "norm.*", "ln_f.*"), "ln_f.weight");
}

TEST(PretrainedNames, ExpertsMayLieInOneTensor) {
  const char *ours = "layers.#.ffn.experts.#.in.*", *theirs = "blk.#.ffn_gate_exps.*";
  EXPECT_EQ(rename("layers.3.ffn.experts.17.in.bias", ours, theirs), "blk.3.ffn_gate_exps.bias");
  EXPECT_EQ(place_in_stack("layers.3.ffn.experts.17.in.bias", ours, theirs), 17);
  EXPECT_EQ(place_in_stack("layers.3.ffn.experts.17.in.bias", ours, "l.#.e.#.*"), std::nullopt);
  EXPECT_EQ(place_in_stack("layers.3.ffn.in.bias", "layers.#.ffn.in.*", "l.#.*"), std::nullopt);
  EXPECT_EQ(place_in_stack("layers.3.ffn.experts.99999999999999999999.in.bias", ours, theirs),
            std::nullopt);
}

TEST(PretrainedNames, WhatDoesNotFitIsNotRenamed) {
  EXPECT_EQ(rename("layers.x.ffn.in.bias", "layers.#.ffn.in.*", "h.#"), std::nullopt);
  EXPECT_EQ(rename("layers.1.ffn.in.gain", "layers.#.ffn.in.*", "h.#"), std::nullopt);
  EXPECT_EQ(rename("layers.1.ffn.in", "layers.#.ffn.in.*", "h.#"), std::nullopt);
  EXPECT_EQ(rename("layers.1.ffn.in.weight.more", "layers.#.ffn.in.weight", "h.#"), std::nullopt);
  EXPECT_EQ(rename("layers..ffn", "layers.#.ffn", "h.#"), std::nullopt);
}

// One that holds more would lose the others in silence.
TEST(PretrainedNames, AStackHasAsManyExpertsAsTheModel) {
  const io::TempDir folder;
  io::write_safetensors(folder.file("model.safetensors"),
                        {{"model.layers.0.mlp.experts.down_proj_bias", Tensor::zeros({3, 4})}});
  const auto files = safetensors_of(folder.path());
  model::ModelConfig config;
  for (const std::int64_t experts : {2, 3, 4}) {
    config.moe = nn::MoeOptions{.experts = experts, .active = 1};
    NamedWeights weights(family("gpt_oss", "test"), *files, config);
    const auto read = [&] { (void)weights.source()("layers.0.ffn.experts.0.out.bias", {4}); };
    if (experts == 3)
      EXPECT_NO_THROW(read());
    else
      expect_parts(refusal(read),
                   {"down_proj_bias", std::to_string(experts) + " experts", "[3, 4]"});
  }
}

// A second head of one row would be repeated over the rows of the first one.
TEST(PretrainedNames, TensorsThatAreJoinedAreEquallyLarge) {
  for (const bool bias : {false, true})
    for (const std::int64_t rows : {1, 2, 3}) {
      const io::TempDir folder;
      const std::string name = bias ? "bias" : "weight";
      const auto shape = [&](std::int64_t n) { return bias ? Shape{n} : Shape{3, n}; };
      io::write_safetensors(folder.file("model.safetensors"),
                            {{"cls_classifier." + name, Tensor::zeros(shape(3))},
                             {"distillation_classifier." + name, Tensor::zeros(shape(rows))}});
      const auto files = safetensors_of(folder.path());
      NamedWeights weights(family("deit", "test"), *files, {});
      const auto read = [&] {
        (void)weights.source()("head." + name, bias ? Shape{3} : Shape{3, 3 + rows});
      };
      if (rows == 3)
        EXPECT_NO_THROW(read());
      else
        expect_parts(refusal(read), {"distillation_classifier." + name, "does not fit",
                                     "cls_classifier." + name, to_string(shape(rows))});
    }
}

model::ModelConfig gpt_oss_with(const std::string& more) {
  const auto settings = io::TomlDocument::of_json(io::Json::parse(
      R"({"num_hidden_layers": 2, "hidden_size": 8, "num_attention_heads": 2, "vocab_size": 9,
          "max_position_embeddings": 512, "intermediate_size": 8, "num_local_experts": 2)" +
          more + "}",
      "config.json"));
  return family("gpt_oss", "test").read(settings.root());
}

TEST(PretrainedNames, GptOssHasAWindowWithoutSayingSo) {
  const auto window = [](const std::string& more) {
    return model::self_attention(gpt_oss_with(more), 0, true).look_back;
  };
  EXPECT_EQ(window(""), 127);
  EXPECT_EQ(window(R"(, "sliding_window": 5)"), 4);
  EXPECT_EQ(model::self_attention(gpt_oss_with(""), 1, true).look_back, std::nullopt);
}

}  // namespace
}  // namespace heddle::pretrained
