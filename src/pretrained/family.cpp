#include "pretrained/family.h"

#include <vector>

#include "heddle/error.h"
#include "pretrained/families/families.h"

namespace heddle::pretrained {
namespace {

const std::vector<Family>& of_config_json() {
  static const std::vector<Family> all = {
      gpt2_family(),       llama_family(),   mistral_family(),     mixtral_family(),
      qwen2_family(),      qwen3_family(),   phi3_family(),        smollm3_family(),
      gemma_family(),      gemma2_family(),  gemma3_family(),      olmo2_family(),
      gpt_oss_family(),    neox_family(),    bloom_family(),       falcon_family(),
      t5_family(),         bart_family(),    mbart_family(),       marian_family(),
      bert_family(),       roberta_family(), xlm_roberta_family(), distilbert_family(),
      modernbert_family(), vit_family(),     deit_family(),        dinov2_family()};
  return all;
}

const std::vector<Family>& of_gguf() {
  static const std::vector<Family> all = all_gguf_families();
  return all;
}

std::string names_of(const std::vector<Family>& all) {
  std::string text;
  for (const Family& f : all) text += (text.empty() ? "" : ", ") + std::string(f.name);
  return text;
}

const Family& named(const std::vector<Family>& all, std::string_view name, const std::string& where,
                    std::string_view key) {
  for (const Family& f : all)
    if (f.name == name) return f;
  fail(ErrorCode::io, where, "key " + std::string(key) + ": a family that Heddle does not know",
       "one of " + names_of(all), std::string(name));
}

}  // namespace

const Family& family(std::string_view name, const std::string& where) {
  return named(of_config_json(), name, where, "model_type");
}
const Family& gguf_family(std::string_view architecture, const std::string& where) {
  return named(of_gguf(), architecture, where, "general.architecture");
}
std::string family_names() { return names_of(of_config_json()); }
std::string gguf_family_names() { return names_of(of_gguf()); }
std::span<const Family> families() { return of_config_json(); }
std::span<const Family> gguf_families() { return of_gguf(); }

}  // namespace heddle::pretrained
