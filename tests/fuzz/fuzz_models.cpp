// For libFuzzer: the first byte chooses the kind of file, the rest is the file.
//
//     cmake -S . -B build/fuzz -DCMAKE_CXX_COMPILER=clang++-19 -DHEDDLE_FUZZ=ON
//     build/fuzz/fuzz_models -max_len=65536 CORPUS
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "fuzz/read_models.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::array names = {"config.json", "model.safetensors", "model.gguf", "chat.jinja",
                                "preprocessor_config.json"};
  if (size == 0) return 0;
  heddle::fuzz::read_model(names[data[0] % names.size()],
                           std::string(reinterpret_cast<const char*>(data) + 1, size - 1));
  return 0;
}
