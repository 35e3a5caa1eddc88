#include "heddle/language_model.h"

#include <utility>

#include "generate/decode/context.h"
#include "generate/decode/generate.h"
#include "generate/decode/prompt.h"
#include "generate/scores.h"
#include "heddle/error.h"
#include "run/load_run.h"

namespace heddle {

struct LanguageModel::Parts {
  run::LoadedRun run;
  DType precision;

  const text::Tokenizer& tokenizer() const { return run.codec->source(); }
};

namespace {

constexpr const char* kWhere = "language model";

generate::GenerateOptions options_of(const WritingOptions& w) {
  generate::GenerateOptions o;
  o.sampler = {w.temperature, w.top_k, w.top_p, w.min_p, w.repetition_penalty, w.seed};
  o.tokens = w.tokens;
  o.stop = w.stop;
  o.slide = w.slide;
  return o;
}

}  // namespace

LanguageModel::LanguageModel(const std::string& directory, DType precision, Device device) {
  if (precision != DType::f32 && precision != DType::bf16)
    fail(ErrorCode::invalid_argument, kWhere, "precision", "f32 or bf16", to_string(precision));
  auto parts = std::make_unique<Parts>(Parts{run::load_run(directory, device), precision});
  const model::Task task = parts->run.model->config().task;
  if (task != model::Task::language)
    fail(ErrorCode::invalid_argument, directory, "task of the model", "language", to_string(task));
  parts_ = std::move(parts);
}

const LanguageModel::Parts& LanguageModel::parts() const {
  if (!parts_)
    fail(ErrorCode::invalid_argument, kWhere, "was moved to another object",
         "a model that is here");
  return *parts_;
}

LanguageModel::~LanguageModel() = default;
LanguageModel::LanguageModel(LanguageModel&& other) noexcept = default;
LanguageModel& LanguageModel::operator=(LanguageModel&& other) noexcept = default;

Writing LanguageModel::write(std::string_view prompt, const WritingOptions& options,
                             const WritingSink& sink) const {
  generate::GenerateOptions o = options_of(options);
  o.precision = parts().precision;
  o.end = parts().tokenizer().end();
  generate::TextSink pieces;
  if (sink) pieces = [&sink](std::int64_t, std::string_view piece) { sink(piece); };
  generate::Generation g = generate::generate(
      *parts().run.model, generate::prompt_tokens(*parts().run.codec, prompt, "prompt"), o,
      &parts().tokenizer(), pieces);
  generate::Sample& sample = g.samples.front();
  return {std::move(sample.text), std::move(sample.tokens),
          sample.finish != generate::Finish::length};
}

Tensor LanguageModel::logits(std::span<const std::int32_t> tokens) const {
  const model::Model& model = *parts().run.model;
  generate::check_prompt(model, tokens);
  const auto count = static_cast<std::int64_t>(tokens.size());
  const auto limit = generate::position_limit(model.config());
  if (limit && count > *limit)
    fail(ErrorCode::out_of_range, kWhere, "tokens",
         "at most " + std::to_string(*limit) + ", the positions the model has learned",
         std::to_string(count));
  generate::ScoreRequest request;
  request.tokens = tokens;
  request.precision = parts().precision;
  return generate::scores(model, request, kWhere);
}

std::vector<std::int32_t> LanguageModel::encode(std::string_view text) const {
  return parts().run.codec->encode_source(text);
}

std::string LanguageModel::decode(std::span<const std::int32_t> tokens) const {
  return parts().tokenizer().decode(tokens);
}

std::int64_t LanguageModel::vocabulary() const {
  return parts().run.model->config().sizes.vocabulary;
}
std::int64_t LanguageModel::context() const { return parts().run.model->config().sizes.context; }
std::int64_t LanguageModel::parameters() const { return parts().run.model->parameters().count(); }

}  // namespace heddle
