// For libFuzzer: the first byte chooses the file, the rest is the file.
//
//     cmake -S . -B build/fuzz -DCMAKE_CXX_COMPILER=clang++-19 -DHEDDLE_FUZZ=ON
//     build/fuzz/fuzz_tokenizers -max_len=65536 CORPUS
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "fuzz/read_tokenizers.h"
#include "heddle/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::array names = {"tokenizer.json", "tokenizer.model", "vocab.txt", "merges.txt",
                                "tokenizer_config.json"};
  if (size == 0) return 0;
  try {
    heddle::fuzz::read_tokenizer(names[data[0] % names.size()],
                                 std::string(reinterpret_cast<const char*>(data) + 1, size - 1));
  } catch (const heddle::Error& e) {
    if (e.code() != heddle::ErrorCode::io) throw;
  }
  return 0;
}
