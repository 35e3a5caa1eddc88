// Many texts at once, each with its own keys and values: the weights are read once for all of them.
// Prompts wait until a place is free, texts that end leave theirs. Nothing of this changes a bit of
// any text (Model::next_each).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "generate/decode/decoding.h"
#include "generate/decode/reader.h"
#include "generate/decode/sampling/sampler.h"
#include "generate/decode/writer.h"
#include "heddle/generation.h"
#include "model/model.h"

namespace heddle::generate {

// A checked request: one text that follows a prompt.
struct TextRequest {
  std::span<const std::int32_t> prompt;
  std::int64_t tokens = 0;     // at most
  std::int64_t positions = 0;  // of its sequence, at most
};

struct TogetherOptions {
  std::int64_t batch = 1;  // texts that are written at the same time, at most
  TextSink sink = {};      // gets the number of the request
  TextDone done = {};
};

class Together {
 public:
  // Model, options and decoding outlive it.
  Together(const model::Model& model, const GenerationOptions& options, const Decoding& decoding,
           TogetherOptions together);
  ~Together();

  // The text of each request, in their order. With one
  // request decoding.before is used, and filled for the next one.
  std::vector<Generation> run(std::span<const TextRequest> requests);

 private:
  struct Live;  // a text that is being read or written

  bool keeps_states() const;
  Live& join(const TextRequest& request, std::int64_t number);
  void begin(Live& live, const TextRequest& request);
  bool step();  // false: cancelled
  void take_all(std::span<const model::NextTokens> now, std::span<const std::size_t> who,
                const HostScores& scores);
  std::size_t wanted_now(Live& live, std::size_t room, std::size_t tries) const;
  bool take(Live& live, const HostScores& scores, std::int64_t first_row, std::size_t scored);
  void leave(Live& live);

  const model::Model& model_;
  const GenerationOptions& options_;
  const Decoding& decoding_;
  TogetherOptions together_;
  nn::Pass pass_;
  Sampler sampler_;
  std::vector<Live> live_;
  std::vector<Generation> results_;
};

}  // namespace heddle::generate
