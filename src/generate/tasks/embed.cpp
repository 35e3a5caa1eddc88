#include "generate/tasks/embed.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "generate/scores.h"
#include "generate/tasks/buckets.h"
#include "generate/tasks/texts.h"
#include "heddle/error.h"
#include "heddle/tape.h"
#include "ops/copy/copy.h"

namespace heddle::generate {

namespace {

constexpr std::string_view kEmbed = "embed";
// A vector of zeros has no direction: it stays what it is.
constexpr double kShortest = 1e-12;

std::vector<std::int32_t> embed_tokens(const data::Codec& codec, std::string_view text,
                                       std::size_t line, std::int64_t longest) {
  auto tokens = at_line(kEmbed, line, [&] { return codec.encode_source(text); });
  const std::string at = std::string(kEmbed) + ": line " + std::to_string(line + 1);
  if (tokens.empty()) fail(ErrorCode::invalid_argument, at, "tokens", "one or more", "none");
  if (std::ssize(tokens) > longest)
    fail(ErrorCode::out_of_range, at, "tokens",
         "at most " + std::to_string(longest) + ", which the model was made for",
         std::to_string(tokens.size()));
  return tokens;
}

// In double, in the order of the columns: nothing of it depends on threads.
void to_length_one(std::span<float> row) {
  double sum = 0;
  for (const float x : row) sum += static_cast<double>(x) * static_cast<double>(x);
  const double length = std::max(std::sqrt(sum), kShortest);
  for (float& x : row) x = static_cast<float>(static_cast<double>(x) / length);
}

}  // namespace

Tensor embed_texts(const model::Model& model, const data::Codec& codec,
                   std::span<const std::string_view> texts, const EmbedRequest& request,
                   DType precision) {
  if (request.batch < 1 || request.batch > 65536)
    fail(ErrorCode::invalid_argument, kEmbed, "option batch", "1 to 65536",
         std::to_string(request.batch));
  const NoGrad no_grad;
  nn::Pass pass;
  pass.precision = precision;
  EncodedTexts encoded;
  encoded.tokens.reserve(texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i)
    encoded.tokens.push_back(embed_tokens(codec, texts[i], i, request.longest));
  const std::int64_t width = model.config().width;
  Tensor all = Tensor::zeros({std::ssize(texts), width}, DType::f32);
  const auto columns = static_cast<std::size_t>(width);
  float* rows = all.mutable_data<float>();
  for (const auto& bucket : buckets(encoded.lengths(), {request.batch})) {
    std::vector<std::vector<std::int32_t>> sequences;
    sequences.reserve(bucket.size());
    for (const std::size_t i : bucket) sequences.push_back(std::move(encoded.tokens[i]));
    const Tensor made = model.embed(codec.batch_of(sequences), request.pooling, pass);  // [B, C]
    check_finite(made, kEmbed, "vectors of the model");
    const auto values = ops::cast(made, DType::f32).to(Device::cpu).to_vector<float>();
    for (std::size_t i = 0; i < bucket.size(); ++i) {
      const std::span<float> row(rows + bucket[i] * columns, columns);
      std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(i * columns), columns, row.begin());
      if (request.normalise) to_length_one(row);
    }
  }
  return all;
}

}  // namespace heddle::generate
