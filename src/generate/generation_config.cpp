#include "generate/generation_config.h"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "generate/decode/decoding.h"
#include "generate/decode/sampling/sampler.h"
#include "heddle/error.h"
#include "io/files/file.h"
#include "io/json/json.h"

namespace heddle::generate {
namespace {

using io::Json;

// Ids of tokens, which have been read with the model; what the file was written by; how others
// compute; lengths of prompt and text together, where Heddle has a limit of its own.
constexpr auto kPassedOver = std::to_array<std::string_view>(
    {"bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id",
     "transformers_version", "_from_model_config", "use_cache", "cache_implementation",
     "max_length", "return_dict_in_generate", "output_scores", "output_attentions",
     "output_hidden_states", "trust_remote_code", "chat_format", "max_window_size"});

constexpr auto kRead =
    std::to_array<std::string_view>({"do_sample", "temperature", "top_k", "top_p", "min_p",
                                     "repetition_penalty", "max_new_tokens"});

// Settings of other ways to decode, at the values that leave them out.
struct Neutral {
  std::string_view key;
  double value;
};
constexpr auto kNeutral = std::to_array<Neutral>({{"num_beams", 1},
                                                  {"num_beam_groups", 1},
                                                  {"num_return_sequences", 1},
                                                  {"min_length", 0},
                                                  {"min_new_tokens", 0},
                                                  {"no_repeat_ngram_size", 0},
                                                  {"encoder_no_repeat_ngram_size", 0},
                                                  {"encoder_repetition_penalty", 1},
                                                  {"typical_p", 1},
                                                  {"epsilon_cutoff", 0},
                                                  {"eta_cutoff", 0},
                                                  {"length_penalty", 1},
                                                  {"diversity_penalty", 0},
                                                  {"guidance_scale", 1}});

bool is_neutral(const Json& value, std::string_view key) {
  if (value.is_null() || (value.is_boolean() && !value.boolean())) return true;
  const auto* const found = std::ranges::find(kNeutral, key, &Neutral::key);
  return found != kNeutral.end() && value.is_number() && value.number() == found->value;
}

void refuse_others(const Json& file) {
  for (const std::string& key : file.keys()) {
    if (std::ranges::find(kPassedOver, key) != kPassedOver.end() ||
        std::ranges::find(kRead, key) != kRead.end() || !file.has(key) ||
        is_neutral(file.at(key), key))
      continue;
    fail(ErrorCode::unsupported, file.file(), "the setting " + key + " is not supported",
         "none such; the file's settings can be left out (--no-defaults)",
         file.at(key).raw().dump());
  }
}

}  // namespace

GenerationOptions read_generation_config(const std::string& directory) {
  GenerationOptions options;
  const std::string path = directory + "/generation_config.json";
  if (!io::directory_exists(directory) || !io::file_exists(path)) return options;
  const Json file = Json::read(path);
  refuse_others(file);
  SamplingOptions& s = options.sampling;
  s.temperature = file.number_or("temperature", s.temperature);
  if (file.has("top_k"))
    s.top_k = file.at("top_k").integer(0, std::numeric_limits<std::int32_t>::max());
  s.top_p = file.number_or("top_p", s.top_p);
  s.min_p = file.number_or("min_p", s.min_p);
  s.repetition_penalty = file.number_or("repetition_penalty", s.repetition_penalty);
  if (!file.boolean_or("do_sample", true)) s.temperature = 0;
  if (file.has("max_new_tokens"))
    options.tokens = file.at("max_new_tokens").integer(1, kMostTokens);
  try {
    validate(s);
  } catch (const Error& e) {
    fail(e.code(), path, e.problem(), e.expected(), e.got());
  }
  return options;
}

}  // namespace heddle::generate
