#include "generate/inspect_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string_view>
#include <utility>

#include "generate/decode/context.h"
#include "generate/scores.h"
#include "generate/tasks/image_size.h"
#include "generate/tasks/texts.h"
#include "generate/tasks/translate.h"
#include "heddle/error.h"
#include "heddle/tagger.h"
#include "heddle/tape.h"
#include "language/language.h"
#include "model/prompt.h"
#include "nn/finite.h"
#include "ops/copy/copy.h"
#include "ops/softmax/softmax.h"
#include "run/load_run.h"

namespace heddle::generate {

namespace {

constexpr std::string_view kInspect = "inspect";

using model::Task;
using Tokens = std::vector<std::int32_t>;

struct Work {
  const model::Model& model;
  const data::Codec& codec;
  const InspectInput& input;
  const InspectOptions& options;
};

Tensor row(const Tokens& tokens) {
  return Tensor::from<std::int32_t>({1, static_cast<std::int64_t>(tokens.size())}, tokens);
}

std::vector<std::string> shown(const text::Tokenizer& tokenizer, const Tokens& tokens) {
  std::vector<std::string> all;
  all.reserve(tokens.size());
  for (const std::int32_t id : tokens) all.push_back(tokenizer.token(id));
  return all;
}

// Rethrows errors of body under the name of the input's field.
template <class Body>
auto for_field(std::string_view field, const Body& body) {
  try {
    return body();
  } catch (const Error& e) {
    fail(e.code(), field, e.problem(), e.expected(), e.got());
  }
}

void check_length(const Work& w, std::string_view field, const Tokens& tokens, Inspection& result) {
  const auto count = static_cast<std::int64_t>(tokens.size());
  const auto limit = position_limit(w.model.config());
  if (limit && count > *limit)
    fail(ErrorCode::out_of_range, field, "tokens",
         "at most " + std::to_string(*limit) + ", the positions the model has learned",
         std::to_string(count));
  const std::int64_t learned = w.model.config().sizes.context;
  if (learned > 0 && count > learned) result.learned = learned;
}

// White space separates the words of a tagger.
Tokens tagged_tokens(const data::Codec& codec, std::string_view text) {
  const Words words = words_of(text);
  return words.empty() ? Tokens() : codec.encode_words(words).tokens;
}

Tokens read_prompt(const Work& w, Inspection& result) {
  if (w.input.image.defined())
    fail(ErrorCode::invalid_argument, "image", "the model reads text", "a prompt",
         w.input.image_name);
  if (!w.input.prompt || is_blank(*w.input.prompt))
    fail(ErrorCode::invalid_argument, "prompt", "the model reads text", "a prompt",
         w.input.prompt ? "an empty text" : "none");
  const Tokens tokens = for_field("prompt", [&] {
    return w.codec.task() == Task::tag ? tagged_tokens(w.codec, *w.input.prompt)
                                       : w.codec.encode_source(*w.input.prompt);
  });
  // White space that is none in ASCII: words have nothing in it.
  if (tokens.empty())
    fail(ErrorCode::invalid_argument, "prompt", "tokens of the text", "one or more", "none");
  check_length(w, "prompt", tokens, result);
  result.source = shown(w.codec.source(), tokens);
  if (w.model.config().has_class_token()) result.source.insert(result.source.begin(), "[class]");
  return tokens;
}

// The translation's tokens without begin and end: the ones given, or the model's own.
Tokens read_target(const Work& w, Inspection& result) {
  if (w.input.target)
    return for_field("target", [&] { return w.codec.encode_target(*w.input.target); });
  TranslationOptions options;
  options.beam = w.options.beam;
  const std::array<std::string_view, 1> texts = {*w.input.prompt};
  const auto all = for_field(
      "prompt", [&] { return translate(w.model, w.codec, texts, options, w.options.precision); });
  result.answer = all[0].text;
  return all[0].best.empty() ? Tokens() : all[0].best[0].tokens;
}

void add_target(const Work& w, model::Batch& batch, Inspection& result) {
  const Tokens tokens = read_target(w, result);
  Tokens read = {w.codec.begin()}, written = tokens;
  read.insert(read.end(), tokens.begin(), tokens.end());
  written.push_back(w.codec.end());
  check_length(w, "target", read, result);
  result.target = shown(w.codec.target(), read);
  result.written = shown(w.codec.target(), written);
  batch.target_tokens = row(read);
  batch.targets = row(written);
  batch.counted = static_cast<std::int64_t>(written.size());
}

model::Batch text_batch(const Work& w, Inspection& result) {
  const Tokens tokens = read_prompt(w, result);
  const model::ModelConfig& config = w.model.config();
  model::Batch batch =
      model::prompted(config, row(tokens), static_cast<std::int64_t>(tokens.size()));
  const Task task = config.task;
  if (task == Task::translate) {
    add_target(w, batch, result);
  } else if (w.input.target) {
    fail(ErrorCode::invalid_argument, "target", "model", "one that translates",
         model::to_string(task));
  }
  // As generation reads it: with attention.prefix the tokens all see each other, so that none is
  // predicted.
  if (task == Task::language && !batch.prefix_lengths.defined()) {
    Tokens next(tokens.begin() + 1, tokens.end());
    next.push_back(model::kIgnore);
    batch.targets = row(next);
    batch.counted = static_cast<std::int64_t>(tokens.size()) - 1;
  }
  return batch;
}

model::Batch image_batch(const Work& w, Inspection& result) {
  if (w.input.prompt || w.input.target)
    fail(ErrorCode::invalid_argument, w.input.prompt ? "prompt" : "target",
         "the model looks at images", "an image", "a text");
  if (!w.input.image.defined())
    fail(ErrorCode::invalid_argument, "image", "the model looks at images", "an image", "none");
  if (w.codec.image()) check_size({w.input.image_name, w.input.image}, *w.codec.image());
  const model::ModelConfig& c = w.model.config();
  const model::Batch batch = for_field(
      w.input.image_name, [&] { return w.codec.batch_of_images(std::span(&w.input.image, 1)); });
  const auto& facts = w.codec.image();
  result.image = facts && facts->fit ? data::fitted(*facts->fit, w.input.image) : w.input.image;
  result.image_name = w.input.image_name;
  result.grid = {c.sizes.height / c.patch, c.sizes.width / c.patch, c.tokens_before(),
                 c.has_class_token()};
  if (c.has_class_token()) result.source.emplace_back("[class]");
  for (std::int64_t i = 0; i < c.extra_tokens; ++i)
    result.source.push_back("[extra " + std::to_string(i + 1) + "]");
  for (std::int64_t y = 0; y < result.grid->rows; ++y)
    for (std::int64_t x = 0; x < result.grid->columns; ++x)
      result.source.push_back(tr("row {}, column {}", y + 1, x + 1));
  return batch;
}

std::string best_label(const data::Codec& codec, const Tensor& logits) {
  const auto p = ops::softmax(ops::cast(logits, DType::f32)).to_vector<float>();
  const auto best = std::max_element(p.begin(), p.end());
  std::array<char, 32> share{};
  std::snprintf(share.data(), share.size(), " (%.1f %%)", 100.0 * static_cast<double>(*best));
  return codec.label(best - p.begin()) + share.data();
}

// Error for a model whose numbers are none: what a map is made of. The sum of a row has met every
// score of it.
void check_maps(const model::AttentionMaps& maps) {
  for (std::size_t i = 0; i < maps.layers().size(); ++i) {
    const nn::AttentionTrace& trace = maps.trace(i);
    const std::string layer = " of layer " + maps.layers()[i].name;
    check_finite(trace.q, kInspect, "queries" + layer);
    check_finite(trace.k, kInspect, "keys" + layer);
    check_finite(trace.row_sums, kInspect, "sums of the attention's rows" + layer);
  }
}

// Scores of a large vocabulary for every token would take more memory than all maps: where the
// loss is as good, which never has them all, the loss is computed.
void run(const Work& w, model::Batch& batch, Inspection& result) {
  nn::check_parameters(w.model.parameters(), kInspect);
  const NoGrad no_grad;
  nn::Pass pass;
  pass.precision = w.options.precision;
  pass.observer = &result.maps;
  const Task task = w.model.config().task;
  if (task == Task::classify || task == Task::tag) {
    const Tensor logits = w.model.logits(batch, pass);
    check_finite(logits, kInspect, "scores of the labels");
    if (task == Task::classify) result.answer = best_label(w.codec, logits);
    return check_maps(result.maps);
  }
  if (task == Task::embed) {
    check_finite(w.model.embed(batch, model::Pooling::mean, pass), kInspect, "vector of the text");
    return check_maps(result.maps);
  }
  // Nothing to predict: masked, a prompt seen both ways, one token. Any targets show whether the
  // scores are numbers.
  const bool told = batch.counted > 0;
  if (!told) batch.targets = batch.tokens;
  const Tensor loss = w.model.loss(batch, pass, 0).task;
  check_finite(loss, kInspect, "loss of this input");
  check_maps(result.maps);
  if (told) result.loss = loss.item();
}

}  // namespace

Inspection inspect(const model::Model& model, const data::Codec& codec, const InspectInput& input,
                   const InspectOptions& options) {
  Inspection result{
      .source = {}, .target = {}, .written = {}, .maps = model::AttentionMaps(model.config())};
  const Work w{model, codec, input, options};
  model::Batch batch =
      model.config().kind == model::Kind::vit ? image_batch(w, result) : text_batch(w, result);
  run(w, batch, result);
  return result;
}

}  // namespace heddle::generate

namespace heddle {

const std::vector<std::string>& Inspection::queries(const model::AttentionLayer& layer) const {
  if (layer.cross()) return written;
  return layer.part == model::MapPart::decoder ? target : source;
}

const std::vector<std::string>& Inspection::keys(const model::AttentionLayer& layer) const {
  return layer.part == model::MapPart::decoder ? target : source;
}

Inspection inspect(const TrainedModel& model, const InspectInput& input, const BeamOptions& beam) {
  const run::LoadedRun& run = run::loaded(model);
  return generate::inspect(*run.model, *run.codec, input,
                           {.precision = model.precision(), .beam = beam});
}

}  // namespace heddle
