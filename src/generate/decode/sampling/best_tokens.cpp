#include "generate/decode/sampling/best_tokens.h"

#include <algorithm>
#include <limits>
#include <string>

#include "base/parallel.h"
#include "heddle/error.h"
#include "heddle/tape.h"
#include "ops/copy/copy.h"
#include "ops/softmax/softmax.h"

namespace heddle::generate {

namespace {

constexpr std::size_t kBlock = 64;

// Few scores are better than the ones already found, so whole blocks are looked at first. (A sum of
// comparisons is vector code, where a maximum of floats is not: NaN forbids another order.)
bool any_above(const float* scores, std::size_t count, float threshold) {
  int above = 0;
  for (std::size_t i = 0; i < count; ++i) above += scores[i] > threshold ? 1 : 0;
  return above > 0;
}

void insert(std::vector<ScoredToken>& best, std::size_t count, std::size_t token, float score) {
  const auto worse = [](double s, const ScoredToken& t) { return s > t.log_probability; };
  const auto at = std::upper_bound(best.begin(), best.end(), static_cast<double>(score), worse);
  best.insert(at, {static_cast<std::int32_t>(token), score});
  if (best.size() > count) best.pop_back();
}

std::vector<ScoredToken> best_of_row(std::span<const float> scores, std::size_t count) {
  std::vector<ScoredToken> best;
  best.reserve(count + 1);
  float threshold = -std::numeric_limits<float>::infinity();
  for (std::size_t begin = 0; begin < scores.size(); begin += kBlock) {
    const std::size_t end = std::min(begin + kBlock, scores.size());
    if (!any_above(scores.data() + begin, end - begin, threshold)) continue;
    for (std::size_t i = begin; i < end; ++i) {
      if (!(scores[i] > threshold)) continue;
      insert(best, count, i, scores[i]);
      if (best.size() == count) threshold = static_cast<float>(best.back().log_probability);
    }
  }
  return best;
}

}  // namespace

std::vector<std::vector<ScoredToken>> best_tokens(const Tensor& logits,
                                                  std::span<const std::int64_t> counts,
                                                  const Possible& possible) {
  const NoGrad no_grad;
  Tensor logs = ops::log_softmax(ops::contiguous(ops::cast(logits, DType::f32))).to(Device::cpu);
  const auto vocabulary = static_cast<std::size_t>(logs.size(1));
  const std::size_t known = possible.known > 0
                                ? std::min(vocabulary, static_cast<std::size_t>(possible.known))
                                : vocabulary;
  auto* scores = logs.mutable_data<float>();
  for (const std::int32_t token : possible.never)
    for (std::size_t i = 0; i < counts.size(); ++i)
      if (token >= 0 && static_cast<std::size_t>(token) < vocabulary)
        scores[i * vocabulary + static_cast<std::size_t>(token)] =
            -std::numeric_limits<float>::infinity();
  std::vector<std::vector<ScoredToken>> best(counts.size());
  parallel_ranges(
      static_cast<std::int64_t>(counts.size()), 4, [&](std::int64_t begin, std::int64_t end) {
        for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
          best[i] = best_of_row({scores + i * vocabulary, known},
                                static_cast<std::size_t>(std::max<std::int64_t>(counts[i], 1)));
      });
  // NaN and +inf make the logarithms of the whole row NaN.
  for (std::size_t i = 0; i < best.size(); ++i)
    if (best[i].empty())
      fail(ErrorCode::invalid_argument, "beam search", "scores of sequence " + std::to_string(i),
           "finite numbers or -inf, at least one finite", "NaN, +inf or nothing but -inf");
  return best;
}

}  // namespace heddle::generate
