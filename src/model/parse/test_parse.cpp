#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "heddle/error.h"
#include "io/toml/toml.h"
#include "model/parse/parse.h"

namespace heddle::model {
namespace {

ModelConfig parse(const std::string& text) {
  const io::TomlDocument document = io::TomlDocument::parse(text, "recipe.toml");
  ModelConfig c = parse_model(document.root().table("model"));
  document.finish();
  return c;
}

std::string refusal(const std::string& text) {
  try {
    parse(text);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(ParseModel, ReadsEveryKeyOfATransformer) {
  const ModelConfig c = parse(R"(
[model]
kind = "encoder-decoder"
layers = 6
decoder_layers = 2
width = 384
norm = "rms"
norm_place = "post"
norm_epsilon = 1e-6
ffn = "moe"
ffn_width = 512
bias = false
tied = true
dropout = 0.1
embedding_dropout = 0.2
scale_embedding = false
init = "normal"
init_deviation = 0.01
init_branches = false
[model.moe]
experts = 4
active = 1
capacity = 1.25
shared = 1
balance = 0.02
expert = "swiglu"
[model.attention]
score = "multiplicative"
normaliser = "softmax"
heads = 6
kv_heads = 2
head_width = 32
look_back = 128
scale = 0.5
softcap = 30
dropout = 0.3
sinks = true
position = "rope"
rope_base = 500000
rope_width = 16
rope_pairing = "interleaved"
[model.attention.rope_scaling]
kind = "yarn"
factor = 4
original_positions = 2048
beta_fast = 16
)");
  EXPECT_EQ(c.kind, Kind::encoder_decoder);
  EXPECT_EQ(c.task, Task::translate);
  EXPECT_EQ(c.layers, 6);
  EXPECT_EQ(c.decoder_layers, 2);
  EXPECT_EQ(c.width, 384);
  EXPECT_EQ(c.norm, nn::NormKind::rms);
  EXPECT_EQ(c.norm_place, nn::NormPlace::post);
  EXPECT_EQ(c.norm_epsilon, 1e-6);
  EXPECT_EQ(c.ffn, nn::FfnKind::swiglu);
  EXPECT_EQ(c.ffn_width, 512);
  ASSERT_TRUE(c.moe.has_value());
  EXPECT_EQ(c.moe->experts, 4);
  EXPECT_EQ(c.moe->active, 1);
  EXPECT_EQ(c.moe->capacity, 1.25);
  EXPECT_EQ(c.moe->shared, 1);
  EXPECT_EQ(c.moe->balance, 0.02);
  EXPECT_FALSE(c.bias);
  EXPECT_TRUE(c.tied);
  EXPECT_EQ(c.dropout, 0.1);
  EXPECT_EQ(c.embedding_dropout, 0.2);
  EXPECT_EQ(c.scale_embedding, false);
  EXPECT_EQ(c.init, nn::InitRule::normal);
  EXPECT_EQ(c.init_deviation, 0.01);
  EXPECT_FALSE(c.init_branches);
  const nn::AttentionConfig& a = c.attention;
  EXPECT_EQ(a.score, nn::Score::multiplicative);
  EXPECT_EQ(a.heads, 6);
  EXPECT_EQ(a.kv_heads, 2);
  EXPECT_EQ(a.head_width, 32);
  EXPECT_EQ(a.look_back, 128);
  EXPECT_EQ(a.scale, 0.5);
  EXPECT_EQ(a.softcap, 30);
  EXPECT_EQ(a.dropout, 0.3);
  EXPECT_TRUE(a.sinks);
  const auto& rope = std::get<nn::RopePosition>(a.position);
  EXPECT_EQ(rope.base, 500000);
  EXPECT_EQ(rope.rotated, 16);
  EXPECT_EQ(rope.pairing, ops::Pairing::interleaved);
  const auto& yarn = std::get<nn::YarnScaling>(rope.scaling);
  EXPECT_EQ(yarn.factor, 4);
  EXPECT_EQ(yarn.original_positions, 2048);
  EXPECT_EQ(yarn.beta_fast, 16);
}

TEST(ParseModel, ReadsTheChoicesOfPretrainedFamilies) {
  const ModelConfig c = parse(R"(
[model]
kind = "decoder"
layers = 6
width = 64
norm_place = "sandwich"
last_norm = false
head_transform = "gelu-tanh"
head_transform_bias = true
head_norm = true
embedding_norm = true
qk_norm = "head"
ffn = "swiglu-clamped"
ffn_clamp = 5
bias = false
qkv_bias = true
key_bias = false
out_bias = true
ffn_bias = true
norm_bias = true
head_bias = true
residual_scale = 0.22
layer_scale = 1e-5
logit_scale = 0.125
logit_softcap = 30
embedding_scale = 12
[model.attention]
heads = 4
position = "rope"
rope_base = 1e6
pattern = ["local", "local", "plain"]
[model.attention.local]
look_back = 511
rope_base = 10000
scale = 0.5
[model.attention.plain]
position = "none"
softcap = 50
)");
  EXPECT_EQ(c.norm_place, nn::NormPlace::sandwich);
  EXPECT_EQ(c.last_norm, false);
  EXPECT_EQ(c.head_transform, HeadTransform::gelu_tanh);
  EXPECT_EQ(c.head_transform_bias, true);
  EXPECT_TRUE(c.head_norm);
  EXPECT_TRUE(c.embedding_norm);
  EXPECT_EQ(c.qk_norm, nn::QkNorm::head);
  EXPECT_EQ(c.ffn, nn::FfnKind::swiglu_clamped);
  EXPECT_EQ(c.ffn_clamp, 5);
  EXPECT_EQ(c.qkv_bias, true);
  EXPECT_EQ(c.key_bias, false);
  EXPECT_EQ(c.out_bias, true);
  EXPECT_EQ(c.ffn_bias, true);
  EXPECT_EQ(c.norm_bias, true);
  EXPECT_EQ(c.head_bias, true);
  EXPECT_EQ(c.residual_scale, 0.22);
  EXPECT_EQ(c.layer_scale, 1e-5);
  EXPECT_EQ(c.logit_scale, 0.125);
  EXPECT_EQ(c.logit_softcap, 30);
  EXPECT_EQ(c.embedding_scale, 12);
  ASSERT_EQ(c.attention_layers.size(), 3u);
  const nn::LayerAttention &local = c.attention_layers[1], &plain = c.attention_layers[2];
  EXPECT_EQ(c.attention_layers[0], local);
  EXPECT_EQ(local.look_back, 511);
  EXPECT_EQ(local.scale, 0.5);
  EXPECT_EQ(std::get<nn::RopePosition>(local.position).base, 10000);
  EXPECT_FALSE(plain.look_back);
  EXPECT_EQ(plain.softcap, 50);
  EXPECT_TRUE(std::holds_alternative<nn::NoPosition>(plain.position));
  EXPECT_EQ(std::get<nn::RopePosition>(c.attention.position).base, 1e6);
}

TEST(ParseModel, ReadsHowEncodersBeginAndEnd) {
  const ModelConfig c = parse(
      "[model]\nkind=\"encoder\"\ntask=\"classify\"\nlayers=2\nwidth=8\nfirst_norm=false\n"
      "pooling=\"first-token\"\nhead_transform=\"tanh\"\n[model.attention]\nheads=2\n");
  EXPECT_FALSE(c.first_norm);
  EXPECT_EQ(c.pooling, Pooling::first_token);
  EXPECT_EQ(c.head_transform, HeadTransform::tanh);
  EXPECT_FALSE(c.head_transform_bias);
  EXPECT_FALSE(c.head_norm);
  EXPECT_FALSE(c.has_class_token());
}

TEST(ParseModel, ReadsHowExpertsAreChosen) {
  const ModelConfig c = parse(R"(
[model]
kind = "decoder"
layers = 2
width = 8
parallel = "two-norms"
ffn = "moe"
[model.moe]
expert = "geglu-tanh"
router = "sigmoid"
renormalise = false
routed_scale = 2.5
router_bias = true
router_correction = true
shared = 1
shared_gate = true
dense_layers = 1
dense_width = 24
[model.attention]
position = "t5"
t5_shared = true
)");
  EXPECT_EQ(c.parallel, nn::ParallelResidual::two_norms);
  EXPECT_EQ(c.ffn, nn::FfnKind::geglu_tanh);
  EXPECT_EQ(c.moe->routing.router, nn::Router::sigmoid);
  EXPECT_FALSE(c.moe->routing.renormalise);
  EXPECT_EQ(c.moe->routing.scale, 2.5);
  EXPECT_TRUE(c.moe->routing.bias);
  EXPECT_TRUE(c.moe->routing.correction);
  EXPECT_TRUE(c.moe->shared_gate);
  EXPECT_EQ(c.moe->dense_layers, 1);
  EXPECT_EQ(c.moe->dense_width, 24);
  EXPECT_TRUE(std::get<nn::T5Position>(c.attention.position).shared);
}

TEST(ParseModel, EveryRopeScalingHasItsNumbers) {
  const auto scaling = [](const std::string& keys) {
    const ModelConfig c = parse(
        "[model]\nkind=\"decoder\"\nlayers=1\nwidth=8\n[model.attention]\nheads=2\nposition="
        "\"rope\"\n"
        "[model.attention.rope_scaling]\n" +
        keys);
    return std::get<nn::RopePosition>(c.attention.position).scaling;
  };
  EXPECT_EQ(std::get<nn::LinearScaling>(scaling("kind=\"linear\"\nfactor=3\n")).factor, 3);
  EXPECT_EQ(std::get<nn::NtkScaling>(scaling("kind=\"ntk\"\nfactor=5\n")).factor, 5);
  const auto llama = std::get<nn::Llama3Scaling>(
      scaling("kind=\"llama3\"\nfactor=7\noriginal_positions=4096\nlow_frequency=2\n"
              "high_frequency=6\n"));
  EXPECT_EQ(llama.factor, 7);
  EXPECT_EQ(llama.original_positions, 4096);
  EXPECT_EQ(llama.low_frequency, 2);
  EXPECT_EQ(llama.high_frequency, 6);
  const auto list = std::get<nn::FactorScaling>(
      scaling("kind=\"factors\"\nfactors=[1, 2.5]\nattention_factor=1.2\n"));
  EXPECT_EQ(list.factors, (std::vector<double>{1, 2.5}));
  EXPECT_EQ(list.attention_factor, 1.2);
}

TEST(ParseModel, ReadsTheOtherKinds) {
  EXPECT_EQ(parse("[model]\nkind=\"encoder\"\ntask=\"tag\"\nlayers=1\nwidth=4\n").task, Task::tag);
  EXPECT_EQ(parse("[model]\nkind=\"vit\"\nlayers=1\nwidth=4\npatch=7\npooling=\"mean\"").patch, 7);
  EXPECT_EQ(parse("[model]\nkind=\"birnn\"\ntask=\"language\"\nlayers=1\nwidth=4\n").task,
            Task::language);
  const ModelConfig c = parse(
      "[model]\nkind=\"rnn-seq2seq\"\nlayers=2\nwidth=4\nresidual=true\nnorm=\"rms\"\n"
      "[model.attention]\nscore=\"additive\"\nscore_width=3\n");
  EXPECT_EQ(c.attention.score, nn::Score::additive);
  EXPECT_EQ(c.attention.score_width, 3);
  EXPECT_TRUE(c.residual);
  const ModelConfig t5 = parse(
      "[model]\nkind=\"decoder\"\nlayers=2\nwidth=4\n"
      "[model.attention]\nposition=\"t5\"\nt5_buckets=8\nt5_max_distance=20\n");
  EXPECT_EQ(std::get<nn::T5Position>(t5.attention.position).buckets, 8);
}

// The last that is legal on either side, the first that is not, and what is said then.
TEST(ParseModel, NumbersEndWhereTheyAreSaidTo) {
  struct Row {
    const char *line, *low, *high, *below, *above, *allowed;
  };
  const std::string rest = "kind=\"encoder-decoder\"\n";
  for (const Row& r : {Row{"layers", "1", "2046", "0", "2047", "an integer from 1 to 2046"},
                       {"decoder_layers", "1", "2046", "0", "2047", "an integer from 1 to 2046"},
                       {"width", "1", "1048576", "0", "1048577", "an integer from 1 to 1048576"},
                       {"dropout", "0", "0.999", "-0.1", "0.9991", "a number from 0 to 0.999"}}) {
    const auto with = [&](const std::string& value) {
      std::string text = "[model]\n" + rest;
      for (const char* key : {"layers", "width"})
        if (std::string(key) != r.line) text += std::string(key) + "=2\n";
      return text + r.line + "=" + value + "\n";
    };
    const auto parse = [](const std::string& text) {
      const auto document = io::TomlDocument::parse(text, "recipe.toml");
      return parse_model(document.root().table("model"));
    };
    EXPECT_NO_THROW(parse(with(r.low))) << r.line;
    EXPECT_NO_THROW(parse(with(r.high))) << r.line;
    for (const char* wrong : {r.below, r.above}) try {
        parse(with(wrong));
        ADD_FAILURE() << r.line << " = " << wrong;
      } catch (const Error& e) {
        EXPECT_NE(std::string(e.what()).find(r.allowed), std::string::npos) << e.what();
      }
  }
}

// Text, and what the complaint must name.
TEST(ParseModel, RefusesWhatItWouldHaveToIgnore) {
  const std::string decoder = "[model]\nkind=\"decoder\"\nlayers=2\nwidth=4\n";
  const std::string rnn = "[model]\nkind=\"rnn\"\nlayers=2\nwidth=4\n";
  const auto refused = [](const std::string& text, const std::string& key) {
    const std::string complaint = refusal(text);
    EXPECT_NE(complaint.find(key), std::string::npos) << text << "-> " << complaint;
    EXPECT_NE(complaint.find("recipe.toml"), std::string::npos) << complaint;
  };
  refused("[model]\nkind=\"decoderr\"\nlayers=2\nwidth=4\n", "kind");
  refused("[model]\nlayers=2\nwidth=4\n", "kind");
  refused("[model]\nkind=\"encoder\"\nlayers=2\nwidth=4\n", "task");
  refused(decoder + "task=\"tag\"\n", "task");
  refused(decoder + "patch=4\n", "patch");
  refused(decoder + "pooling=\"mean\"\n", "pooling");
  refused(decoder + "decoder_layers=4\n", "decoder_layers");
  refused(decoder + "residual=true\n", "residual");
  refused(decoder + "init_deviation=0.1\n", "init_deviation");
  refused(decoder + "hidden=4\n", "hidden");
  refused(decoder + "ffn_width=0\n", "ffn_width");
  refused(decoder + "dropout=1.5\n", "dropout");
  refused(decoder + "[model.moe]\nexperts=4\n", "moe");
  refused(decoder + "[model.attention]\nrope_base=10\n", "rope_base");
  refused(decoder + "[model.attention]\nt5_buckets=10\n", "t5_buckets");
  refused(decoder + "[model.attention]\nlook_ahead=1\n", "look_ahead");
  refused(decoder + "[model.attention]\nlookback=1\n", "look_back");
  refused(
      decoder + "[model.attention]\nposition=\"rope\"\n[model.attention.rope_scaling]\nkind=\"x\"",
      "kind");
  refused(decoder + "ffn_clamp=4\n", "ffn_clamp");
  refused(decoder + "ffn=\"none\"\nffn_width=4\n", "ffn_width");
  refused(decoder + "ffn=\"none\"\nffn_bias=true\n", "ffn_bias");
  refused(decoder + "ffn=\"moe\"\n[model.moe]\nexpert=\"none\"\n", "expert");
  refused(decoder + "norm=\"rms\"\nnorm_bias=true\n", "norm_bias");
  refused(decoder + "norm_place=\"post\"\nlast_norm=true\n", "last_norm");
  refused(decoder + "norm_place=\"behind\"\n", "sandwich");
  refused(decoder + "norm_place=\"post\"\nfirst_norm=false\n", "first_norm");
  refused(decoder + "head_norm=true\n", "head_norm");
  refused(decoder + "head_transform_bias=false\n", "head_transform_bias");
  refused(decoder + "head_transform=\"mish\"\n", "quick-gelu");
  refused("[model]\nkind=\"encoder\"\ntask=\"embed\"\nlayers=2\nwidth=4\n", "task");
  refused("[model]\nkind=\"vit\"\nlayers=2\nwidth=4\npatch=2\npooling=\"first-token\"\n",
          "pooling");
  refused(decoder + "extra_tokens=2\n", "extra_tokens");
  refused(decoder + "pooling=\"class-mean\"\n", "pooling");
  refused(
      "[model]\nkind=\"encoder\"\ntask=\"classify\"\nlayers=2\nwidth=4\n"
      "pooling=\"class-mean\"\n",
      "pooling");
  refused(decoder + "scale_embedding=true\nembedding_scale=2\n", "embedding_scale");
  refused("[model]\nkind=\"vit\"\nlayers=2\nwidth=4\npatch=2\nembedding_scale=2\n",
          "embedding_scale");
  refused(decoder + "ffn=\"moe\"\n[model.moe]\nshared_gate=true\n", "shared_gate");
  refused(decoder + "ffn=\"moe\"\n[model.moe]\ndense_width=4\n", "dense_width");
  refused(decoder + "[model.attention]\nsinusoidal_halves=true\n", "sinusoidal_halves");
  refused(decoder + "[model.attention]\nt5_shared=true\n", "t5_shared");
  refused(decoder + "[model.attention]\npattern=[]\n", "pattern");
  refused(decoder + "[model.attention]\npattern=[\"local\"]\n", "model.attention.local");
  refused(decoder + "[model.attention]\n[model.attention.local]\nlook_back=2\n", "local");
  refused(
      decoder + "[model.attention]\npattern=[\"a\"]\n[model.attention.a]\nlook_back=2\nheads=4\n",
      "heads");
  refused(decoder +
              "[model.attention]\nposition=\"learned\"\npattern=[\"a\"]\n[model.attention.a]\n"
              "position=\"rope\"\n",
          "position");
  for (const char* line :
       {"last_norm=true", "embedding_norm=true", "qk_norm=\"head\"", "parallel=\"one-norm\"",
        "ffn_clamp=4", "qkv_bias=true", "out_bias=true", "ffn_bias=true", "norm_bias=true",
        "key_bias=true", "residual_scale=2", "layer_scale=2", "first_norm=false",
        "head_transform=\"tanh\"", "head_transform_bias=true", "head_norm=true"})
    refused(rnn + line + "\n", std::string(line).substr(0, std::string(line).find('=')));
  refused(rnn + "residual=true\nnorm_place=\"sandwich\"\n", "norm_place");
  refused(rnn + "ffn=\"relu\"\n", "ffn");
  refused(rnn + "norm=\"rms\"\n", "norm");
  refused(rnn + "[model.attention]\nheads=2\n", "attention");
  refused(
      "[model]\nkind=\"rnn-seq2seq\"\nlayers=2\nwidth=4\n[model.attention]\nposition=\"rope\"\n",
      "position");
}

}  // namespace
}  // namespace heddle::model
