// Everything that decoding needs besides the model and the caller's options.
#pragma once

#include <cstdint>
#include <vector>

#include "heddle/dtype.h"
#include "heddle/tensor.h"
#include "heddle/trained_model.h"
#include "text/tokenizer.h"

namespace heddle::generate {

inline constexpr std::int64_t kDefaultTokens = 256;
inline constexpr std::int64_t kMostTokens = std::int64_t{1} << 24;

struct ReadBefore;

struct Decoding {
  const text::Tokenizer* tokenizer = nullptr;  // without one there is no text
  std::vector<std::int32_t> ends = {};         // each of these tokens ends a text
  DType precision = DType::f32;                // of activations
  // Of an earlier request, and after this one its own (reader.h): for one prompt and
  // one sample. The cache is then made for the model's whole context.
  ReadBefore* before = nullptr;
};

// Of a model that was loaded: its tokenizer, its ends, its precision.
Decoding decoding_of(const TrainedModel& model);

// The scores [R, V] of tokens that there are. A model's table may have more rows than its tokenizer
// has tokens; nobody has learned those, and they have no text.
Tensor of_known_tokens(const Tensor& scores, const text::Tokenizer* tokenizer);

}  // namespace heddle::generate
