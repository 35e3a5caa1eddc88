#include "generate/decode/generate.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/parallel.h"
#include "generate/decode/clock.h"
#include "generate/decode/context.h"
#include "generate/decode/prompt.h"
#include "generate/decode/reader.h"
#include "generate/decode/sampling/sampler.h"
#include "generate/decode/together.h"
#include "generate/decode/writer.h"
#include "heddle/error.h"
#include "heddle/tape.h"

namespace heddle::generate {

namespace {

constexpr std::string_view kGenerate = "generate";
constexpr std::int64_t kSamplers = 16;  // at most; each has room for the scores of a vocabulary

void check_range(std::string_view option, std::int64_t value, std::int64_t most) {
  if (value < 1 || value > most)
    fail(ErrorCode::invalid_argument, kGenerate, "option " + std::string(option),
         "1 to " + std::to_string(most), std::to_string(value));
}

// Samples of one prompt, side by side: they are equally long, and the model reads the prompt once.
class Samples {
 public:
  Samples(const GenerationOptions& options, const Decoding& decoding, std::int64_t tokens,
          const TextSink& sink)
      : options_(options),
        decoding_(decoding),
        tokens_(tokens),
        sink_(sink),
        samplers_(static_cast<std::size_t>(std::min(options.samples, kSamplers)),
                  Sampler(options.sampling)) {
    result_.samples.resize(static_cast<std::size_t>(options.samples));
  }

  Generation run(Reader& reader, std::span<const std::int32_t> prompt) {
    start(prompt);
    const auto begin = Clock::now();
    Tensor logits = reader.next({&prompt, 1});  // the same for all
    result_.prompt_seconds = seconds_since(begin);
    const auto decode = Clock::now();
    while (true) {
      if (!logits.defined() || (options_.cancelled && options_.cancelled())) {
        for (Writer& writer : writers_) {
          writer.finish(Finish::cancelled, sink_);
          keep(writer);
        }
        break;
      }
      const std::vector<std::int64_t> rows = write(logits);
      if (writers_.empty()) break;
      // Rows keep their order, so as many as before are the same as before.
      if (std::ssize(rows) != logits.size(0)) reader.reorder(rows);
      logits = reader.next(sequences());
    }
    result_.decode_seconds = seconds_since(decode);
    return std::move(result_);
  }

 private:
  void start(std::span<const std::int32_t> prompt) {
    result_.prompt_tokens = std::ssize(prompt);
    writers_.reserve(static_cast<std::size_t>(options_.samples));
    for (std::int64_t i = 0; i < options_.samples; ++i)
      writers_.emplace_back(options_, decoding_, prompt,
                            WriterPlace{i, static_cast<std::uint32_t>(i), tokens_});
  }

  std::vector<std::span<const std::int32_t>> sequences() const {
    std::vector<std::span<const std::int32_t>> all;
    all.reserve(writers_.size());
    for (const Writer& w : writers_) all.push_back(w.sequence());
    return all;
  }

  // Draws a token for each; the rows of those that go on. One row of scores is everyone's.
  std::vector<std::int64_t> write(const Tensor& logits) {
    const bool shared = logits.size(0) == 1;
    const HostScores scores(logits, decoding_.tokenizer);
    const std::vector<std::int32_t> tokens =
        drawn([&](std::size_t i) { return scores.row(shared ? 0 : static_cast<std::int64_t>(i)); });
    std::vector<std::int64_t> rows;
    std::vector<Writer> going;
    for (std::size_t i = 0; i < writers_.size(); ++i) {
      if (!writers_[i].add(tokens[i], sink_)) {
        keep(writers_[i]);
        continue;
      }
      rows.push_back(shared ? 0 : static_cast<std::int64_t>(i));
      going.push_back(std::move(writers_[i]));
    }
    writers_ = std::move(going);
    return rows;
  }

  // A token for each writer, from scores(i). Draws do not know of each other, and take longer than
  // a GPU's step where there are many: each sampler has its share, on whichever thread.
  template <class Scores>
  std::vector<std::int32_t> drawn(const Scores& scores) {
    std::vector<std::int32_t> tokens(writers_.size());
    std::vector<std::exception_ptr> failed(samplers_.size());
    parallel_chunks(static_cast<std::int64_t>(samplers_.size()), [&](std::int64_t chunk) {
      const auto own = static_cast<std::size_t>(chunk);
      try {
        for (std::size_t i = own; i < writers_.size(); i += samplers_.size())
          tokens[i] = writers_[i].draw(scores(i), samplers_[own]);
      } catch (...) {
        failed[own] = std::current_exception();
      }
    });
    for (const std::exception_ptr& e : failed)
      if (e) std::rethrow_exception(e);
    return tokens;
  }

  void keep(Writer& writer) {
    result_.samples[static_cast<std::size_t>(writer.place().number)] = writer.take();
  }

  const GenerationOptions& options_;
  const Decoding& decoding_;
  std::int64_t tokens_;
  const TextSink& sink_;
  std::vector<Sampler> samplers_;
  std::vector<Writer> writers_;
  Generation result_;
};

// Whether every text is a sequence of its own that only grows: these are written together.
bool grows(const GenerationOptions& options) {
  return options.samples == 1 && options.cache && !options.slide;
}

void check_options(const GenerationOptions& options, const Decoding& decoding) {
  if (options.tokens) check_range("tokens", *options.tokens, kMostTokens);
  check_range("samples", options.samples, kMostSamples);
  if (options.lookup != 0) check_range("lookup", options.lookup, kMostLookup);
  if (options.lookup > 0 && !grows(options))
    fail(ErrorCode::invalid_argument, kGenerate, "option lookup",
         "one sample, with a cache and without sliding",
         options.samples > 1 ? "several samples"
         : options.slide     ? "sliding"
                             : "no cache");
  if (decoding.tokenizer == nullptr && !options.stop.empty())
    fail(ErrorCode::invalid_argument, kGenerate, "option stop", "a tokenizer", "none");
}

// A text that follows the prompt, as long as asked for or as fits.
std::int64_t tokens_of(const model::Model& model, std::span<const std::int32_t> prompt,
                       const GenerationOptions& options) {
  return options.tokens.value_or(
      options.slide ? kDefaultTokens
                    : tokens_that_fit(model.config(), std::ssize(prompt), kDefaultTokens));
}

TextRequest request_of(const model::Model& model, std::span<const std::int32_t> prompt,
                       const GenerationOptions& options, const Decoding& decoding) {
  check_prompt(model, prompt);
  if (options.lookup > 0 && model.config().recurrent())
    fail(ErrorCode::invalid_argument, kGenerate, "option lookup",
         "a model that can take back what it has read", model::to_string(model.config().kind));
  if (options.lookup > 0 && model.config().attention.prefix)
    fail(ErrorCode::invalid_argument, kGenerate, "option lookup",
         "a model that reads several tokens at once behind its prompt", "attention.prefix");
  const std::int64_t tokens = tokens_of(model, prompt, options);
  plan_window(model.config(), std::ssize(prompt), tokens, false);  // refuses what does not fit
  const std::int64_t length = std::ssize(prompt) + tokens;
  const bool longer = decoding.before != nullptr;  // the next request will be
  return {prompt, tokens, longer ? std::max(length, model.config().sizes.context) : length};
}

Generation generate_samples(const model::Model& model, std::span<const std::int32_t> prompt,
                            const GenerationOptions& options, const Decoding& decoding,
                            const TextSink& sink) {
  check_prompt(model, prompt);
  const std::int64_t tokens = tokens_of(model, prompt, options);
  const Window window = plan_window(model.config(), std::ssize(prompt), tokens, options.slide);
  Samples samples(options, decoding, tokens, sink);
  Reader reader(model, {.cached = options.cache,
                        .window = window,
                        .positions = std::ssize(prompt) + tokens,
                        .precision = decoding.precision,
                        .cancelled = options.cancelled});
  return samples.run(reader, prompt);
}

}  // namespace

void check_prompt(const model::Model& model, std::span<const std::int32_t> prompt) {
  const model::ModelConfig& config = model.config();
  if (config.task != model::Task::language)
    fail(ErrorCode::invalid_argument, kGenerate, "model",
         "one that writes language (task language)", model::to_string(config.task));
  if (prompt.empty())
    fail(ErrorCode::invalid_argument, kGenerate, "prompt", "one token or more", "none");
  for (const std::int32_t token : prompt)
    if (token < 0 || token >= config.sizes.vocabulary)
      fail(ErrorCode::out_of_range, kGenerate, "token of the prompt",
           "0 to " + std::to_string(config.sizes.vocabulary - 1), std::to_string(token));
}

Generation generate(const model::Model& model, std::span<const std::int32_t> prompt,
                    const GenerationOptions& options, const Decoding& decoding,
                    const TextSink& sink) {
  check_options(options, decoding);
  const NoGrad no_grad;
  if (!grows(options)) return generate_samples(model, prompt, options, decoding, sink);
  const TextRequest request = request_of(model, prompt, options, decoding);
  return std::move(Together(model, options, decoding, {1, sink, {}}).run({&request, 1}).front());
}

std::vector<Generation> generate_each(const model::Model& model,
                                      std::span<const std::span<const std::int32_t>> prompts,
                                      const GenerationOptions& options, std::int64_t batch,
                                      const Decoding& decoding, const TextDone& done) {
  check_options(options, decoding);
  check_range("batch", batch, kMostSamples);
  const NoGrad no_grad;
  std::vector<Generation> all;
  all.reserve(prompts.size());
  if (!grows(options)) {
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      all.push_back(numbering_prompt(
          i, [&] { return generate_samples(model, prompts[i], options, decoding, {}); }));
      if (done) done(all.size() - 1, all.back());
    }
    return all;
  }
  std::vector<TextRequest> requests;
  requests.reserve(prompts.size());
  for (std::size_t i = 0; i < prompts.size(); ++i)
    requests.push_back(
        numbering_prompt(i, [&] { return request_of(model, prompts[i], options, decoding); }));
  return Together(model, options, decoding, {batch, {}, done}).run(requests);
}

}  // namespace heddle::generate
