// A text as windows of tokens, for training loops of one's own.
//
//   const data::Windows text("kjv.txt", text::bytes(), {.context = 128, .batch = 16});
//   const auto [x, y] = text.batch(step);   // y[b, t] follows on x[b, t]
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "heddle/tensor.h"
#include "text/tokenizer.h"

namespace heddle::data {

class Dataset;

struct WindowsConfig {
  std::int64_t context = 0;       // T: tokens of a window
  std::int64_t batch = 1;         // B: windows of a batch
  double validation_share = 0.1;  // of the text, its end: no training batch sees it
  std::uint64_t seed = 1;
};

struct WindowBatch {
  Tensor x;  // [B, T] i32
  Tensor y;  // [B, T] i32: the next tokens; -100 where there is none, which losses pass over
};

class Windows {
 public:
  // A text file, plain or gzip. Throws Error naming what is wrong with the file or the numbers.
  Windows(const std::string& path, std::shared_ptr<const text::Tokenizer> tokenizer,
          const WindowsConfig& config);
  ~Windows();
  Windows(Windows&&) noexcept;

  // Windows at random places. Which ones is a function of the seed and the step (from 1) alone.
  WindowBatch batch(std::int64_t step) const;

  // The held-out text, every token once, in order; none with validation_share = 0.
  std::int64_t validation_batches() const;
  WindowBatch validation_batch(std::int64_t index) const;

  const text::Tokenizer& tokenizer() const;

 private:
  WindowsConfig config_;
  std::unique_ptr<const Dataset> data_;
};

}  // namespace heddle::data
