#include "generate/decode/generate.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/parallel.h"
#include "generate/decode/context.h"
#include "generate/decode/reader.h"
#include "generate/decode/sampler.h"
#include "generate/decode/text_stream.h"
#include "heddle/error.h"
#include "heddle/tape.h"
#include "ops/copy/copy.h"

namespace heddle::generate {

namespace {

constexpr std::string_view kGenerate = "generate";
constexpr std::int64_t kSamplers = 16;  // at most; each has room for the scores of a vocabulary

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void check_range(std::string_view option, std::int64_t value, std::int64_t most) {
  if (value < 1 || value > most)
    fail(ErrorCode::invalid_argument, kGenerate, "option " + std::string(option),
         "1 to " + std::to_string(most), std::to_string(value));
}

// A sequence that is still being written.
struct Writer {
  std::int64_t sample = 0;
  std::vector<std::int32_t> sequence;  // the prompt and what was written
  std::optional<TextStream> stream;
};

class Loop {
 public:
  Loop(const GenerationOptions& options, const Decoding& decoding, std::int64_t tokens,
       const TextSink& sink)
      : options_(options),
        decoding_(decoding),
        tokens_(tokens),
        sink_(sink),
        samplers_(static_cast<std::size_t>(std::min(options.samples, kSamplers)),
                  Sampler(options.sampling)) {
    result_.samples.resize(static_cast<std::size_t>(options.samples));
  }

  void start(std::span<const std::int32_t> prompt) {
    result_.prompt_tokens = static_cast<std::int64_t>(prompt.size());
    for (std::int64_t i = 0; i < options_.samples; ++i) {
      Writer writer;
      writer.sample = i;
      writer.sequence.assign(prompt.begin(), prompt.end());
      if (decoding_.tokenizer != nullptr)
        writer.stream.emplace(*decoding_.tokenizer, options_.stop, prompt);
      writers_.push_back(std::move(writer));
    }
  }

  Generation run(Reader& reader) {
    const auto begin = Clock::now();
    const std::span<const std::int32_t> prompt = writers_[0].sequence;
    Tensor logits = reader.next({&prompt, 1});  // the same for all
    result_.prompt_seconds = seconds_since(begin);
    result_.reused_tokens = reader.reused();
    const auto decode = Clock::now();
    while (true) {
      if (!logits.defined() || (options_.cancelled && options_.cancelled())) {
        for (Writer& writer : writers_) finish(writer, Finish::cancelled);
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
  std::vector<std::span<const std::int32_t>> sequences() const {
    std::vector<std::span<const std::int32_t>> all;
    all.reserve(writers_.size());
    for (const Writer& w : writers_) all.emplace_back(w.sequence);
    return all;
  }

  std::size_t prompt() const { return static_cast<std::size_t>(result_.prompt_tokens); }

  // Draws a token for each; the rows of those that go on. One row of scores is everyone's.
  std::vector<std::int64_t> write(const Tensor& logits) {
    const bool shared = logits.size(0) == 1;
    const Tensor here = of_known_tokens(logits, decoding_.tokenizer).to(Device::cpu);
    const auto vocabulary = static_cast<std::size_t>(here.size(1));
    const float* scores = here.data<float>();
    const std::vector<std::int32_t> tokens = drawn([&](std::size_t i) {
      return std::span(scores + (shared ? 0 : i) * vocabulary, vocabulary);
    });
    std::vector<std::int64_t> rows;
    std::vector<Writer> going;
    for (std::size_t i = 0; i < writers_.size(); ++i) {
      const std::size_t row = shared ? 0 : i;
      if (!write_one(writers_[i], tokens[i])) continue;
      rows.push_back(static_cast<std::int64_t>(row));
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
        for (std::size_t i = own; i < writers_.size(); i += samplers_.size()) {
          const Writer& writer = writers_[i];
          const DrawPlace place{static_cast<std::int64_t>(writer.sequence.size()),
                                static_cast<std::uint32_t>(writer.sample)};
          tokens[i] = samplers_[own].draw(scores(i), {writer.sequence, prompt()}, place);
        }
      } catch (...) {
        failed[own] = std::current_exception();
      }
    });
    for (const std::exception_ptr& e : failed)
      if (e) std::rethrow_exception(e);
    return tokens;
  }

  // False when the text is complete.
  bool write_one(Writer& writer, std::int32_t token) {
    Sample& sample = result_.samples[static_cast<std::size_t>(writer.sample)];
    if (std::ranges::find(decoding_.ends, token) != decoding_.ends.end())
      return finish(writer, Finish::end);
    writer.sequence.push_back(token);
    sample.tokens.push_back(token);
    if (writer.stream) {
      show(writer.sample, writer.stream->add(token));
      if (writer.stream->stopped()) return finish(writer, Finish::stop);
    }
    const bool all = static_cast<std::int64_t>(sample.tokens.size()) == tokens_;
    return all ? finish(writer, Finish::length) : true;
  }

  bool finish(Writer& writer, Finish how) {
    Sample& sample = result_.samples[static_cast<std::size_t>(writer.sample)];
    sample.finish = how;
    if (writer.stream) {
      show(writer.sample, writer.stream->finish());
      // Held-back text may contain a stop string that only the end of the bytes made certain.
      if (writer.stream->stopped()) sample.finish = Finish::stop;
      sample.text = writer.stream->text();
    }
    return false;
  }

  void show(std::int64_t sample, const std::string& piece) const {
    if (sink_ && !piece.empty()) sink_(sample, piece);
  }

  const GenerationOptions& options_;
  const Decoding& decoding_;
  std::int64_t tokens_;
  const TextSink& sink_;
  std::vector<Sampler> samplers_;
  std::vector<Writer> writers_;
  Generation result_;
};

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
  check_prompt(model, prompt);
  const auto length = static_cast<std::int64_t>(prompt.size());
  if (options.tokens) check_range("tokens", *options.tokens, kMostTokens);
  check_range("samples", options.samples, kMostSamples);
  if (decoding.tokenizer == nullptr && !options.stop.empty())
    fail(ErrorCode::invalid_argument, kGenerate, "option stop", "a tokenizer", "none");
  const std::int64_t tokens = options.tokens.value_or(
      options.slide ? kDefaultTokens : tokens_that_fit(model.config(), length, kDefaultTokens));
  const Window window = plan_window(model.config(), length, tokens, options.slide);
  const NoGrad no_grad;
  Loop loop(options, decoding, tokens, sink);
  loop.start(prompt);
  const bool remembers = decoding.before != nullptr && options.cache;
  Reader reader(model,
                {.cached = options.cache,
                 .window = window,
                 .positions = remembers ? std::max(length + tokens, model.config().sizes.context)
                                        : length + tokens,
                 .precision = decoding.precision,
                 .before = remembers ? decoding.before : nullptr,
                 .cancelled = options.cancelled});
  Generation result = loop.run(reader);
  reader.remember();
  return result;
}

}  // namespace heddle::generate
