// Families as GGUF files have them: other keys, other names, and rows of queries and keys in
// another order where the rotation of llama.cpp is that of neighbours.
#include <array>

#include "pretrained/common.h"
#include "pretrained/families/families.h"
#include "pretrained/take.h"
#include "text/tokenizer.h"

namespace heddle::pretrained {
namespace {

constexpr std::array kNames = std::to_array<TensorName>({
    {"embed.weight", "token_embd.weight"},
    {"position.weight", "position_embd.weight"},
    {"layers.#.attention_norm.*", "blk.#.attn_norm.*"},
    {"layers.#.attention.q.*", "blk.#.attn_q.*"},
    {"layers.#.attention.k.*", "blk.#.attn_k.*"},
    {"layers.#.attention.v.*", "blk.#.attn_v.*"},
    {"layers.#.attention.q.*", "blk.#.attn_qkv.*", fused<Part::query>},
    {"layers.#.attention.k.*", "blk.#.attn_qkv.*", fused<Part::key>},
    {"layers.#.attention.v.*", "blk.#.attn_qkv.*", fused<Part::value>},
    {"layers.#.attention.out.*", "blk.#.attn_output.*"},
    {"layers.#.ffn_norm.*", "blk.#.ffn_norm.*"},
    {"layers.#.ffn.in.*", "blk.#.ffn_gate.*", nullptr, "blk.#.ffn_up.*"},
    {"layers.#.ffn.in.*", "blk.#.ffn_up.*"},
    {"layers.#.ffn.out.*", "blk.#.ffn_down.*"},
    {"norm.*", "output_norm.*"},
    {"head.weight", "output.weight"},
});

Family gguf(std::string_view name, model::ModelConfig (*read)(const io::TomlTable&)) {
  return {.name = name, .read = read, .names = kNames};
}

model::ModelConfig read_gguf_sizes(const io::TomlTable& s) {
  model::ModelConfig c;
  c.layers = s.integer("block_count", {1, kMostLayers});
  c.width = s.integer("embedding_length", {1, kMostWidth});
  c.attention.heads = s.integer("attention.head_count", {1, kMostWidth});
  if (s.has("attention.head_count_kv"))
    c.attention.kv_heads = s.integer("attention.head_count_kv", {1, kMostWidth});
  c.ffn_width = s.integer("feed_forward_length", {1, kMostWidth});
  c.sizes.context = s.integer("context_length", {1, std::int64_t{1} << 30});
  // The table of embeddings has as many rows as there are tokens; see load.cpp.
  if (s.has("vocab_size")) c.sizes.vocabulary = s.integer("vocab_size", {1, text::kMaxVocabulary});
  if (s.has("attention.key_length")) {
    c.attention.head_width = s.integer("attention.key_length", {1, kMostWidth});
    if (s.integer_or("attention.value_length", *c.attention.head_width) != *c.attention.head_width)
      s.refuse("attention.value_length", "attention.key_length");
  }
  return c;
}

model::ModelConfig read_gguf_llama(const io::TomlTable& s) {
  model::ModelConfig c = read_gguf_sizes(s);
  c.norm = nn::NormKind::rms;
  c.norm_epsilon = s.number("attention.layer_norm_rms_epsilon");
  c.ffn = nn::FfnKind::swiglu;
  c.bias = false;
  nn::RopeOptions rope;
  rope.base = s.number_or("rope.freq_base", 10000);
  // Rows of queries and keys are in the order that rotates neighbours.
  rope.pairing = ops::Pairing::interleaved;
  rope.rotated = s.integer_or("rope.dimension_count", 0, {0, kMostWidth});
  const std::string scaling = s.choice_or("rope.scaling.type", "none", {"none", "linear"});
  if (scaling == "linear")
    rope.scaling = nn::LinearScaling{s.number("rope.scaling.factor", {1e-3, 1e6})};
  c.attention.position = rope;
  return c;
}

model::ModelConfig read_gguf_gpt2(const io::TomlTable& s) {
  model::ModelConfig c = read_gguf_sizes(s);
  c.norm_epsilon = s.number("attention.layer_norm_epsilon");
  c.ffn = nn::FfnKind::gelu_tanh;
  c.attention.position = nn::LearnedPosition{c.sizes.context};
  return c;
}

}  // namespace

Family gguf_llama_family() { return gguf("llama", read_gguf_llama); }
Family gguf_gpt2_family() { return gguf("gpt2", read_gguf_gpt2); }

}  // namespace heddle::pretrained
