// From the scores of all tokens to one token, as SamplingOptions (heddle/generation.h) says.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heddle/generation.h"

namespace heddle::generate {

// Throws Error naming the option, what it may be and what it was.
void validate(const SamplingOptions& options);

// Which random number a draw uses: the same place of the same stream gives the same number under
// the same seed, whatever else is drawn and in whatever order.
struct DrawPlace {
  std::int64_t position = 0;  // of the token in its sequence
  std::uint32_t stream = 0;   // of the sequence: which sample it is
};

// The tokens of a sequence so far: `prompt` of them were given, the others were written.
struct History {
  History() = default;
  History(std::span<const std::int32_t> all, std::size_t given = 0) : tokens(all), prompt(given) {}
  History(const std::vector<std::int32_t>& all, std::size_t given = 0)
      : tokens(all), prompt(given) {}

  std::span<const std::int32_t> tokens = {};
  std::size_t prompt = 0;
};

struct Candidate {
  std::int32_t token = 0;
  double probability = 0;
};

class Sampler {
 public:
  explicit Sampler(const SamplingOptions& options);

  // logits: one a token; -inf never happens. The history is for the penalties. Throws Error when a
  // score is NaN or +inf or when none is finite.
  std::int32_t draw(std::span<const float> logits, const History& history, const DrawPlace& place);

  // The distribution that draw() samples: tokens by id, probabilities that add up to 1.
  std::vector<Candidate> distribution(std::span<const float> logits, const History& history);

  const SamplingOptions& options() const { return options_; }

 private:
  struct Scored {
    float logit;
    std::int32_t token;
  };

  std::span<const float> changed(std::span<const float> logits, const History& history);
  void penalise_repetition(std::span<const std::int32_t> tokens);
  void penalise_written(std::span<const std::int32_t> tokens);
  double keep(std::span<const float> logits);  // fills kept_ and weights_; the sum of the weights
  void keep_top(std::span<const float> logits, std::size_t count);
  void keep_nucleus(double total);

  SamplingOptions options_;
  // Of one call; members, so that their memory serves the next one too.
  std::vector<float> changed_;  // the logits after biases and penalties
  std::vector<bool> seen_;
  std::vector<std::int32_t> counts_;
  std::vector<Scored> kept_;
  std::vector<double> weights_;  // exp of the scores relative to the best, in the order of kept_
};

// The best token: of equal scores the lowest id. Throws Error as Sampler::draw().
std::int32_t best_token(std::span<const float> logits);

}  // namespace heddle::generate
