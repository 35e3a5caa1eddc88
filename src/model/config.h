// Model configuration: one choice per axis, and one place that refuses invalid combinations.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "nn/parameters.h"
#include "nn/transformer/config.h"

namespace heddle::model {

enum class Kind : std::uint8_t {
  decoder,          // causal Transformer: the next token
  encoder,          // Transformer that sees both sides: tags, classes, masked tokens
  encoder_decoder,  // two stacks with cross-attention: sequence to sequence
  vit,              // encoder over the patches of an image
  rnn,              // stacked Elman network: the next token
  birnn,            // forward and backward Elman networks: tags, or the next token of a prefix
  rnn_seq2seq,      // Elman encoder and decoder with attention
};

enum class Task : std::uint8_t {
  language,   // predict the next token
  tag,        // a label for each token
  classify,   // a label for the whole
  masked,     // predict tokens that were hidden
  translate,  // predict the other sequence
  embed,      // a vector for the whole: the layers of a model of others, without a head to train
};

// How one vector stands for a whole sequence: a learned vector before it, its own first token, or
// the mean of all of them. Of images also two vectors side by side: the class token and the mean of
// the patches (DINOv2), or the class token and the first extra one (DeiT's distillation token).
enum class Pooling : std::uint8_t { class_token, first_token, mean, class_mean, class_extra };

// The function between the two products of a classifier of two layers.
enum class HeadTransform : std::uint8_t { none, tanh, relu, gelu, gelu_tanh, quick_gelu, silu };

std::string_view to_string(Kind kind);  // as in a recipe: "encoder-decoder"
std::string_view to_string(Task task);
std::string_view to_string(Pooling pooling);
std::string_view to_string(HeadTransform transform);

// Sizes that follow from the data. 0 where the model does not use them.
struct DataSizes {
  std::int64_t vocabulary = 0;         // of the tokens it reads
  std::int64_t target_vocabulary = 0;  // of the tokens it writes, where they are others
  std::int64_t classes = 0;            // labels of tag and classify
  std::int64_t context = 0;            // tokens of the longest sequence
  std::int64_t channels = 0, height = 0, width = 0;  // of images

  bool operator==(const DataSizes&) const = default;
};

struct ModelConfig {
  Kind kind = Kind::decoder;
  Task task = Task::language;  // follows from the kind, except for encoder and birnn
  std::int64_t layers = 0;
  std::int64_t decoder_layers = 0;  // of the two-stack kinds; 0: like layers
  std::int64_t width = 0;

  nn::NormKind norm = nn::NormKind::layer;
  nn::NormPlace norm_place = nn::NormPlace::pre;
  std::optional<bool> last_norm = {};  // after the last layer; absent: unless norm_place is post
  bool first_norm = true;              // before the first layer's attention, with norm_place pre
  bool embedding_norm = false;         // behind the embeddings and the positions added to them
  double norm_epsilon = 1e-5;
  nn::QkNorm qk_norm = nn::QkNorm::none;  // of queries and keys, of the same kind and epsilon
  nn::ParallelResidual parallel = nn::ParallelResidual::none;
  nn::FfnKind ffn = nn::FfnKind::gelu;  // with moe: of each expert; none: attention alone
  std::int64_t ffn_width = 0;           // 0: 4 · width; gated: 8/3 · width, up to a multiple of 8
  double ffn_clamp = 7;                 // of swiglu_clamped: the limit of gate and up
  std::optional<nn::MoeOptions> moe = {};
  nn::AttentionConfig attention = {};  // of self-attention; its width and causal follow from here

  // Where layers differ: layer i of a stack has the part at i modulo their number. Empty: all are
  // alike.
  std::vector<nn::LayerAttention> attention_layers = {};

  bool bias = true;  // of all products and of layer norm, unless one of these says otherwise
  std::optional<bool> qkv_bias = {}, out_bias = {}, ffn_bias = {}, norm_bias = {};
  std::optional<bool> key_bias = {};   // of the projection to keys alone; absent: as qkv_bias
  std::optional<bool> head_bias = {};  // absent: over labels as bias, over tokens none
  bool tied = false;                   // the classifier's weight is the embedding table
  // Of the two-stack kinds: what is read and what is written have one embedding table. Absent: as
  // tied, where both have one vocabulary.
  std::optional<bool> shared_embedding = {};
  // A classifier of two layers: product, function and perhaps a norm before the product to scores.
  HeadTransform head_transform = HeadTransform::none;
  std::optional<bool> head_transform_bias = {};  // absent: as bias
  bool head_norm = false;                        // behind the function
  double residual_scale = 1;               // of every branch before it joins the residual stream
  std::optional<double> layer_scale = {};  // a learned gain of every branch begins with this
  double logit_scale = 1;    // of what the classifier reads, and so of its scores but for a bias
  double logit_softcap = 0;  // cap · tanh(score / cap) of the classifier's scores; 0: none
  double dropout = 0;        // of every branch before it joins the residual stream
  double embedding_dropout = 0;
  // Embeddings times √width, as in the first Transformer, where sine waves of size 1 are added to
  // them. Absent: exactly with sinusoidal positions, and in the recurrent kinds, whose states are
  // of that size too.
  std::optional<bool> scale_embedding = {};
  std::optional<double> embedding_scale = {};  // embeddings times this, instead
  // Recurrent kinds: layers are branches of a residual stream, with norms as norm and norm_place
  // say. Without, they are stacked as they are, and there is no norm.
  bool residual = false;
  Pooling pooling = Pooling::class_token;  // of classify and embed
  // vit: learned vectors behind the class token that travel with the patches and are not read, but
  // for the first one with pooling = class_extra.
  std::int64_t extra_tokens = 0;
  std::int64_t patch = 0;  // vit: pixels of a patch's side

  nn::InitRule init = nn::InitRule::fan_in;
  double init_deviation = 0.02;
  bool init_branches = true;  // the last product of a branch begins 1 / √(2 · layers) smaller

  DataSizes sizes = {};

  bool operator==(const ModelConfig&) const = default;

  std::int64_t layers_of_decoder() const { return decoder_layers > 0 ? decoder_layers : layers; }
  bool scales_embedding() const {
    return !embedding_scale &&
           scale_embedding.value_or(
               recurrent() || std::holds_alternative<nn::SinusoidalPosition>(attention.position));
  }
  bool has_class_token() const {
    const bool first = pooling == Pooling::class_token || pooling == Pooling::class_mean ||
                       pooling == Pooling::class_extra;
    return first && (task == Task::classify || kind == Kind::vit);
  }
  // Learned vectors in front of the sequence.
  std::int64_t tokens_before() const { return (has_class_token() ? 1 : 0) + extra_tokens; }
  // The width of a pooled sequence: one vector, or two side by side.
  std::int64_t pooled_width() const {
    return pooling == Pooling::class_mean || pooling == Pooling::class_extra ? 2 * width : width;
  }
  std::int64_t vocabulary_of_target() const {
    return sizes.target_vocabulary > 0 ? sizes.target_vocabulary : sizes.vocabulary;
  }
  bool shares_embedding() const {
    return shared_embedding.value_or(tied && sizes.target_vocabulary == 0);
  }
  bool recurrent() const {
    return kind == Kind::rnn || kind == Kind::birnn || kind == Kind::rnn_seq2seq;
  }
  bool two_stacks() const { return kind == Kind::encoder_decoder || kind == Kind::rnn_seq2seq; }
  bool generates() const { return task == Task::language || task == Task::translate; }
};

// Throws Error naming the key of the recipe, what it may be and what it was. Everything that takes
// a configuration calls it. `sizes` must be known.
void validate(const ModelConfig& config);
// The same before the data was read: sizes that are 0 are taken for ones that fit.
void validate_choices(ModelConfig config);

// Vectors of the longest sequence a Transformer sees: tokens or patches, and learned ones before.
std::int64_t positions_of(const ModelConfig& config);

// The layers' own configurations: of a whole stack, and of single layers in it.
nn::StackConfig stack_config(const ModelConfig& config, bool causal = false);
nn::NormConfig norm_config(const ModelConfig& config);
nn::FfnConfig ffn_config(const ModelConfig& config);
nn::MoeConfig moe_config(const ModelConfig& config);  // with config.moe
nn::AttentionConfig self_attention(const ModelConfig& config, std::int64_t layer, bool causal);
// The different ones among those of all layers, in the order in which layers have them.
std::vector<nn::AttentionConfig> self_attentions(const ModelConfig& config, bool causal);
nn::AttentionConfig cross_attention(const ModelConfig& config);
nn::InitOptions init_options(const ModelConfig& config);

}  // namespace heddle::model
