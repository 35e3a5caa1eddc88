// A feed-forward layer of many experts, of which each token uses a few (Shazeer et al. 2017).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "nn/ffn/ffn.h"

namespace heddle::nn {

// softmax over all experts, or each expert's own sigmoid.
enum class Router : std::uint8_t { softmax, sigmoid };

std::string_view to_string(Router router);

// How a router scores experts, and what becomes of the scores of those that a token chose.
struct Routing {
  Router router = Router::softmax;
  bool renormalise = true;  // their scores are divided by their sum
  double scale = 1;         // and then multiplied by this
  bool bias = false;        // of the router's product
  // A number per expert that is added to the scores where experts are chosen, and only there. It
  // has no gradient: whoever trains it looks at the load (DeepSeek-V3).
  bool correction = false;

  bool operator==(const Routing&) const = default;
};

struct MoeConfig {
  FfnConfig expert = {};     // each of them
  std::int64_t experts = 8;  // E
  std::int64_t active = 2;   // A: experts a token is sent to, by the largest router probabilities
  // In training an expert takes at most ⌈capacity · tokens · A / E⌉ tokens, the first that ask; for
  // others its share is lost. Absent: no token is dropped.
  std::optional<double> capacity = {};
  std::int64_t shared = 0;  // experts that every token also uses, without a router
  double balance = 0.01;    // weight of the load-balancing loss; 0: none
  Routing routing = {};
  bool shared_gate = false;  // the shared experts' sum times sigmoid(w · x), w learned
};

// Throws Error naming the key.
void validate(const MoeConfig& config);

struct MoeResult {
  Tensor y;  // like x
  // balance · E · Σ_e (share of the tokens' choices that fell on e) · (mean router probability of
  // e), as in Fedus et al. 2021: balance when all experts are used alike. One number; undefined
  // when the weight is 0.
  Tensor balance;
  Tensor load;  // [E] i64: tokens that each expert took
};

struct MoeCall {
  // [B] i64: tokens of each sequence of x [B, T, C]; undefined: all T. Padding takes no expert's
  // place and does not count for the balance.
  Tensor lengths = {};
  // Whether `capacity` limits experts. It does so in training only: the answer to a text must not
  // depend on the other texts in the batch.
  bool limited = true;
  // Whether every expert has as many slots as it may take tokens, as is always so where the host
  // does not see the device's memory (slots.h).
  bool slots = false;
};

class MixtureOfExperts {
 public:
  // "router.weight" [E, C], "router.bias" [E], "router.correction" [E], "experts.<e>.…",
  // "shared.<s>.…", "shared_gate.weight" [1, C]
  MixtureOfExperts(const MoeConfig& config, const Scope& scope);

  // x: [..., C]. y = Σ over the chosen experts of p_e / Σ p · expert_e(x), + shared experts, by
  // default (Routing). Where
  // the host does not see the device's memory, nothing is read (slots.h). On the
  // meta device no token is padding, and the last expert gets as many as it can: whatever a router
  // does with numbers, no call needs more memory.
  MoeResult forward(const Tensor& x, const MoeCall& call = {}) const;

 private:
  Tensor add_shared(const Tensor& y, const Tensor& tokens) const;

  MoeConfig config_;
  Tensor router_, router_bias_, correction_;  // [E, C], [E], [E]
  Tensor shared_gate_;                        // [1, C]
  std::vector<FeedForward> experts_, shared_;
};

}  // namespace heddle::nn
