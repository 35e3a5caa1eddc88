#include "heddle/language_model.h"

#include <utility>

#include "base/stopwatch.h"
#include "generate/decode/beam/beam.h"
#include "generate/decode/context.h"
#include "generate/decode/decoding.h"
#include "generate/decode/generate.h"
#include "generate/decode/prompt.h"
#include "generate/generation_config.h"
#include "generate/scores.h"
#include "heddle/error.h"
#include "run/load_run.h"

namespace heddle {

namespace {

constexpr const char* kWhere = "language model";

const text::Tokenizer& tokenizer_of(const TrainedModel& model) {
  return run::loaded(model).codec->source();
}

std::vector<std::int32_t> read_prompt(const TrainedModel& model, std::string_view prompt) {
  return generate::prompt_tokens(*run::loaded(model).codec, prompt, "prompt");
}

}  // namespace

LanguageModel::LanguageModel(const std::string& directory, DType precision, Device device)
    : LanguageModel(TrainedModel(directory, precision, device)) {}

LanguageModel::LanguageModel(TrainedModel model) : model_(std::move(model)) {
  run::require_task(model_, model::Task::language);
}

Generation LanguageModel::generate(std::string_view prompt, const GenerationOptions& options,
                                   const TextSink& sink) const {
  return generate(read_prompt(model_, prompt), options, sink);
}

Generation LanguageModel::generate(std::span<const std::int32_t> prompt,
                                   const GenerationOptions& options, const TextSink& sink) const {
  return generate::generate(model_.network(), prompt, options, generate::decoding_of(model_), sink);
}

std::vector<Generation> LanguageModel::generate_all(std::span<const std::string> prompts,
                                                    const GenerationOptions& options,
                                                    std::int64_t batch,
                                                    const TextDone& done) const {
  std::vector<std::vector<std::int32_t>> tokens;
  tokens.reserve(prompts.size());
  for (std::size_t i = 0; i < prompts.size(); ++i)
    tokens.push_back(
        generate::numbering_prompt(i, [&] { return read_prompt(model_, prompts[i]); }));
  const std::vector<std::span<const std::int32_t>> all(tokens.begin(), tokens.end());
  return generate::generate_each(model_.network(), all, options, batch,
                                 generate::decoding_of(model_), done);
}

GenerationOptions LanguageModel::recommended() const {
  return generate::read_generation_config(model_.directory());
}

SearchResult LanguageModel::search(std::string_view prompt, const BeamOptions& options,
                                   std::optional<std::int64_t> tokens) const {
  const std::vector<std::int32_t> read = read_prompt(model_, prompt);
  SearchResult result;
  result.prompt_tokens = static_cast<std::int64_t>(read.size());
  const std::int64_t most = tokens.value_or(generate::tokens_that_fit(
      model_.network().config(), result.prompt_tokens, generate::kDefaultTokens));
  const Stopwatch stopwatch;
  result.best =
      generate::beam_continue(model_.network(), read, most, options, generate::decoding_of(model_));
  result.seconds = stopwatch.seconds();
  return result;
}

Tensor LanguageModel::logits(std::span<const std::int32_t> tokens) const {
  const model::Model& network = model_.network();
  generate::check_prompt(network, tokens);
  const auto count = static_cast<std::int64_t>(tokens.size());
  const auto limit = generate::position_limit(network.config());
  if (limit && count > *limit)
    fail(ErrorCode::out_of_range, kWhere, "tokens",
         "at most " + std::to_string(*limit) + ", the positions the model has learned",
         std::to_string(count));
  generate::ScoreRequest request;
  request.tokens = tokens;
  request.precision = model_.precision();
  return generate::scores(network, request, kWhere);
}

std::vector<std::int32_t> LanguageModel::encode(std::string_view text) const {
  return run::loaded(model_).codec->encode_source(text);
}

std::string LanguageModel::decode(std::span<const std::int32_t> tokens) const {
  return tokenizer_of(model_).decode(tokens);
}

std::int64_t LanguageModel::vocabulary() const {
  return model_.network().config().sizes.vocabulary;
}

std::int64_t LanguageModel::context() const { return model_.network().config().sizes.context; }

}  // namespace heddle
