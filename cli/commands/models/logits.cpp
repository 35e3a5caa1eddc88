// heddle logits: a model's raw numbers, for comparing with other systems.
#include <fmt/core.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <span>

#include "command.h"
#include "generate/decode/context.h"
#include "generate/scores.h"
#include "generate/tasks/image_size.h"
#include "heddle/error.h"
#include "heddle/images.h"
#include "io/npy/npy.h"
#include "ops/copy/copy.h"
#include "run/load_run.h"
#include "with_model.h"

namespace heddle::cli::logits_command {

namespace {

using nlohmann::json;

struct Arguments {
  ModelArguments model;
  std::optional<std::string> tokens, prompt;  // one of them
  std::optional<std::int64_t> prefix;         // absent: all tokens
  std::string target, npy, image;
};

void check_tokens(const std::vector<std::int32_t>& tokens, std::int64_t vocabulary,
                  const std::optional<std::int64_t>& limit, std::string_view option) {
  for (const std::int32_t token : tokens)
    if (token >= vocabulary)
      fail(ErrorCode::out_of_range, option, "token", "0 to " + std::to_string(vocabulary - 1),
           std::to_string(token));
  if (limit && static_cast<std::int64_t>(tokens.size()) > *limit)
    fail(ErrorCode::out_of_range, option, "tokens",
         "at most " + std::to_string(*limit) + ", the positions the model has learned",
         std::to_string(tokens.size()));
}

std::vector<std::int32_t> tokens_of(const Arguments& a, const run::LoadedRun& run) {
  const model::ModelConfig& config = run.model->config();
  const std::string_view option = a.tokens ? "--tokens" : "--prompt";
  if (!a.tokens && !a.prompt)
    fail(ErrorCode::invalid_argument, "logits", "nothing is given for the model to read",
         "--prompt TEXT or --tokens IDS");
  auto tokens = a.tokens ? parse_tokens(*a.tokens, option) : run.codec->encode_source(*a.prompt);
  if (tokens.empty()) fail(ErrorCode::invalid_argument, option, "tokens", "one or more", "none");
  check_tokens(tokens, config.sizes.vocabulary, generate::position_limit(config), option);
  return tokens;
}

// The tokens that the decoder of a translating model reads; other models have none.
std::vector<std::int32_t> target_of(const Arguments& a, const run::LoadedRun& run) {
  const model::ModelConfig& config = run.model->config();
  require_translation(a.target.empty() ? "" : "--target", config.task);
  if (config.task != model::Task::translate) return {};
  if (a.target.empty()) return {run.codec->begin()};
  auto target = parse_tokens(a.target, "--target");
  check_tokens(target, config.vocabulary_of_target(), generate::position_limit(config), "--target");
  return target;
}

void check_prefix(const Arguments& a, const model::ModelConfig& config, std::size_t tokens) {
  if (!a.prefix) return;
  if (!config.attention.prefix)
    fail(ErrorCode::invalid_argument, "--prefix", "model",
         "one with attention.prefix: no other sees a prompt both ways",
         model::to_string(config.kind));
  if (*a.prefix < 0 || *a.prefix > static_cast<std::int64_t>(tokens))
    fail(ErrorCode::out_of_range, "--prefix", "tokens of the prompt",
         "0 to " + std::to_string(tokens) + ", all of them", std::to_string(*a.prefix));
}

// The input of a model of images: [1, C, H, W].
Tensor image_of(const Arguments& a, const run::LoadedRun& run) {
  if (a.tokens || a.prompt || a.image.empty())
    fail(ErrorCode::invalid_argument, "logits", "what the model reads",
         "--image FILE: it is a model of images",
         a.tokens ? "--tokens" : (a.prompt ? "--prompt" : "none"));
  const std::vector<NamedImage> images = read_images(a.image);
  if (images.size() != 1)
    fail(ErrorCode::invalid_argument, "--image", "images of the file", "one",
         std::to_string(images.size()));
  generate::check_size(images.front(), *run.codec->image());
  return run.codec->batch_of_images(std::span(&images.front().pixels, 1)).images;
}

// [tokens, vocabulary] f32 or f64; one row for a label of the whole.
Tensor logits_of(const Arguments& a, const run::LoadedRun& run) {
  if (run.model->config().task == model::Task::embed)
    fail(ErrorCode::invalid_argument, a.model.model, "has no classifier: use heddle embed",
         "a model that gives scores", "one that gives vectors");
  generate::ScoreRequest request;
  request.precision = precision_of(a.model);
  if (run.model->config().kind == model::Kind::vit) {
    if (!a.target.empty() || a.prefix)
      fail(ErrorCode::invalid_argument, a.prefix ? "--prefix" : "--target", "model",
           "one that reads tokens", model::to_string(run.model->config().kind));
    request.images = image_of(a, run);
    return generate::scores(*run.model, request, a.model.model);
  }
  if (!a.image.empty())
    fail(ErrorCode::invalid_argument, "--image", "model", "one of images",
         model::to_string(run.model->config().kind));
  const auto tokens = tokens_of(a, run), target = target_of(a, run);
  check_prefix(a, run.model->config(), tokens.size());
  request.tokens = tokens;
  request.target = target;
  request.prompt = a.prefix;
  return generate::scores(*run.model, request, a.model.model);
}

template <class T>
json rows_of(const Tensor& logits) {
  const T* values = logits.data<T>();
  json rows = json::array();
  for (std::int64_t i = 0; i < logits.size(0); ++i)
    rows.push_back(std::vector<T>(values + i * logits.size(1), values + (i + 1) * logits.size(1)));
  return rows;
}

void print_json(const Tensor& logits) {
  const json rows = logits.dtype() == DType::f64 ? rows_of<double>(logits) : rows_of<float>(logits);
  std::cout << json{{"shape", {logits.size(0), logits.size(1)}}, {"logits", rows}}.dump() << "\n";
}

// For people: the best five of each row.
void print(const Tensor& scores, const run::LoadedRun& run) {
  const Tensor logits = ops::cast(scores, DType::f32);
  const bool labels = !run.codec->labels().empty();
  const auto name = [&](std::int32_t id) {
    if (labels) return run.codec->label(id);
    // A table may have more rows than there are tokens.
    const bool known = id < run.codec->target().vocabulary();
    return known ? run.codec->target().token(id) : std::string();
  };
  const auto columns = static_cast<std::size_t>(logits.size(1));
  for (std::int64_t i = 0; i < logits.size(0); ++i) {
    const float* values = logits.data<float>() + i * logits.size(1);
    std::vector<std::int32_t> order(columns);
    std::iota(order.begin(), order.end(), 0);
    const std::size_t best = std::min<std::size_t>(5, columns);
    std::partial_sort(
        order.begin(), order.begin() + static_cast<std::ptrdiff_t>(best), order.end(),
        [&](auto x, auto y) { return values[x] != values[y] ? values[x] > values[y] : x < y; });
    fmt::print("{:5}", i);
    for (std::size_t k = 0; k < best; ++k)
      fmt::print("  {}:{} {:.4f}", order[k], name(order[k]), values[order[k]]);
    fmt::print("\n");
  }
}

void run(const Arguments& a) {
  const TrainedModel model = open_model(a.model);
  const run::LoadedRun& run = run::loaded(model);
  const Tensor logits = logits_of(a, run);
  if (!a.npy.empty()) io::write_npy(a.npy, logits);
  if (!a.npy.empty() && !a.model.as_json) return;
  if (a.npy.empty() && !a.model.as_json) return print(logits, run);
  if (a.npy.empty()) return print_json(logits);
  // The numbers are in the file.
  std::cout << json{{"shape", {logits.size(0), logits.size(1)}}, {"npy", a.npy}}.dump(
                   -1, ' ', false, json::error_handler_t::replace)
            << "\n";
}

}  // namespace

void add(CLI::App& app) {
  CLI::App* command = app.add_subcommand("logits", "raw scores of a model, row by row");
  command->footer("Example: heddle logits runs/llama-style --tokens 1,2,3 --json");
  auto a = std::make_shared<Arguments>();
  declare_model(*command, a->model, true);
  CLI::Option* tokens =
      command->add_option("--tokens", a->tokens, "what the model reads: ids, separated by commas")
          ->type_name("IDS");
  command->add_option("--prompt", a->prompt, "what the model reads: a text")->excludes(tokens);
  command
      ->add_option("--target", a->target,
                   "of a model that translates: ids that its decoder reads, begin token "
                   "included; absent: the begin token")
      ->type_name("IDS");
  command->add_option("--prefix", a->prefix,
                      "of a model with attention.prefix: so many of the tokens are its prompt; "
                      "absent: all, as in generation");
  command->add_option("--image", a->image, "what a model of images reads: a PNG or JPEG file")
      ->type_name("FILE");
  command
      ->add_option("--npy", a->npy,
                   "write float32 (with fp64 float64) [rows, scores] to this file instead")
      ->type_name("FILE");
  command->callback([a] { run(*a); });
}

}  // namespace heddle::cli::logits_command
