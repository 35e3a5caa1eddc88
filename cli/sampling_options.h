// The options by which tokens are drawn, shared by the commands that write text.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "heddle/generation.h"
#include "heddle/language_model.h"

namespace heddle::cli {

struct SamplingArguments {
  GenerationOptions options;               // as given
  std::optional<std::uint64_t> seed = {};  // absent: a new one
  std::vector<std::string> biases = {};    // TOKEN=NUMBER
  bool no_defaults = false;
};

// --tokens, --temperature, --top-k, --top-p, --min-p, the penalties, --logit-bias, --seed, --stop
// and --no-defaults.
void declare_sampling(CLI::App& command, SamplingArguments& arguments);

// The names of those that say how a token is drawn, for options that exclude them.
std::vector<std::string> drawing_options();

// The options given; the others as the model's generation_config.json has them, which is told on
// standard error. The seed is set.
GenerationOptions sampling_of(const CLI::App& command, const SamplingArguments& arguments,
                              const LanguageModel& model);

inline bool is_drawn(const SamplingOptions& sampling) { return sampling.temperature != 0; }

// Whoever gives no seed wants another text each time, and may want this one again: the seed is
// told, on standard error, so that the text stays alone where it goes.
class ToldSeed {
 public:
  ToldSeed(const SamplingArguments& arguments, const SamplingOptions& sampling, bool as_json)
      : seed_(sampling.seed), tell_(!arguments.seed && is_drawn(sampling) && !as_json) {}
  void tell_once();

 private:
  std::uint64_t seed_;
  bool tell_;
};

}  // namespace heddle::cli
