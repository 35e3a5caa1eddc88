#include "heddle/embedder.h"

#include <algorithm>
#include <utility>

#include "generate/tasks/embed.h"
#include "heddle/error.h"
#include "ops/copy/copy.h"
#include "pretrained/beside/sentence.h"
#include "run/load_run.h"

namespace heddle {

namespace {

const data::Codec& embedder_codec(const TrainedModel& model) { return *run::loaded(model).codec; }

// Which of the model's vectors is that of its class token.
model::Pooling class_pooling(const TrainedModel& model) {
  if (model.network().config().has_class_token()) return model::Pooling::class_token;
  if (embedder_codec(model).begins_with_token()) return model::Pooling::first_token;
  fail(ErrorCode::invalid_argument, model.directory(), "option pool",
       "mean: this model has no class token", to_string(EmbeddingPool::class_token));
}

}  // namespace

std::string_view to_string(EmbeddingPool pool) {
  return pool == EmbeddingPool::mean ? "mean" : "class";
}

Embedder::Embedder(const std::string& directory, DType precision, Device device)
    : Embedder(TrainedModel(directory, precision, device)) {}

Embedder::Embedder(TrainedModel model) : model_(std::move(model)) {
  const model::ModelConfig& config = model_.network().config();
  if (config.kind != model::Kind::encoder && config.kind != model::Kind::vit)
    fail(ErrorCode::invalid_argument, model_.directory(), "kind of the model",
         "encoder or vit, which give vectors of texts and images", model::to_string(config.kind));
  const auto settings = pretrained::read_sentence_settings(model_.directory());
  if (settings.pooling)
    pool_ = *settings.pooling == model::Pooling::mean ? EmbeddingPool::mean
                                                      : EmbeddingPool::class_token;
  else if (config.has_class_token())
    pool_ = EmbeddingPool::class_token;
  normalise_ = settings.normalise;
  if (reads_images()) return;
  const std::int64_t most = embedder_codec(model_).max_tokens();
  longest_ = std::min(settings.longest.value_or(most), most);
}

Tensor Embedder::embed(const Texts& texts, const EmbeddingOptions& options) const {
  if (reads_images())
    fail(ErrorCode::invalid_argument, "embed", "model", "one of texts", "one of images");
  generate::EmbedRequest request;
  if (options.pool.value_or(pool_) == EmbeddingPool::class_token)
    request.pooling = class_pooling(model_);
  request.normalise = options.normalise.value_or(normalise_);
  request.longest = longest_;
  request.batch = options.batch;
  return generate::embed_texts(model_.network(), embedder_codec(model_), texts.all(), request,
                               model_.precision());
}

std::vector<float> Embedder::embed(std::string_view text, const EmbeddingOptions& options) const {
  return ops::cast(embed(Texts{text}, options), DType::f32).to_vector<float>();
}

bool Embedder::reads_images() const { return embedder_codec(model_).image().has_value(); }

Tensor Embedder::embed(std::span<const NamedImage> images, const EmbeddingOptions& options) const {
  if (!reads_images())
    fail(ErrorCode::invalid_argument, "embed", "model", "one of images", "one of texts");
  generate::EmbedRequest request;
  if (options.pool.value_or(pool_) == EmbeddingPool::class_token)
    request.pooling = class_pooling(model_);
  request.normalise = options.normalise.value_or(normalise_);
  request.batch = options.batch;
  return generate::embed_images(model_.network(), embedder_codec(model_), images, request,
                                model_.precision());
}

std::int64_t Embedder::width() const { return model_.network().config().width; }

}  // namespace heddle
