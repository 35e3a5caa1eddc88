#include "generate/perplexity.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "generate/decode/context.h"
#include "heddle/error.h"
#include "heddle/tape.h"
#include "model/prompt.h"

namespace heddle::generate {
namespace {

constexpr const char* kWhere = "perplexity";

void require(bool ok, std::string_view option, const std::string& expected, std::int64_t got) {
  if (!ok)
    fail(ErrorCode::invalid_argument, kWhere, "option " + std::string(option), expected,
         std::to_string(got));
}

struct Windows {
  std::int64_t size, stride;
};

Windows windows_of(const model::ModelConfig& config, const PerplexityOptions& o) {
  const std::int64_t context = config.sizes.context;
  const auto limit = position_limit(config);
  Windows w{o.window > 0 ? o.window : std::max<std::int64_t>(context, 2), 0};
  require(o.window == 0 || o.window >= 2, "window", "2 tokens or more", o.window);
  if (limit)
    require(w.size <= *limit, "window",
            "at most " + std::to_string(*limit) + ", the positions the model has learned", w.size);
  w.stride = o.stride > 0 ? o.stride : std::max<std::int64_t>(w.size / 2, 1);
  require(o.stride >= 0 && w.stride <= w.size, "stride",
          "1 to the window, " + std::to_string(w.size), o.stride);
  if (o.skip)
    require(*o.skip >= 1 && *o.skip < w.size, "skip",
            "1 to less than the window, " + std::to_string(w.size), *o.skip);
  return w;
}

}  // namespace

Perplexity perplexity(const model::Model& model, std::span<const std::int32_t> tokens,
                      const PerplexityOptions& options) {
  const model::ModelConfig& config = model.config();
  if (config.task != model::Task::language)
    fail(ErrorCode::invalid_argument, kWhere, "task of the model", "language",
         model::to_string(config.task));
  const auto length = static_cast<std::int64_t>(tokens.size());
  if (length < 2)
    fail(ErrorCode::invalid_argument, kWhere, "tokens of the text", "2 or more",
         std::to_string(length));
  const Windows w = windows_of(config, options);
  const NoGrad no_grad;
  nn::Pass pass;
  pass.precision = options.precision;

  Perplexity result;
  result.tokens = length;
  double sum = 0;
  std::int64_t counted_to = 1;  // tokens before this one were counted, or cannot be
  for (std::int64_t begin = 0; begin < length - 1; begin += w.stride) {
    const std::int64_t end = std::min(begin + w.size, length);
    // With a given skip windows are whole, so that each token has as much before it.
    if (options.skip && end - begin < w.size && begin > 0) break;
    // The first token of a window is read, and nothing predicts it.
    const std::int64_t from =
        std::max(options.skip ? begin + *options.skip : counted_to, begin + 1);
    if (from < end) {
      // Position i reads token begin + i and predicts the one behind it.
      const std::int64_t reads = end - begin - 1;
      const auto first = tokens.begin() + begin;
      std::vector<std::int32_t> targets(static_cast<std::size_t>(reads), model::kIgnore);
      for (std::int64_t t = from; t < end; ++t)
        targets[static_cast<std::size_t>(t - begin - 1)] = tokens[static_cast<std::size_t>(t)];
      model::Batch batch = model::prompted(
          config, Tensor::from<std::int32_t>({1, reads}, std::vector(first, first + reads)), 1);
      batch.targets = Tensor::from<std::int32_t>({1, reads}, targets);
      batch.counted = end - from;
      sum += model.loss(batch, pass, 0).task.item() * static_cast<double>(batch.counted);
      result.counted += batch.counted;
      ++result.windows;
      counted_to = end;
    }
    options.progress(end, length);
    if (end == length) break;
  }
  if (result.counted == 0)
    fail(ErrorCode::invalid_argument, kWhere, "the text is shorter than what is skipped",
         "more tokens", std::to_string(length));
  result.loss = sum / static_cast<double>(result.counted);
  result.perplexity = std::exp(result.loss);
  return result;
}

}  // namespace heddle::generate
