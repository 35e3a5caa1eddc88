#include "generate/tasks/predict.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "generate/tasks/buckets.h"
#include "generate/tasks/texts.h"
#include "heddle/error.h"
#include "heddle/tape.h"
#include "ops/copy/copy.h"
#include "ops/softmax/softmax.h"

namespace heddle::generate {

namespace {

void check(const model::Model& model, model::Task task, std::string_view where,
           const PredictionOptions& options) {
  if (model.config().task != task)
    fail(ErrorCode::invalid_argument, where, "model",
         "one of task " + std::string(model::to_string(task)),
         model::to_string(model.config().task));
  if (options.batch < 1 || options.batch > 65536)
    fail(ErrorCode::invalid_argument, where, "option batch", "1 to 65536",
         std::to_string(options.batch));
}

// f32 probabilities of the logits, row by row.
std::vector<float> probabilities(const model::Model& model, const model::Batch& batch,
                                 DType precision) {
  nn::Pass pass;
  pass.precision = precision;
  const Tensor logits = model.logits(batch, pass);
  return ops::softmax(ops::cast(logits, DType::f32)).to_vector<float>();
}

Prediction predict(const data::Codec& codec, std::span<const float> row, std::string_view where) {
  Prediction p;
  p.probabilities.assign(row.begin(), row.end());
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (std::isnan(row[i]))
      fail(ErrorCode::invalid_argument, where, "scores of the labels", "numbers", "NaN");
    if (p.id >= 0 && row[i] <= row[static_cast<std::size_t>(p.id)]) continue;
    p.id = static_cast<std::int32_t>(i);
    p.probability = row[i];
  }
  p.label = codec.label(p.id);
  return p;
}

// The row `place` of a matrix with `labels` columns.
std::span<const float> row_of(const std::vector<float>& all, std::size_t place,
                              std::size_t labels) {
  return std::span(all).subspan(place * labels, labels);
}

}  // namespace

std::vector<Prediction> classify_texts(const model::Model& model, const data::Codec& codec,
                                       std::span<const std::string_view> texts,
                                       const PredictionOptions& options, DType precision) {
  constexpr std::string_view kWhere = "classify";
  check(model, model::Task::classify, kWhere, options);
  const NoGrad no_grad;
  std::vector<Prediction> all(texts.size());
  EncodedTexts encoded;
  encoded.tokens.resize(texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (is_blank(texts[i])) continue;
    data::CutText text = at_line(kWhere, i, [&] { return codec.encode_beginning(texts[i]); });
    encoded.tokens[i] = std::move(text.tokens);
    all[i].cut = text.cut;
  }
  const auto labels = static_cast<std::size_t>(model.config().sizes.classes);
  for (const auto& bucket : buckets(encoded.lengths(), {options.batch})) {
    std::vector<std::vector<std::int32_t>> sequences;
    sequences.reserve(bucket.size());
    for (const std::size_t i : bucket) sequences.push_back(std::move(encoded.tokens[i]));
    const auto p = probabilities(model, codec.batch_of(sequences), precision);
    for (std::size_t i = 0; i < bucket.size(); ++i) {
      const bool cut = all[bucket[i]].cut;
      all[bucket[i]] = predict(codec, row_of(p, i, labels), kWhere);
      all[bucket[i]].cut = cut;
    }
  }
  return all;
}

std::vector<Prediction> classify_images(const model::Model& model, const data::Codec& codec,
                                        std::span<const Tensor> images,
                                        const PredictionOptions& options, DType precision) {
  constexpr std::string_view kWhere = "classify";
  check(model, model::Task::classify, kWhere, options);
  if (!codec.image())
    fail(ErrorCode::invalid_argument, kWhere, "model", "one that classifies images",
         "one that classifies texts");
  const NoGrad no_grad;
  const auto labels = static_cast<std::size_t>(model.config().sizes.classes);
  const auto batch = static_cast<std::size_t>(options.batch);
  std::vector<Prediction> all;
  for (std::size_t begin = 0; begin < images.size(); begin += batch) {
    const std::size_t count = std::min(batch, images.size() - begin);
    const auto part = codec.batch_of_images(images.subspan(begin, count));
    const auto p = probabilities(model, part, precision);
    for (std::size_t i = 0; i < count; ++i)
      all.push_back(predict(codec, row_of(p, i, labels), kWhere));
  }
  return all;
}

std::vector<std::vector<Prediction>> tag_sentences(const model::Model& model,
                                                   const data::Codec& codec,
                                                   std::span<const Words> sentences,
                                                   const PredictionOptions& options,
                                                   DType precision) {
  constexpr std::string_view kWhere = "tag";
  check(model, model::Task::tag, kWhere, options);
  const NoGrad no_grad;
  std::vector<data::EncodedWords> encoded(sentences.size());
  std::vector<std::size_t> lengths(sentences.size());
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    if (sentences[i].empty()) continue;
    encoded[i] = at_line(kWhere, i, [&] { return codec.encode_words(sentences[i]); });
    lengths[i] = encoded[i].tokens.size();
    check_length(model, lengths[i], i, kWhere);
  }
  const auto labels = static_cast<std::size_t>(model.config().sizes.classes);
  std::vector<std::vector<Prediction>> all(sentences.size());
  for (const auto& bucket : buckets(lengths, {options.batch})) {
    std::vector<std::vector<std::int32_t>> sequences;
    sequences.reserve(bucket.size());
    for (const std::size_t i : bucket) sequences.push_back(std::move(encoded[i].tokens));
    const model::Batch batch = codec.batch_of(sequences);
    const auto p = probabilities(model, batch, precision);  // [B, T, labels]
    const auto length = static_cast<std::size_t>(batch.tokens.size(1));
    for (std::size_t i = 0; i < bucket.size(); ++i)
      for (const std::int64_t first : encoded[bucket[i]].first)
        all[bucket[i]].push_back(predict(
            codec, row_of(p, i * length + static_cast<std::size_t>(first), labels), kWhere));
  }
  return all;
}

}  // namespace heddle::generate
