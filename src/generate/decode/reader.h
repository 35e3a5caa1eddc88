// A model at the end of sequences that grow token by token.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "generate/decode/context.h"
#include "model/model.h"

namespace heddle::generate {

// The tokens of each sequence of a batch, all of the same length.
using Sequences = std::span<const std::span<const std::int32_t>>;

// Tokens that were read for an earlier text, for a prompt that begins like it. However they were
// cut into calls, prompt or written by the model, they come to the same bits.
struct ReadBefore {
  std::vector<std::int32_t> tokens = {};
  std::unique_ptr<model::DecodeState> state = {};
};

// The state behind as many tokens of the prompt as were read before, but for one, which gives the
// scores; null where there are none, or where the state cannot go back to them. Nothing is left in
// `before`: after an Error on the way nothing is remembered.
std::unique_ptr<model::DecodeState> take_before(ReadBefore& before,
                                                std::span<const std::int32_t> prompt);

// Whether a prompt goes through the model in one piece, else in blocks of kPromptBlock.
bool reads_whole(const model::ModelConfig& config);

struct ReaderOptions {
  bool cached = true;
  Window window = {};
  std::int64_t positions = 0;  // tokens of a sequence, at most
  DType precision = DType::f32;
  std::function<bool()> cancelled = {};
};

class Reader {
 public:
  Reader(const model::Model& model, ReaderOptions options);

  // Scores after the sequences, [B, V] f32. All but their last token were read before, unless this
  // is the first call. Undefined when it was cancelled on the way.
  Tensor next(Sequences sequences);

  // Sequence i goes on as the former sequence rows[i].
  void reorder(std::span<const std::int64_t> rows);

 private:
  Tensor with_cache(Sequences sequences);
  Tensor restart(Sequences sequences, std::int64_t count);
  Tensor without_cache(Sequences sequences);
  std::int64_t block_end(std::int64_t at, std::int64_t end) const;

  const model::Model* model_;
  ReaderOptions options_;
  nn::Pass pass_;
  std::unique_ptr<model::DecodeState> state_;
  std::int64_t read_ = 0;    // without a cache: tokens of the last call, ...
  std::int64_t window_ = 0;  // ... and how many of them the window began with
};

}  // namespace heddle::generate
