// Whole models against PyTorch: logits, gradients and ten steps of training, by the values that
// tests/golden/make_golden.py wrote. PyTorch's are float64, so ours in float64 must agree to
// rounding, f32 to what its epsilon allows, and bf16 (logits and losses only: with width 4 a
// rounded relu changes gradients as a whole) likewise.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "heddle/ops.h"
#include "heddle/tape.h"
#include "io/json/json.h"
#include "model/model.h"
#include "unit/source_tree.h"

namespace heddle::model {
namespace {

using Doubles = std::vector<double>;

io::Json golden() {
  static const io::Json document = io::Json::read(source_tree("tests/golden/models.json"));
  return document;
}

Shape shape_of(const io::Json& j) {
  const std::vector<std::int64_t> sizes = j.at("shape").integers();
  return Shape(std::span<const std::int64_t>(sizes));
}

Tensor tensor_of(const io::Json& j, DType dtype) {
  const Doubles values = j.at("values").numbers();
  return ops::cast(Tensor::from<double>(shape_of(j), std::span<const double>(values)), dtype);
}

Doubles doubles(const Tensor& t) { return ops::cast(t.detach(), DType::f64).to_vector<double>(); }

nn::Position position_of(const io::Json& j, const std::string& fallback) {
  const std::string name = j.string_or("position", fallback);
  if (name == "learned") return nn::LearnedPosition{};
  if (name == "sinusoidal") return nn::SinusoidalPosition{j.boolean_or("sinusoidal_halves", false)};
  if (name == "t5")
    return nn::T5Position{j.at("t5_buckets").integer(), j.at("t5_max_distance").integer(),
                          j.boolean_or("t5_shared", false)};
  if (name != "rope") return nn::NoPosition{};
  nn::RopePosition rope;
  rope.base = j.number_or("rope_base", rope.base);
  if (j.has("rope_factors")) rope.scaling = nn::FactorScaling{j.at("rope_factors").numbers()};
  return rope;
}

template <class E, class... All>
E named(const std::string& name, E first, All... rest) {
  for (const E e : {first, rest...})
    if (to_string(e) == name) return e;
  ADD_FAILURE() << "no " << name;
  return first;
}

std::optional<bool> choice_of(const io::Json& j, const char* key) {
  return j.has(key) ? std::optional(j.at(key).boolean()) : std::nullopt;
}

// Settings that pretrained families add to the plain model.
void read_family(const io::Json& j, ModelConfig& c) {
  c.first_norm = j.boolean_or("first_norm", true);
  c.last_norm = choice_of(j, "last_norm");
  c.head_transform =
      named(j.string_or("head_transform", "none"), HeadTransform::none, HeadTransform::tanh,
            HeadTransform::relu, HeadTransform::gelu, HeadTransform::silu);
  c.head_transform_bias = choice_of(j, "head_transform_bias");
  c.head_norm = j.boolean_or("head_norm", false);
  c.embedding_norm = j.boolean_or("embedding_norm", false);
  c.qk_norm =
      named(j.string_or("qk_norm", "none"), nn::QkNorm::none, nn::QkNorm::head, nn::QkNorm::full);
  c.parallel = named(j.string_or("parallel", "none"), nn::ParallelResidual::none,
                     nn::ParallelResidual::one_norm, nn::ParallelResidual::two_norms);
  c.ffn_clamp = j.number_or("ffn_clamp", c.ffn_clamp);
  c.qkv_bias = choice_of(j, "qkv_bias");
  c.key_bias = choice_of(j, "key_bias");
  c.norm_bias = choice_of(j, "norm_bias");
  c.head_bias = choice_of(j, "head_bias");
  c.shared_embedding = choice_of(j, "shared_embedding");
  c.residual_scale = j.number_or("residual_scale", 1);
  if (j.has("layer_scale")) c.layer_scale = j.at("layer_scale").number();
  c.logit_scale = j.number_or("logit_scale", 1);
  c.logit_softcap = j.number_or("logit_softcap", 0);
  if (j.has("embedding_scale")) c.embedding_scale = j.at("embedding_scale").number();
}

nn::MoeOptions experts_of(const io::Json& j) {
  nn::MoeOptions moe{.experts = j.at("experts").integer(),
                     .active = j.at("active").integer(),
                     .shared = j.integer_or("shared", 0),
                     .balance = j.at("balance").number()};
  moe.routing.router =
      named(j.string_or("router", "softmax"), nn::Router::softmax, nn::Router::sigmoid);
  moe.routing.renormalise = j.boolean_or("renormalise", true);
  moe.routing.scale = j.number_or("routed_scale", 1);
  moe.routing.bias = j.boolean_or("router_bias", false);
  moe.routing.correction = j.boolean_or("router_correction", false);
  moe.shared_gate = j.boolean_or("shared_gate", false);
  moe.dense_layers = j.integer_or("dense_layers", 0);
  moe.dense_width = j.integer_or("dense_width", 0);
  return moe;
}

void read_attention(const io::Json& j, ModelConfig& c) {
  c.attention.heads = j.at("heads").integer();
  if (j.has("kv_heads")) c.attention.kv_heads = j.at("kv_heads").integer();
  if (j.has("head_width")) c.attention.head_width = j.at("head_width").integer();
  c.attention.score = named(j.string_or("score", "scaled-dot"), nn::Score::scaled_dot,
                            nn::Score::additive, nn::Score::multiplicative, nn::Score::concat);
  c.attention.scale = j.number_or("scale", 0);
  c.attention.position = position_of(j, "none");
  if (!j.has("pattern")) return;
  for (std::size_t i = 0; i < j.at("pattern").size(); ++i) {
    const io::Json own = j.at(j.at("pattern").at(i).string());
    nn::LayerAttention a = nn::layer_part(c.attention);
    if (own.has("look_back")) a.look_back = own.at("look_back").integer();
    a.position = position_of(own, std::string(to_string(a.position)));
    c.attention_layers.push_back(a);
  }
}

ModelConfig config_of(const io::Json& j) {
  ModelConfig c;
  c.kind = named(j.at("kind").string(), Kind::decoder, Kind::encoder, Kind::encoder_decoder,
                 Kind::vit, Kind::rnn, Kind::birnn, Kind::rnn_seq2seq);
  if (c.kind == Kind::vit) c.task = Task::classify;
  if (c.two_stacks()) c.task = Task::translate;
  if (j.has("task"))
    c.task = named(j.at("task").string(), Task::language, Task::tag, Task::classify, Task::masked);
  if (j.has("pooling"))
    c.pooling = named(j.at("pooling").string(), Pooling::mean, Pooling::class_token,
                      Pooling::first_token, Pooling::class_mean, Pooling::class_extra);
  c.extra_tokens = j.integer_or("extra_tokens", 0);
  c.layers = j.at("layers").integer();
  c.width = j.at("width").integer();
  c.norm = named(j.string_or("norm", "layer"), nn::NormKind::layer, nn::NormKind::rms);
  c.norm_place = named(j.string_or("norm_place", "pre"), nn::NormPlace::pre, nn::NormPlace::post,
                       nn::NormPlace::branch, nn::NormPlace::sandwich);
  for (const nn::FfnKind kind : nn::kFfnKinds)
    if (to_string(kind) == j.string_or("ffn", "gelu")) c.ffn = kind;
  if (j.string_or("ffn", "gelu") == "none") c.ffn = nn::FfnKind::none;
  read_family(j, c);
  c.ffn_width = j.integer_or("ffn_width", 0);
  c.bias = j.boolean_or("bias", true);
  c.tied = j.boolean_or("tied", false);
  c.patch = j.integer_or("patch", 0);
  c.sizes.vocabulary = j.integer_or("vocabulary", 0);
  c.sizes.context = j.integer_or("context", 0);
  c.sizes.classes = j.integer_or("classes", 0);
  c.sizes.channels = j.integer_or("channels", 0);
  c.sizes.height = j.integer_or("height", 0);
  c.sizes.width = j.integer_or("pixels_wide", 0);
  if (j.has("moe")) c.moe = experts_of(j.at("moe"));
  if (j.has("attention")) read_attention(j.at("attention"), c);
  return c;
}

Batch batch_of(const io::Json& j, DType dtype) {
  Batch b;
  const auto fill = [&j](Tensor& t, const char* key, DType type) {
    if (j.has(key)) t = tensor_of(j.at(key), type);
  };
  fill(b.tokens, "tokens", DType::i32);
  fill(b.lengths, "lengths", DType::i64);
  fill(b.images, "images", dtype == DType::f64 ? DType::f64 : DType::f32);
  fill(b.target_tokens, "target_tokens", DType::i32);
  fill(b.target_lengths, "target_lengths", DType::i64);
  fill(b.targets, "targets", DType::i32);
  return b;
}

struct Golden {
  io::Json j;
  std::string name;
  std::unique_ptr<Model> model;
  Batch batch;
  nn::Pass pass;
  double smoothing;

  Golden(const io::Json& document, DType precision)
      : j(document),
        name(document.at("name").string()),
        smoothing(document.at("label_smoothing").number()) {
    pass.precision = precision;
    batch = batch_of(j.at("batch"), precision);
    std::map<std::string, Tensor> values;
    const io::Json parameters = j.at("parameters");
    for (std::size_t i = 0; i < parameters.size(); ++i)
      values[parameters.at(i).at("name").string()] = tensor_of(parameters.at(i), DType::f64);
    BuildOptions options;
    options.dtype = precision == DType::f64 ? DType::f64 : DType::f32;
    options.source = [&values, this](const std::string& wanted, const Shape&) {
      EXPECT_TRUE(values.contains(wanted)) << name << ": PyTorch has no " << wanted;
      return ops::clone(values[wanted]);
    };
    model = build_model(config_of(j.at("model")), options);
    EXPECT_EQ(model->parameters().all().size(), values.size()) << name;
  }
};

// Zeros for an expert that no token chose.
Tensor gradient_of(const Tensor& p) {
  return p.grad().defined() ? p.grad() : Tensor::zeros(p.shape(), p.dtype());
}

// The largest difference relative to the largest expected value.
double error_of(const Doubles& got, const Doubles& expected) {
  EXPECT_EQ(got.size(), expected.size());
  double most = 0, scale = 1e-3;
  for (std::size_t i = 0; i < got.size() && i < expected.size(); ++i) {
    if (!std::isfinite(got[i])) return INFINITY;
    most = std::max(most, std::abs(got[i] - expected[i]));
    scale = std::max(scale, std::abs(expected[i]));
  }
  return most / scale;
}

double tolerance(DType dtype) {
  // Roundings add up over about a hundred operations in a row.
  if (dtype == DType::f64) return 1e-12;
  return dtype == DType::f32 ? 2e-5 : 0.06;
}

template <class F>
void for_each_golden(std::initializer_list<DType> types, F&& f) {
  const io::Json models = golden().at("models");
  for (std::size_t i = 0; i < models.size(); ++i)
    for (const DType type : types) f(Golden(models.at(i), type), type);
}

TEST(GoldenModels, LogitsAndLossesArePyTorchs) {
  for_each_golden({DType::f64, DType::f32, DType::bf16}, [](Golden g, DType type) {
    const NoGrad no_grad;
    const std::string where = g.name + " in " + std::string(to_string(type));
    const Tensor logits = g.model->logits(g.batch, g.pass);
    // A norm of four columns right before the scores enlarges what roundings to bf16 have left,
    // most where products round in another order (avx512_bf16: 3.1 times).
    const bool enlarged = type == DType::bf16 && g.model->config().head_norm;
    EXPECT_LE(error_of(doubles(logits), g.j.at("logits").numbers()),
              (enlarged ? 4 : 1) * tolerance(type))
        << where;
    const Loss loss = g.model->loss(g.batch, g.pass, g.smoothing);
    EXPECT_NEAR(loss.task.item(), g.j.at("task").number(), tolerance(type)) << where;
    EXPECT_NEAR(loss.total.item(), g.j.at("total").number(), tolerance(type)) << where;
  });
}

TEST(GoldenModels, GradientsArePyTorchs) {
  for_each_golden({DType::f64, DType::f32}, [](Golden g, DType type) {
    {
      Tape tape;
      tape.backward(g.model->loss(g.batch, g.pass, g.smoothing).total);
    }
    std::map<std::string, Tensor> by_name;
    for (const nn::Parameter& p : g.model->parameters().all()) by_name[p.name] = p.tensor;
    const io::Json parameters = g.j.at("parameters");
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const std::string name = parameters.at(i).at("name").string();
      const Doubles got = doubles(gradient_of(by_name.at(name)));
      EXPECT_LE(error_of(got, parameters.at(i).at("gradient").numbers()), 10 * tolerance(type))
          << g.name << ", " << name << " in " << to_string(type);
    }
  });
}

TEST(GoldenModels, TenStepsOfAdamWArePyTorchs) {
  const io::Json o = golden().at("optimizer");
  for_each_golden({DType::f64, DType::f32}, [&o](Golden g, DType type) {
    const Doubles expected = g.j.at("losses").numbers();
    auto& all = g.model->parameters().all();
    std::vector<Tensor> first, second;
    for (const nn::Parameter& p : all) {
      first.push_back(Tensor::zeros(p.tensor.shape(), p.tensor.dtype()));
      second.push_back(Tensor::zeros(p.tensor.shape(), p.tensor.dtype()));
    }
    ops::AdamWOptions options;
    options.lr = o.at("lr").number();
    options.beta1 = o.at("betas").at(0).number();
    options.beta2 = o.at("betas").at(1).number();
    options.eps = o.at("eps").number();
    for (std::size_t step = 0; step < expected.size(); ++step) {
      Tape tape;
      const Loss loss = g.model->loss(g.batch, g.pass, g.smoothing);
      // f32 drifts away: AdamW's first steps go by the sign of gradients however small.
      EXPECT_NEAR(loss.task.item(), expected[step], type == DType::f64 ? 1e-9 : 2e-3)
          << g.name << " at step " << step << " in " << to_string(type);
      tape.backward(loss.total);
      options.step = static_cast<std::int64_t>(step) + 1;
      for (std::size_t i = 0; i < all.size(); ++i) {
        Tensor& p = all[i].tensor;
        options.weight_decay = p.rank() > 1 ? o.at("weight_decay").number() : 0;
        ops::adamw(p, gradient_of(p), first[i], second[i], options);
        p.clear_grad();
      }
    }
  });
}

}  // namespace
}  // namespace heddle::model
