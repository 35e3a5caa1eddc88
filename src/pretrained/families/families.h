// One function per family, in files by descent.
#pragma once

#include <span>
#include <vector>

#include "pretrained/family.h"

namespace heddle::pretrained {

Family gpt2_family();
Family llama_family();
Family mistral_family();
Family mixtral_family();
Family qwen2_family();
Family qwen3_family();
Family phi3_family();
Family smollm3_family();
Family gemma_family();
Family gemma2_family();
Family gemma3_family();
Family olmo2_family();
Family gpt_oss_family();
Family neox_family();
Family bloom_family();
Family falcon_family();
Family bert_family();
Family roberta_family();
Family xlm_roberta_family();
Family distilbert_family();
Family modernbert_family();

Family vit_family();
Family deit_family();
Family dinov2_family();

Family t5_family();
Family bart_family();
Family mbart_family();
Family marian_family();

// By architecture. The first takes the names that decoders share.
Family gpt_oss_gguf_family(std::span<const TensorName> names);
Family bert_gguf_family();
Family t5_gguf_family();
std::vector<Family> all_gguf_families();

}  // namespace heddle::pretrained
