#include "generate/tasks/translate.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/number_text.h"
#include "generate/decode/beam/beam.h"
#include "generate/decode/context.h"
#include "generate/decode/text_stream.h"
#include "generate/tasks/buckets.h"
#include "generate/tasks/texts.h"
#include "heddle/error.h"
#include "heddle/tape.h"

namespace heddle::generate {

namespace {

constexpr std::string_view kTranslate = "translate";

void check(const model::Model& model, const TranslationOptions& o) {
  if (model.config().task != model::Task::translate)
    fail(ErrorCode::invalid_argument, kTranslate, "model", "one that translates",
         model::to_string(model.config().task));
  validate(o.beam);
  const auto require = [](bool ok, std::string_view option, std::string_view expected, double got) {
    if (!ok)
      fail(ErrorCode::invalid_argument, kTranslate, "option " + std::string(option), expected,
           number_text(got));
  };
  require(o.batch >= 1 && o.batch <= 65536, "batch", "1 to 65536", static_cast<double>(o.batch));
  require(o.longest_ratio >= 0 && o.longest_ratio <= 1000, "longest_ratio", "0 to 1000",
          o.longest_ratio);
  require(o.longest_extra >= 1 && o.longest_extra <= 1000000, "longest_extra", "1 to 1000000",
          static_cast<double>(o.longest_extra));
}

std::int64_t longest(const model::Model& model, const TranslationOptions& o, std::size_t source) {
  const auto by_source =
      static_cast<std::int64_t>(std::floor(o.longest_ratio * static_cast<double>(source))) +
      o.longest_extra;
  return std::min(by_source, position_limit(model.config()).value_or(by_source));
}

// Reads the sources and the begin token.
BeamStart start(const model::Model& model, const data::Codec& codec,
                std::span<const std::vector<std::int32_t>> sources, const TranslationOptions& o,
                const nn::Pass& pass) {
  BeamStart start;
  const data::Writing& writing = codec.writing();
  start.ends = writing.ends;
  start.never = writing.never;
  start.first = writing.first;
  start.ends_at_limit = writing.ends_at_limit;
  start.tokenizer = &codec.target();
  for (const auto& source : sources) start.longest.push_back(longest(model, o, source.size()));
  const auto count = static_cast<std::int64_t>(sources.size());
  const std::int64_t most = *std::max_element(start.longest.begin(), start.longest.end());
  start.state = model.begin(codec.batch_of(sources), count, most, pass);
  const std::vector<std::int32_t> begin(sources.size(), codec.begin());
  start.logits = model.next(*start.state, Tensor::from<std::int32_t>({count, 1}, begin), pass);
  return start;
}

}  // namespace

std::vector<Translation> translate(const model::Model& model, const data::Codec& codec,
                                   std::span<const std::string_view> texts,
                                   const TranslationOptions& options, DType precision) {
  check(model, options);
  const NoGrad no_grad;
  nn::Pass pass;
  pass.precision = precision;
  EncodedTexts encoded = encode_texts(model, codec, texts, kTranslate);
  std::vector<Translation> all(texts.size());
  std::size_t done = 0;
  // Each text becomes `beam` sequences.
  const BucketLimits limits{options.batch, std::max<std::int64_t>(1, 40960 / options.beam.beam)};
  for (const auto& bucket : buckets(encoded.lengths(), limits)) {
    std::vector<std::vector<std::int32_t>> sources;
    sources.reserve(bucket.size());
    for (const std::size_t i : bucket) sources.push_back(std::move(encoded.tokens[i]));
    auto found =
        beam_search(model, start(model, codec, sources, options, pass), options.beam, pass);
    for (std::size_t i = 0; i < bucket.size(); ++i) {
      Translation& t = all[bucket[i]];
      t.source_tokens = static_cast<std::int64_t>(sources[i].size());
      t.best = std::move(found[i]);
      for (Hypothesis& h : t.best) h.text = as_utf8(codec.decode_target(h.tokens));
      t.text = t.best.front().text;
    }
    done += bucket.size();
    if (options.progress) options.progress(done, texts.size());
  }
  return all;
}

text::Bleu translation_bleu(const model::Model& model, const data::Dataset& data, data::Split split,
                            const TranslationOptions& options, DType precision) {
  const auto pairs = data.pairs(split);
  if (pairs.empty())
    fail(ErrorCode::invalid_argument, kTranslate, "pairs of the split", "one or more", "none");
  std::vector<std::string_view> sources;
  std::vector<std::string> hypotheses, references;
  for (const data::TextPair& pair : pairs) {
    sources.push_back(pair.source);
    references.push_back(pair.target);
  }
  for (Translation& t : translate(model, data.codec(), sources, options, precision))
    hypotheses.push_back(std::move(t.text));
  return text::corpus_bleu(hypotheses, references);
}

}  // namespace heddle::generate
