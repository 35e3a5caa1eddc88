// From the scores of all tokens to one token.
//
// What is done, in this order:
//   1. repetition_penalty: scores of tokens that were already there are divided by it when
//      positive, multiplied when negative (Keskar et al. 2019)
//   2. temperature: scores are divided by it; 0 takes the best token, and 3 to 5 do nothing
//   3. top_k: the k best stay
//   4. top_p: of the best, as many as it takes to reach the probability p stay (Holtzman et al.
//      2020); the probabilities are those of what top_k left
//   5. min_p: tokens stay that are at least p times as probable as the best
//   6. one of them is drawn
//
// The best token always stays. Of equal scores the one with the lower id is the better.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace heddle::generate {

struct SamplerOptions {
  double temperature = 1;         // 0: greedy
  std::int64_t top_k = 0;         // 0: all
  double top_p = 1;               // 1: all
  double min_p = 0;               // 0: all
  double repetition_penalty = 1;  // 1: none
  std::uint64_t seed = 0;
};

// Throws Error naming the option, what it may be and what it was.
void validate(const SamplerOptions& options);

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
  explicit Sampler(const SamplerOptions& options);

  // logits: one a token; -inf never happens. history: tokens of the sequence so far, for the
  // repetition penalty. Throws Error when a score is NaN or +inf or when none is finite.
  std::int32_t draw(std::span<const float> logits, std::span<const std::int32_t> history,
                    const DrawPlace& place);

  // What draw() draws from: tokens by id, probabilities that add up to 1.
  std::vector<Candidate> distribution(std::span<const float> logits,
                                      std::span<const std::int32_t> history);

  const SamplerOptions& options() const { return options_; }

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

  SamplerOptions options_;
  // Of one call; members, so that their memory serves the next one too.
  std::vector<float> penalised_;
  std::vector<bool> seen_;
  std::vector<Scored> kept_;
  std::vector<double> weights_;  // exp of the scores relative to the best, in the order of kept_
};

// The best token: of equal scores the lowest id. Throws Error as Sampler::draw().
std::int32_t best_token(std::span<const float> logits);

}  // namespace heddle::generate
