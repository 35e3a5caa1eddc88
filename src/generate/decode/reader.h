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

// A prompt that was read, for the next one that begins like it. Only its whole blocks are used
// again (model::kPromptBlock): everything is read in the blocks in which it would have been read
// anew, so it comes to the same bits. Tokens that the model wrote were read one by one, and are
// read again.
struct ReadBefore {
  std::vector<std::int32_t> tokens = {};  // of the prompt, as far as it was read
  std::unique_ptr<model::DecodeState> state = {};
};

struct ReaderOptions {
  bool cached = true;
  Window window = {};
  std::int64_t positions = 0;  // tokens of a sequence, at most
  DType precision = DType::f32;
  ReadBefore* before = nullptr;  // for one sequence that does not slide
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

  // Tokens of the prompt that were not read again.
  std::int64_t reused() const { return reused_; }
  // Leaves the prompt in options.before; no next() after it.
  void remember();

 private:
  Tensor with_cache(Sequences sequences);
  Tensor restart(Sequences sequences, std::int64_t count);
  Tensor without_cache(Sequences sequences);
  std::int64_t take_before(std::span<const std::int32_t> prompt);
  std::int64_t block_end(std::int64_t at, std::int64_t end) const;

  const model::Model* model_;
  ReaderOptions options_;
  nn::Pass pass_;
  std::unique_ptr<model::DecodeState> state_;
  std::vector<std::int32_t> prompt_;  // for remember()
  std::int64_t reused_ = 0;
  std::int64_t read_ = 0;    // without a cache: tokens of the last call, ...
  std::int64_t window_ = 0;  // ... and how many of them the window began with
};

}  // namespace heddle::generate
