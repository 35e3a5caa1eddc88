// Reads bytes as each file that a model of others may come in, and uses what comes out. Errors are
// how files are refused; one that says the memory was not enough, whatever else is thrown, and
// every crash is a fault: sizes are bounded before anything is allocated.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace heddle::fuzz {

enum class Reading : std::uint8_t { refused, opened, used };

// By how the name of the file ends: config.json, .safetensors, .gguf or .jinja. A config.json is
// opened beside the weights of small_llama.config.json; only that one can be built from them.
Reading read_model(std::string_view name, const std::string& bytes);

}  // namespace heddle::fuzz
