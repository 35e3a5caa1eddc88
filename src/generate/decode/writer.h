// A text on its way: takes one token after the other from scores, shows what is certain, and knows
// when it ends.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "generate/decode/decoding.h"
#include "generate/decode/sampling/sampler.h"
#include "generate/decode/text_stream.h"
#include "heddle/generation.h"

namespace heddle::generate {

// Which text of a request it is, and how long it may become.
struct WriterPlace {
  std::int64_t number = 0;   // for the sink
  std::uint32_t stream = 0;  // of random numbers: which sample of its prompt
  std::int64_t tokens = 0;   // at most
};

class Writer {
 public:
  // Options and decoding outlive it.
  Writer(const GenerationOptions& options, const Decoding& decoding,
         std::span<const std::int32_t> prompt, const WriterPlace& place);

  // The next token, from the scores of all.
  std::int32_t draw(std::span<const float> scores, Sampler& sampler) const;
  // Takes the next token. False when the text is complete.
  bool add(std::int32_t token, const TextSink& sink);
  // Ends the text where it is.
  void finish(Finish how, const TextSink& sink);

  std::span<const std::int32_t> sequence() const { return sequence_; }  // prompt and what followed
  std::int64_t written() const { return static_cast<std::int64_t>(sample_.tokens.size()); }
  std::int64_t room() const { return place_.tokens - written(); }  // tokens that may follow
  const WriterPlace& place() const { return place_; }
  Sample take() { return std::move(sample_); }

 private:
  void show(const std::string& piece, const TextSink& sink) const;

  const Decoding* decoding_;
  WriterPlace place_;
  std::size_t prompt_;
  std::vector<std::int32_t> sequence_;
  std::optional<TextStream> stream_;
  Sample sample_;
};

// Scores [R, V] of the tokens that there are, on the host.
class HostScores {
 public:
  HostScores(const Tensor& logits, const text::Tokenizer* tokenizer);
  std::span<const float> row(std::int64_t i) const;

 private:
  Tensor here_;
};

}  // namespace heddle::generate
