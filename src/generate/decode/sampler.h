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

struct Candidate {
  std::int32_t token = 0;
  double probability = 0;
};

class Sampler {
 public:
  explicit Sampler(const SamplingOptions& options);

  // logits: one a token; -inf never happens. history: tokens of the sequence so far, for the
  // repetition penalty. Throws Error when a score is NaN or +inf or when none is finite.
  std::int32_t draw(std::span<const float> logits, std::span<const std::int32_t> history,
                    const DrawPlace& place);

  // The distribution that draw() samples: tokens by id, probabilities that add up to 1.
  std::vector<Candidate> distribution(std::span<const float> logits,
                                      std::span<const std::int32_t> history);

  const SamplingOptions& options() const { return options_; }

 private:
  struct Scored {
    float logit;
    std::int32_t token;
  };

  std::span<const float> penalised(std::span<const float> logits,
                                   std::span<const std::int32_t> history);
  double keep(std::span<const float> logits);  // fills kept_ and weights_; the sum of the weights
  void keep_top(std::span<const float> logits, std::size_t count);
  void keep_nucleus(double total);

  SamplingOptions options_;
  // Of one call; members, so that their memory serves the next one too.
  std::vector<float> penalised_;
  std::vector<bool> seen_;
  std::vector<Scored> kept_;
  std::vector<double> weights_;  // exp of the scores relative to the best, in the order of kept_
};

// The best token: of equal scores the lowest id. Throws Error as Sampler::draw().
std::int32_t best_token(std::span<const float> logits);

}  // namespace heddle::generate
