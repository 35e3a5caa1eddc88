// One function per family, in files by descent.
#pragma once

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
Family neox_family();
Family bloom_family();
Family falcon_family();

Family gguf_gpt2_family();
Family gguf_llama_family();

}  // namespace heddle::pretrained
