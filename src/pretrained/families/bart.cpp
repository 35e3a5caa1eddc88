// BART, mBART and Marian: the first Transformer, each with its own positions and norms, and a bias
// of every token's score.
#include <array>

#include "pretrained/families/families.h"
#include "pretrained/families/tables.h"
#include "pretrained/names/take.h"
#include "pretrained/settings/common.h"
#include "text/tokenizer.h"

namespace heddle::pretrained {
namespace {

constexpr std::string_view kHead = "lm_head.weight", kHeadBias = "final_logits_bias";
constexpr std::string_view kShared = "model.shared.weight";
constexpr std::string_view kRead = "model.encoder.embed_tokens.weight";
constexpr std::string_view kWritten = "model.decoder.embed_tokens.weight";

constexpr std::array kNames = std::to_array<TensorName>({
    {"encoder.embed.weight", kRead},
    {"encoder.embed.weight", kShared},
    {"decoder.embed.weight", kWritten},
    {"decoder.embed.weight", kShared},
    // The first two rows of a table of positions are never read.
    {"encoder.position.weight", "model.encoder.embed_positions.weight", from_row<2>},
    {"decoder.position.weight", "model.decoder.embed_positions.weight", from_row<2>},
    {"encoder.embed_norm.*", "model.encoder.layernorm_embedding.*"},
    {"decoder.embed_norm.*", "model.decoder.layernorm_embedding.*"},
    {"encoder.layers.#.attention.q.*", "model.encoder.layers.#.self_attn.q_proj.*"},
    {"encoder.layers.#.attention.k.*", "model.encoder.layers.#.self_attn.k_proj.*"},
    {"encoder.layers.#.attention.v.*", "model.encoder.layers.#.self_attn.v_proj.*"},
    {"encoder.layers.#.attention.out.*", "model.encoder.layers.#.self_attn.out_proj.*"},
    {"encoder.layers.#.attention_norm.*", "model.encoder.layers.#.self_attn_layer_norm.*"},
    {"encoder.layers.#.ffn.in.*", "model.encoder.layers.#.fc1.*"},
    {"encoder.layers.#.ffn.out.*", "model.encoder.layers.#.fc2.*"},
    {"encoder.layers.#.ffn_norm.*", "model.encoder.layers.#.final_layer_norm.*"},
    {"encoder.norm.*", "model.encoder.layer_norm.*"},
    {"decoder.layers.#.attention.q.*", "model.decoder.layers.#.self_attn.q_proj.*"},
    {"decoder.layers.#.attention.k.*", "model.decoder.layers.#.self_attn.k_proj.*"},
    {"decoder.layers.#.attention.v.*", "model.decoder.layers.#.self_attn.v_proj.*"},
    {"decoder.layers.#.attention.out.*", "model.decoder.layers.#.self_attn.out_proj.*"},
    {"decoder.layers.#.attention_norm.*", "model.decoder.layers.#.self_attn_layer_norm.*"},
    {"decoder.layers.#.cross.q.*", "model.decoder.layers.#.encoder_attn.q_proj.*"},
    {"decoder.layers.#.cross.k.*", "model.decoder.layers.#.encoder_attn.k_proj.*"},
    {"decoder.layers.#.cross.v.*", "model.decoder.layers.#.encoder_attn.v_proj.*"},
    {"decoder.layers.#.cross.out.*", "model.decoder.layers.#.encoder_attn.out_proj.*"},
    {"decoder.layers.#.cross_norm.*", "model.decoder.layers.#.encoder_attn_layer_norm.*"},
    {"decoder.layers.#.ffn.in.*", "model.decoder.layers.#.fc1.*"},
    {"decoder.layers.#.ffn.out.*", "model.decoder.layers.#.fc2.*"},
    {"decoder.layers.#.ffn_norm.*", "model.decoder.layers.#.final_layer_norm.*"},
    {"decoder.norm.*", "model.decoder.layer_norm.*"},
    {"head.weight", kHead},
    {"head.bias", kHeadBias, as_vector},
});

// Copies of a table that is there already, and the number of a format.
constexpr std::array<std::string_view, 5> kUnused = {"shared.weight", "embed_tokens.weight", kHead,
                                                     "encoder.version", "decoder.version"};
// Marian's sine waves are made here.
constexpr std::array<std::string_view, 4> kUnusedOfMarian = {"shared.weight", "embed_tokens.weight",
                                                             kHead, "embed_positions.weight"};

// A number that both stacks have.
std::int64_t read_for_both(const io::TomlTable& s, const std::string& key) {
  const std::int64_t of_encoder = s.integer("encoder_" + key, {1, kMostWidth});
  if (s.integer_or("decoder_" + key, of_encoder, {1, kMostWidth}) != of_encoder)
    s.refuse("decoder_" + key,
             std::to_string(of_encoder) + ", as encoder_" + key + ": both stacks are built alike");
  return of_encoder;
}

struct Differs {
  bool normalize_before = false, normalize_embedding = true;
};

// Switches of older files, which each family has in one way.
void require_family(const io::TomlTable& s, const Differs& differs) {
  require_switch(s, "normalize_before", differs.normalize_before, differs.normalize_before);
  require_switch(s, "add_final_layer_norm", differs.normalize_before, differs.normalize_before);
  require_switch(s, "normalize_embedding", differs.normalize_embedding,
                 differs.normalize_embedding);
  require_switch(s, "add_bias_logits", false, false);
}

model::ModelConfig read_like_bart(const io::TomlTable& s, const Differs& differs) {
  model::ModelConfig c;
  c.kind = model::Kind::encoder_decoder;
  c.task = model::Task::translate;
  c.layers = s.integer("encoder_layers", {1, kMostLayers});
  c.decoder_layers = s.integer("decoder_layers", {1, kMostLayers});
  c.width = s.integer("d_model", {1, kMostWidth});
  c.attention.heads = read_for_both(s, "attention_heads");
  c.ffn_width = read_for_both(s, "ffn_dim");
  c.ffn = read_activation(s, "activation_function", "gelu", false);
  c.norm_place = differs.normalize_before ? nn::NormPlace::pre : nn::NormPlace::post;
  c.embedding_norm = differs.normalize_embedding;
  c.scale_embedding = s.boolean_or("scale_embedding", false);
  c.sizes.vocabulary = s.integer("vocab_size", {1, text::kMaxVocabulary});
  c.sizes.context = s.integer("max_position_embeddings", {1, std::int64_t{1} << 30});
  c.attention.position = nn::LearnedPosition{c.sizes.context};
  c.tied = s.boolean_or("tie_word_embeddings", true);
  require_family(s, differs);
  // Old names of other keys, heads for labels, and what training drops.
  pass_over(s, {"num_hidden_layers", "encoder_layerdrop", "decoder_layerdrop", "classif_dropout",
                "init_std", "_num_labels", "num_labels", "extra_pos_embeddings"});
  pass_over_search(s);
  return c;
}

model::ModelConfig read_bart(const io::TomlTable& s) {
  require_switch(s, "static_position_embeddings", false, false);
  return read_like_bart(s, {});
}

model::ModelConfig read_mbart(const io::TomlTable& s) {
  require_switch(s, "static_position_embeddings", false, false);
  return read_like_bart(s, {.normalize_before = true});
}

model::ModelConfig read_marian(const io::TomlTable& s) {
  model::ModelConfig c = read_like_bart(s, {.normalize_embedding = false});
  require_switch(s, "static_position_embeddings", true, true);
  c.attention.position = nn::SinusoidalPosition{.halves = true};
  const std::int64_t written =
      s.integer_or("decoder_vocab_size", c.sizes.vocabulary, {1, text::kMaxVocabulary});
  const bool shared = s.boolean_or("share_encoder_decoder_embeddings", true);
  if (shared && written != c.sizes.vocabulary)
    s.refuse("decoder_vocab_size", std::to_string(c.sizes.vocabulary) +
                                       ", as vocab_size: share_encoder_decoder_embeddings is true");
  if (!shared) c.sizes.target_vocabulary = written;
  return c;
}

// Files that are tied may have copies of the one table, and those that are not may have one for
// both sides.
void look_at_tables(const WeightFiles& files, model::ModelConfig& c) {
  c.head_bias = files.contains(kHeadBias);
  if (c.sizes.target_vocabulary == 0)
    c.shared_embedding =
        !files.contains(kRead) || !files.contains(kWritten) || same_tensor(files, kRead, kWritten);
  const std::string_view written = files.contains(kWritten) ? kWritten : kShared;
  c.tied = c.tied && (!files.contains(kHead) || same_tensor(files, kHead, written));
}

Family like_bart(std::string_view name, model::ModelConfig (*read)(const io::TomlTable&),
                 std::span<const std::string_view> unused) {
  return {.name = name,
          .read = read,
          .names = kNames,
          .prefix = "model.",
          .unused = unused,
          .look_at = look_at_tables};
}

}  // namespace

Family bart_family() { return like_bart("bart", read_bart, kUnused); }
Family mbart_family() { return like_bart("mbart", read_mbart, kUnused); }
Family marian_family() { return like_bart("marian", read_marian, kUnusedOfMarian); }

}  // namespace heddle::pretrained
