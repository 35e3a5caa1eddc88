#include "sampling_options.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <random>
#include <system_error>

#include "heddle/error.h"
#include "language/language.h"
#include "tell.h"

namespace heddle::cli {

namespace {

// The parser of the command line takes -1 and 1e30 for the largest number there is.
std::string whole_seed(const std::string& text) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [next, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc() && next == end) return {};
  return "expected a whole number from 0 to " +
         std::to_string(std::numeric_limits<std::uint64_t>::max()) + "; got " + text;
}

// "12=-1.5", or "12=-inf".
LogitBias parse_bias(const std::string& text) {
  LogitBias bias;
  const char* const end = text.data() + text.size();
  const auto [equals, error] = std::from_chars(text.data(), end, bias.token);
  if (error == std::errc() && equals != end && *equals == '=') {
    const auto [next, wrong] = std::from_chars(equals + 1, end, bias.bias);
    if (wrong == std::errc() && next == end && !std::isnan(bias.bias)) return bias;
  }
  fail(ErrorCode::invalid_argument, "--logit-bias", "a token and a number",
       "such as 42=-1.5, or 42=-inf for a token that is never written", text);
}

void declare_penalties(CLI::App& command, SamplingArguments& a) {
  SamplingOptions& s = a.options.sampling;
  command
      .add_option("--repetition-penalty", s.repetition_penalty,
                  "above 1: tokens that were there become less probable")
      ->capture_default_str();
  command
      .add_option("--presence-penalty", s.presence_penalty,
                  "taken from the scores of tokens that were written")
      ->capture_default_str();
  command
      .add_option("--frequency-penalty", s.frequency_penalty,
                  "the same, as often as each was written")
      ->capture_default_str();
  command
      .add_option("--logit-bias", a.biases,
                  "TOKEN=NUMBER: added to the score of a token, by its id; -inf: never; may be "
                  "given several times")
      ->type_name("TOKEN=NUMBER")
      ->allow_extra_args(false);
}

}  // namespace

void declare_sampling(CLI::App& command, SamplingArguments& a) {
  SamplingOptions& s = a.options.sampling;
  command.add_option("--tokens", a.options.tokens,
                     "at most so many more; absent: 256, or what fits the context");
  command.add_option("--temperature", s.temperature, "below 1 surer, above 1 wilder; 0: greedy")
      ->capture_default_str();
  command.add_option("--top-k", s.top_k, "draw from the k most probable tokens; 0: from all")
      ->capture_default_str();
  command.add_option("--top-p", s.top_p, "draw from the most probable tokens that make up p")
      ->capture_default_str();
  command
      .add_option("--min-p", s.min_p, "draw from tokens at least p times as probable as the best")
      ->capture_default_str();
  declare_penalties(command, a);
  command
      .add_option("--seed", a.seed,
                  "the same seed gives the same text; absent: a new one each time, which is told")
      ->check(whole_seed, "0 to 2^64 - 1");
  command.add_option("--stop", a.options.stop, "end before this text; may be given several times")
      ->allow_extra_args(false);
  command.add_flag("--no-defaults", a.no_defaults,
                   "leave out what the model's generation_config.json asks for");
}

std::vector<std::string> drawing_options() {
  return {"--temperature",
          "--top-k",
          "--top-p",
          "--min-p",
          "--seed",
          "--repetition-penalty",
          "--presence-penalty",
          "--stop",
          "--frequency-penalty",
          "--logit-bias"};
}

GenerationOptions sampling_of(const CLI::App& command, const SamplingArguments& a,
                              const LanguageModel& model) {
  GenerationOptions options = a.options;
  for (const std::string& text : a.biases) options.sampling.logit_bias.push_back(parse_bias(text));
  options.sampling.seed = a.seed.value_or(std::random_device{}());
  if (a.no_defaults) return options;
  const GenerationOptions theirs = model.recommended(), usual;
  std::string told;
  const auto take = [&](const char* name, auto& option, const auto& wanted, const auto& otherwise) {
    if (command.count(name) > 0 || wanted == otherwise) return;
    option = wanted;
    told += fmt::format("{}{} {}", told.empty() ? "" : ", ", name, wanted);
  };
  SamplingOptions& s = options.sampling;
  const SamplingOptions &t = theirs.sampling, &u = usual.sampling;
  take("--temperature", s.temperature, t.temperature, u.temperature);
  take("--top-k", s.top_k, t.top_k, u.top_k);
  take("--top-p", s.top_p, t.top_p, u.top_p);
  take("--min-p", s.min_p, t.min_p, u.min_p);
  take("--repetition-penalty", s.repetition_penalty, t.repetition_penalty, u.repetition_penalty);
  if (theirs.tokens && !options.tokens) {
    options.tokens = theirs.tokens;
    told += fmt::format("{}--tokens {}", told.empty() ? "" : ", ", *theirs.tokens);
  }
  if (!told.empty()) tell("{}\n", tr("as generation_config.json has it: {}", told));
  return options;
}

void ToldSeed::tell_once() {
  if (tell_) tell("{}\n", tr("seed {}", seed_));
  tell_ = false;
}

}  // namespace heddle::cli
