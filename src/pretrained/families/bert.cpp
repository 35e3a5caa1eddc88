// BERT and its relatives: norms behind every sum and behind the embeddings, positions as a table.
//
// Segments (which of two texts a token belongs to) are a second table in their files. Heddle gives
// these models single texts, whose segment is 0: its row is added to those of the positions.
#include <array>

#include "pretrained/families/families.h"
#include "pretrained/names/take.h"
#include "pretrained/settings/common.h"
#include "pretrained/settings/heads.h"
#include "text/tokenizer.h"

namespace heddle::pretrained {
namespace {

using model::HeadTransform;
using model::ModelConfig;
using model::Task;

// The layers of BERT and RoBERTa. RoBERTa's table of positions begins with rows for the padding.
constexpr std::array kLayerNames = std::to_array<TensorName>({
    {"embed.weight", "embeddings.word_embeddings.weight"},
    {.ours = "position.weight",
     .theirs = "embeddings.position_embeddings.weight",
     .take = last_positions,
     .second = "embeddings.token_type_embeddings.weight",
     .join = Join::first_row},
    {"embed_norm.*", "embeddings.LayerNorm.*"},
    {"layers.#.attention.q.*", "encoder.layer.#.attention.self.query.*"},
    {"layers.#.attention.k.*", "encoder.layer.#.attention.self.key.*"},
    {"layers.#.attention.v.*", "encoder.layer.#.attention.self.value.*"},
    {"layers.#.attention.out.*", "encoder.layer.#.attention.output.dense.*"},
    {"layers.#.attention_norm.*", "encoder.layer.#.attention.output.LayerNorm.*"},
    {"layers.#.ffn.in.*", "encoder.layer.#.intermediate.dense.*"},
    {"layers.#.ffn.out.*", "encoder.layer.#.output.dense.*"},
    {"layers.#.ffn_norm.*", "encoder.layer.#.output.LayerNorm.*"},
});

constexpr std::array kBertHeadNames = std::to_array<TensorName>({
    {"head_transform.*", "cls.predictions.transform.dense.*"},
    {"head_transform.*", "pooler.dense.*"},
    {"head_norm.*", "cls.predictions.transform.LayerNorm.*"},
    {"head.weight", "cls.predictions.decoder.weight"},
    {"head.bias", "cls.predictions.decoder.bias"},
    {"head.bias", "cls.predictions.bias"},
    {"head.*", "classifier.*"},
});

constexpr std::array kRobertaHeadNames = std::to_array<TensorName>({
    {"head_transform.*", "lm_head.dense.*"},
    {"head_transform.*", "classifier.dense.*"},
    {"head_norm.*", "lm_head.layer_norm.*"},
    {"head.weight", "lm_head.decoder.weight"},
    {"head.bias", "lm_head.decoder.bias"},
    {"head.bias", "lm_head.bias"},
    {"head.*", "classifier.out_proj.*"},
    {"head.*", "classifier.*"},
});

constexpr std::array kDistilbertNames = std::to_array<TensorName>({
    {"embed.weight", "distilbert.embeddings.word_embeddings.weight"},
    {"position.weight", "distilbert.embeddings.position_embeddings.weight"},
    {"embed_norm.*", "distilbert.embeddings.LayerNorm.*"},
    {"layers.#.attention.q.*", "distilbert.transformer.layer.#.attention.q_lin.*"},
    {"layers.#.attention.k.*", "distilbert.transformer.layer.#.attention.k_lin.*"},
    {"layers.#.attention.v.*", "distilbert.transformer.layer.#.attention.v_lin.*"},
    {"layers.#.attention.out.*", "distilbert.transformer.layer.#.attention.out_lin.*"},
    {"layers.#.attention_norm.*", "distilbert.transformer.layer.#.sa_layer_norm.*"},
    {"layers.#.ffn.in.*", "distilbert.transformer.layer.#.ffn.lin1.*"},
    {"layers.#.ffn.out.*", "distilbert.transformer.layer.#.ffn.lin2.*"},
    {"layers.#.ffn_norm.*", "distilbert.transformer.layer.#.output_layer_norm.*"},
    {"head_transform.*", "vocab_transform.*"},
    {"head_transform.*", "pre_classifier.*"},
    {"head_norm.*", "vocab_layer_norm.*"},
    {"head.*", "vocab_projector.*"},
    {"head.*", "classifier.*"},
});

// Numbers of positions in a row, a pooler where no classifier reads it, a classifier of pairs, the
// head where it is the embedding, and the second of two names of its bias.
constexpr std::array<std::string_view, 5> kBertUnused = {
    "embeddings.position_ids", "pooler.dense.", "cls.seq_relationship.", "cls.predictions.decoder.",
    "cls.predictions.bias"};
constexpr std::array<std::string_view, 4> kRobertaUnused = {
    "embeddings.position_ids", "pooler.dense.", "lm_head.decoder.", "lm_head.bias"};
constexpr std::array<std::string_view, 1> kDistilbertUnused = {"vocab_projector.weight"};

// Everything but sizes and head.
void shape_like_bert(ModelConfig& c) {
  c.kind = model::Kind::encoder;
  c.norm_place = nn::NormPlace::post;
  c.embedding_norm = true;
  c.attention.position = nn::LearnedPosition{};
  c.pooling = model::Pooling::first_token;
}

// The head over tokens of all of them: product, function, norm, and the embedding with a bias.
void set_masked_head(ModelConfig& c, HeadTransform function, bool tied) {
  c.head_transform = function;
  c.head_norm = true;
  c.head_bias = true;
  c.tied = tied;
}

// BERT's and RoBERTa's keys are the same.
ModelConfig read_like_bert(const io::TomlTable& s, std::string_view stem) {
  ModelConfig c = read_sizes(s);
  shape_like_bert(c);
  c.task = read_task(s, stem);
  c.ffn = read_activation(s, "hidden_act", "gelu", false);
  c.norm_epsilon = s.number_or("layer_norm_eps", 1e-12);
  require_switch(s, "is_decoder", false, false);
  require_switch(s, "add_cross_attention", false, false);
  if (s.string_or("position_embedding_type", "absolute") != "absolute")
    s.refuse("position_embedding_type", "absolute: the others were given up");
  (void)s.integer_or("type_vocab_size", 2, {1, 1 << 16});
  return c;
}

ModelConfig read_bert(const io::TomlTable& s) {
  ModelConfig c = read_like_bert(s, "Bert");
  const bool tied = s.boolean_or("tie_word_embeddings", true);
  if (c.task == Task::masked)
    set_masked_head(c, read_head_transform(s, "hidden_act", "gelu"), tied);
  if (c.task == Task::classify) c.head_transform = HeadTransform::tanh;  // its pooler
  return c;
}

ModelConfig read_like_roberta(const io::TomlTable& s, std::string_view stem) {
  ModelConfig c = read_like_bert(s, stem);
  // The first position has the number behind that of the padding.
  const std::int64_t before = s.integer_or("pad_token_id", 1, {0, text::kMaxVocabulary}) + 1;
  if (c.sizes.context <= before)
    s.refuse("max_position_embeddings", "more than " + std::to_string(before) +
                                            ": so many rows stand before the first position");
  c.sizes.context -= before;
  const bool tied = s.boolean_or("tie_word_embeddings", true);
  if (c.task == Task::masked) set_masked_head(c, HeadTransform::gelu, tied);
  if (c.task == Task::classify) c.head_transform = HeadTransform::tanh;
  return c;
}

ModelConfig read_roberta(const io::TomlTable& s) { return read_like_roberta(s, "Roberta"); }
ModelConfig read_xlm_roberta(const io::TomlTable& s) { return read_like_roberta(s, "XLMRoberta"); }

ModelConfig read_distilbert(const io::TomlTable& s) {
  ModelConfig c;
  shape_like_bert(c);
  c.task = read_task(s, "DistilBert");
  c.layers = s.integer("n_layers", {1, kMostLayers});
  c.width = s.integer("dim", {1, kMostWidth});
  c.attention.heads = s.integer("n_heads", {1, kMostWidth});
  c.ffn_width = s.integer("hidden_dim", {1, kMostWidth});
  c.ffn = read_activation(s, "activation", "gelu", false);
  c.norm_epsilon = 1e-12;
  c.sizes.vocabulary = s.integer("vocab_size", {1, text::kMaxVocabulary});
  c.sizes.context = s.integer("max_position_embeddings", {1, std::int64_t{1} << 30});
  const bool tied = s.boolean_or("tie_word_embeddings", true);
  if (c.task == Task::masked)
    set_masked_head(c, read_head_transform(s, "activation", "gelu"), tied);
  if (c.task == Task::classify) c.head_transform = HeadTransform::relu;
  // The sine waves are in the file as a table; dropout; an old name.
  pass_over(s, {"sinusoidal_pos_embds", "qa_dropout", "seq_classif_dropout", "tie_weights_"});
  return c;
}

}  // namespace

Family bert_family() {
  return {.name = "bert",
          .read = read_bert,
          .names = kBertHeadNames,
          .shared_names = kLayerNames,
          .prefix = "bert.",
          .unused = kBertUnused};
}

Family roberta_family() {
  return {.name = "roberta",
          .read = read_roberta,
          .names = kRobertaHeadNames,
          .shared_names = kLayerNames,
          .prefix = "roberta.",
          .unused = kRobertaUnused};
}

Family xlm_roberta_family() {
  return {.name = "xlm-roberta",
          .read = read_xlm_roberta,
          .names = kRobertaHeadNames,
          .shared_names = kLayerNames,
          .prefix = "roberta.",
          .unused = kRobertaUnused};
}

Family distilbert_family() {
  return {.name = "distilbert",
          .read = read_distilbert,
          .names = kDistilbertNames,
          .prefix = "distilbert.",
          .unused = kDistilbertUnused};
}

}  // namespace heddle::pretrained
