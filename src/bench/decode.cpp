#include "bench/decode.h"

#include <algorithm>
#include <memory>

#include "backend/cpu/probe/probe.h"
#include "base/process_memory.h"
#include "bench/clock.h"
#include "bench/rival.h"
#include "heddle/memory.h"
#include "heddle/runtime.h"
#include "model/model.h"

namespace heddle::bench {

namespace {

constexpr std::int64_t kPrompt = 128, kWritten = 64;

class Decoding {
 public:
  Decoding(const DecoderShape& shape, DType precision)
      : shape_(shape),
        model_(model::build_model(config_of(shape, kPrompt + kWritten), {.seed = 1})),
        prompt_(random_ids({1, kPrompt}, shape.vocabulary, {1, 1, 1})) {
    pass_.precision = precision;
  }

  double read_prompt() {
    state_ = model_->begin({}, 1, kPrompt + kWritten, pass_);
    const double start = now();
    token_ = best(model_->next(*state_, prompt_, pass_));
    return now() - start;
  }

  // Seconds of one token.
  double write() {
    const double start = now();
    for (std::int64_t i = 0; i < kWritten; ++i)
      token_ = best(model_->next(*state_, Tensor::from<std::int32_t>({1, 1}, {token_}), pass_));
    return (now() - start) / static_cast<double>(kWritten);
  }

  std::int64_t parameters() const { return model_->parameters().count(); }

  // Positions are looked up, not read through; the table is, as the classifier.
  double bytes_of_token() const {
    const std::int64_t positions = (kPrompt + kWritten) * shape_.width;
    const std::int64_t cached = 2 * (kPrompt + kWritten / 2) * shape_.width * shape_.layers;
    return static_cast<double>(parameters() - positions + cached) *
           static_cast<double>(size_of(pass_.precision));
  }

 private:
  static std::int32_t best(const Tensor& logits) {
    const auto* z = logits.data<float>();
    return static_cast<std::int32_t>(std::max_element(z, z + logits.elements()) - z);
  }

  DecoderShape shape_;
  std::unique_ptr<model::Model> model_;
  Tensor prompt_;
  nn::Pass pass_;
  std::unique_ptr<model::DecodeState> state_;
  std::int32_t token_ = 0;
};

std::string request(const DecoderShape& s, const char* mode, const char* what) {
  std::string words = "decode";
  for (const std::int64_t n : {s.layers, s.heads, s.width, s.vocabulary, kPrompt, kWritten})
    words += " " + std::to_string(n);
  return words + " " + mode + " " + what + " 1";
}

// In f32 it may not round more than we do.
FastestRival fastest_rival(const DecoderShape& shape, DType precision,
                           const ModelBenchOptions& options) {
  std::vector<const char*> modes = {"fp32", "compile"};
  if (precision == DType::bf16) modes = {"fp32", "bf16", "compile-bf16"};
  FastestRival best;
  double least = 0;
  for (const char* mode : modes) {
    options.progress(std::string(shape.name) + ": PyTorch, " + mode);
    auto rival = std::make_unique<TorchRival>(options.torch, threads());
    rival->seconds(request(shape, mode, "tokens"));  // compiles, allocates
    const double seconds = rival->seconds(request(shape, mode, "tokens"));
    if (best.process && seconds >= least) continue;
    best = {std::move(rival), mode};
    least = seconds;
  }
  return best;
}

struct Rounds {
  std::vector<double> prompt, token, shares, their_prompt, their_token, ratios;
};

DecodeFigure figure_of(const Rounds& r, const FastestRival& rival) {
  const auto per_s = [](double tokens, const std::vector<double>& seconds) {
    return tokens / median(seconds);
  };
  const auto prompt = static_cast<double>(kPrompt), written = static_cast<double>(kWritten);
  DecodeFigure f;
  f.prompt_tokens_per_s = per_s(prompt, r.prompt);
  f.decode_tokens_per_s = per_s(1, r.token);
  if (!r.shares.empty()) f.share_of_bandwidth = median(r.shares);
  if (!rival.process) return f;
  const auto bytes = static_cast<std::int64_t>(rival.process->seconds("peak"));
  f.torch = DecodeFigure::Torch{rival.mode, per_s(prompt, r.their_prompt),
                                per_s(written, r.their_token), bytes};
  f.times_torch = median(r.ratios);
  return f;
}

DecodeFigure measure(const DecoderShape& shape, DType precision, const ModelBenchOptions& options) {
  const FastestRival rival =
      options.torch.empty() ? FastestRival{} : fastest_rival(shape, precision, options);
  reset_resident_peak();
  Decoding decoding(shape, precision);
  decoding.read_prompt();
  decoding.write();
  const std::int64_t peak = resident_peak();  // before the bandwidth's own arrays are there
  Rounds r;
  for (int round = 0; round < options.rounds; ++round) {
    options.progress(std::string(shape.name) + ", " + std::string(to_string(precision)) +
                     ": round " + std::to_string(round + 1));
    const std::optional<double> bandwidth = cpu::read_bandwidth(0.1);
    r.prompt.push_back(decoding.read_prompt());
    r.token.push_back(decoding.write());
    if (bandwidth) r.shares.push_back(decoding.bytes_of_token() / r.token.back() / *bandwidth);
    if (!rival.process) continue;
    r.their_prompt.push_back(rival.process->seconds(request(shape, rival.mode, "prompt")));
    r.their_token.push_back(rival.process->seconds(request(shape, rival.mode, "tokens")));
    r.ratios.push_back(r.their_token.back() / static_cast<double>(kWritten) / r.token.back());
  }
  DecodeFigure f = figure_of(r, rival);
  f.name = shape.name;
  f.precision = to_string(precision);
  f.parameters = decoding.parameters();
  f.bytes_per_token = decoding.bytes_of_token();
  f.peak_bytes = peak;
  return f;
}

}  // namespace

std::vector<DecodeFigure> measure_decoding(const ModelBenchOptions& options) {
  std::vector<DecodeFigure> figures;
  for (const DecoderShape& shape : {kTiny, kGpt2}) {
    if (!options.wants(shape)) continue;
    for (const DType precision : {DType::bf16, DType::f32}) {
      figures.push_back(measure(shape, precision, options));
      trim_memory();
    }
  }
  return figures;
}

}  // namespace heddle::bench
