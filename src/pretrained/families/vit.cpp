// Vision Transformers: ViT, DeiT with its distillation token, DINOv2 with gains of its branches.
#include <array>

#include "pretrained/families/families.h"
#include "pretrained/names/take.h"
#include "pretrained/settings/common.h"
#include "pretrained/settings/heads.h"

namespace heddle::pretrained {
namespace {

using model::ModelConfig;
using model::Pooling;
using model::Task;

constexpr std::array kViTNames = std::to_array<TensorName>({
    {"patch.*", "embeddings.patch_embeddings.projection.*"},
    {"class_token", "embeddings.cls_token", as_rows},
    {"extra_tokens", "embeddings.distillation_token", as_rows},
    {"position.weight", "embeddings.position_embeddings", as_rows},
    {"layers.#.attention.q.*", "encoder.layer.#.attention.attention.query.*"},
    {"layers.#.attention.k.*", "encoder.layer.#.attention.attention.key.*"},
    {"layers.#.attention.v.*", "encoder.layer.#.attention.attention.value.*"},
    {"layers.#.attention.out.*", "encoder.layer.#.attention.output.dense.*"},
    {"layers.#.attention_norm.*", "encoder.layer.#.layernorm_before.*"},
    {"layers.#.ffn_norm.*", "encoder.layer.#.layernorm_after.*"},
    {"layers.#.ffn.in.*", "encoder.layer.#.intermediate.dense.*"},
    {"layers.#.ffn.out.*", "encoder.layer.#.output.dense.*"},
    {"norm.*", "layernorm.*"},
    {"head.*", "classifier.*"},
    // DeiT's two classifiers read a vector each, and their mean counts.
    {"head.weight", "cls_classifier.weight", halved, "distillation_classifier.weight", nullptr,
     Join::beside},
    {"head.bias", "cls_classifier.bias", halved, "distillation_classifier.bias", nullptr,
     Join::plus},
});

constexpr std::array kDinoNames = std::to_array<TensorName>({
    {"position.weight", "embeddings.position_embeddings", image_positions},
    {"layers.#.attention_norm.*", "encoder.layer.#.norm1.*"},
    {"layers.#.ffn_norm.*", "encoder.layer.#.norm2.*"},
    {"layers.#.attention_scale", "encoder.layer.#.layer_scale1.lambda1"},
    {"layers.#.ffn_scale", "encoder.layer.#.layer_scale2.lambda1"},
    {"layers.#.ffn.in.*", "encoder.layer.#.mlp.fc1.*"},
    {"layers.#.ffn.in.*", "encoder.layer.#.mlp.weights_in.*"},
    {"layers.#.ffn.out.*", "encoder.layer.#.mlp.fc2.*"},
    {"layers.#.ffn.out.*", "encoder.layer.#.mlp.weights_out.*"},
});

// A layer behind the class token that no published head reads, and what hides patches in training.
constexpr std::array<std::string_view, 2> kViTUnused = {"pooler.dense.", "embeddings.mask_token"};

struct Sides {
  std::int64_t height = 0, width = 0;
};

// One number for both, or a list of two.
Sides read_sides(const io::TomlTable& s, std::string_view key, std::int64_t fallback) {
  constexpr io::IntegerRange kSide = {1, 1 << 16};
  if (!s.has(key) || !s.is_array(key)) {
    const std::int64_t side = s.integer_or(key, fallback, kSide);
    return {side, side};
  }
  const std::vector<std::int64_t> both = s.integers(key, kSide);
  if (both.size() != 2) s.refuse(key, "height and width");
  return {both[0], both[1]};
}

ModelConfig read_like_vit(const io::TomlTable& s, std::int64_t usual_patch, double usual_epsilon) {
  ModelConfig c;
  c.kind = model::Kind::vit;
  c.layers = s.integer_or("num_hidden_layers", 12, {1, kMostLayers});
  c.width = s.integer_or("hidden_size", 768, {1, kMostWidth});
  c.attention.heads = s.integer_or("num_attention_heads", 12, {1, kMostWidth});
  c.attention.position = nn::LearnedPosition{};
  c.norm_epsilon = s.number_or("layer_norm_eps", usual_epsilon);
  c.qkv_bias = s.boolean_or("qkv_bias", true);
  const Sides image = read_sides(s, "image_size", 224);
  const Sides patch = read_sides(s, "patch_size", usual_patch);
  if (patch.height != patch.width) s.refuse("patch_size", "squares");
  c.patch = patch.height;
  c.sizes.channels = s.integer_or("num_channels", 3, {1, 1 << 16});
  c.sizes.height = image.height;
  c.sizes.width = image.width;
  return c;
}

// Keys of ViT and DeiT that belong to a part that is not built.
void pass_over_unbuilt(const io::TomlTable& s) {
  pass_over(s, {"encoder_stride", "pooler_output_size", "pooler_act"});
}

ModelConfig read_vit(const io::TomlTable& s) {
  ModelConfig c = read_like_vit(s, 16, 1e-12);
  c.ffn = read_activation(s, "hidden_act", "gelu", false);
  c.ffn_width = s.integer_or("intermediate_size", 3072, {1, kMostWidth});
  c.task = read_image_task(s, "ViT");
  pass_over_unbuilt(s);
  return c;
}

ModelConfig read_deit(const io::TomlTable& s) {
  constexpr std::string_view kTaught = "ForImageClassificationWithTeacher";
  ModelConfig c = read_like_vit(s, 16, 1e-12);
  c.ffn = read_activation(s, "hidden_act", "gelu", false);
  c.ffn_width = s.integer_or("intermediate_size", 3072, {1, kMostWidth});
  c.extra_tokens = 1;
  c.task = read_image_task(s, "DeiT", kTaught);
  if (s.has("architectures") && s.strings("architectures").front().ends_with(kTaught))
    c.pooling = Pooling::class_extra;
  pass_over_unbuilt(s);
  return c;
}

ModelConfig read_dinov2(const io::TomlTable& s) {
  ModelConfig c = read_like_vit(s, 14, 1e-6);
  const bool gated = s.boolean_or("use_swiglu_ffn", false);
  const double ratio = s.number_or("mlp_ratio", 4, {0.01, 1e3});
  c.ffn_width = static_cast<std::int64_t>(static_cast<double>(c.width) * ratio);
  if (c.ffn_width < 1) s.refuse("mlp_ratio", "so much that a row has one number or more");
  if (gated) c.ffn_width = (c.ffn_width * 2 / 3 + 7) / 8 * 8;
  const nn::FfnKind plain = read_activation(s, "hidden_act", "gelu", false);
  c.ffn = gated ? nn::FfnKind::swiglu : plain;
  c.layer_scale = s.number_or("layerscale_value", 1, {1e-9, 1e3});
  c.task = read_image_task(s, "Dinov2");
  if (c.task == Task::classify) c.pooling = Pooling::class_mean;
  // Of other uses of the same layers, and of training.
  pass_over(s, {"out_features", "out_indices", "stage_names", "apply_layernorm",
                "reshape_hidden_states", "use_mask_token", "drop_path_rate"});
  return c;
}

}  // namespace

Family vit_family() {
  return {.name = "vit",
          .read = read_vit,
          .names = kViTNames,
          .prefix = "vit.",
          .unused = kViTUnused,
          .architecture = "ViTForImageClassification"};
}
Family deit_family() {
  return {.name = "deit",
          .read = read_deit,
          .names = kViTNames,
          .prefix = "deit.",
          .unused = kViTUnused,
          .architecture = "DeiTForImageClassification"};
}
Family dinov2_family() {
  return {.name = "dinov2",
          .read = read_dinov2,
          .names = kDinoNames,
          .shared_names = kViTNames,
          .prefix = "dinov2.",
          .unused = kViTUnused,
          .any_image_size = true,
          .architecture = "Dinov2ForImageClassification"};
}

}  // namespace heddle::pretrained
