// A tiny Llama as others write it: config.json, safetensors by their names, a tokenizer.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/safetensors/safetensors.h"
#include "model/model.h"
#include "ops/copy/copy.h"
#include "ops/view/view.h"
#include "text/train.h"

namespace heddle::pretrained {

inline constexpr const char* kConfig = R"({
  "model_type": "llama", "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2,
  "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 259, "rms_norm_eps": 1e-5,
  "max_position_embeddings": 64, "rope_theta": 5000, "tie_word_embeddings": false,
  "eos_token_id": [7, 9], "use_cache": true, "sliding_window": null })";

inline model::ModelConfig same_by_hand() {
  model::ModelConfig c;
  c.layers = 2;
  c.width = 24;
  c.ffn = nn::FfnKind::swiglu;
  c.ffn_width = 40;
  c.norm = nn::NormKind::rms;
  c.bias = false;
  c.attention.heads = 4;
  c.attention.kv_heads = 2;
  c.attention.position = nn::RopePosition{.base = 5000};
  c.sizes = {.vocabulary = 259, .context = 64};
  return c;
}

using Tensors = std::map<std::string, Tensor>;

inline void put_layer(Tensors& out, const std::map<std::string, Tensor>& own, int layer) {
  const std::string ours = "layers." + std::to_string(layer) + ".";
  const std::string theirs = "model." + ours;
  for (const char* part : {"q", "k", "v"})
    out[theirs + "self_attn." + part + "_proj.weight"] =
        own.at(ours + "attention." + part + ".weight");
  out[theirs + "self_attn.o_proj.weight"] = own.at(ours + "attention.out.weight");
  out[theirs + "input_layernorm.weight"] = own.at(ours + "attention_norm.weight");
  out[theirs + "post_attention_layernorm.weight"] = own.at(ours + "ffn_norm.weight");
  const Tensor both = own.at(ours + "ffn.in.weight");  // [2F, C]
  out[theirs + "mlp.gate_proj.weight"] = ops::clone(ops::slice(both, 0, 0, 40));
  out[theirs + "mlp.up_proj.weight"] = ops::clone(ops::slice(both, 0, 40, 80));
  out[theirs + "mlp.down_proj.weight"] = own.at(ours + "ffn.out.weight");
}

// The weights of a model by the names that Llama's files have.
inline Tensors as_llama(const model::Model& model) {
  std::map<std::string, Tensor> own;
  for (const nn::Parameter& p : model.parameters().all()) own[p.name] = p.tensor.detach();
  Tensors out;
  out["model.embed_tokens.weight"] = own.at("embed.weight");
  out["model.norm.weight"] = own.at("norm.weight");
  out["lm_head.weight"] = own.at("head.weight");
  for (int layer = 0; layer < 2; ++layer) put_layer(out, own, layer);
  return out;
}

inline void write_tensors(const std::string& path, const Tensors& tensors) {
  std::vector<io::NamedTensor> all;
  for (const auto& [key, tensor] : tensors) all.push_back({key, tensor});
  io::write_safetensors(path, all);
}

inline void save_byte_tokenizer(const std::string& path, const text::SpecialTokens& specials = {}) {
  const std::string_view text = "a text";
  text::train_tokenizer(text::TokenizerSpec::parse("byte", "test"), {&text, 1}, specials)
      ->save(path);
}

// The whole directory, with an end token and a template: [user]hi</s>\n[assistant]yo</s>\n. The
// model whose weights it has.
inline std::unique_ptr<model::Model> write_tiny_llama(const std::string& directory) {
  std::filesystem::create_directories(directory);
  model::BuildOptions options;
  options.seed = 5;
  auto model = model::build_model(same_by_hand(), options);
  std::ofstream(directory + "/config.json") << kConfig;
  std::ofstream(directory + "/tokenizer_config.json") << R"({"eos_token": "</s>", "chat_template":
    "{% for m in messages %}[{{ m.role }}]{{ m.content }}</s>\n{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}"})";
  save_byte_tokenizer(directory + "/tokenizer.json", {.end = true});
  write_tensors(directory + "/model.safetensors", as_llama(*model));
  return model;
}

}  // namespace heddle::pretrained
