#include "generate/tasks/embed.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "generate/scores.h"
#include "generate/tasks/buckets.h"
#include "generate/tasks/image_size.h"
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
template <class T>
void to_length_one(std::span<T> row) {
  double sum = 0;
  for (const T x : row) sum += static_cast<double>(x) * static_cast<double>(x);
  const double length = std::max(std::sqrt(sum), kShortest);
  for (T& x : row) x = static_cast<T>(static_cast<double>(x) / length);
}

void check_batch(const EmbedRequest& request) {
  if (request.batch < 1 || request.batch > 65536)
    fail(ErrorCode::invalid_argument, kEmbed, "option batch", "1 to 65536",
         std::to_string(request.batch));
}

// The vectors of all that is embedded, filled in as they are made.
class Vectors {
 public:
  Vectors(std::int64_t count, std::int64_t width, DType precision, bool normalise)
      : all_(Tensor::zeros({count, width}, precision == DType::f64 ? DType::f64 : DType::f32)),
        normalise_(normalise) {}

  // made: [B, C], of the places in this order
  void put(const Tensor& made, std::span<const std::size_t> places) {
    check_finite(made, kEmbed, "vectors of the model");
    if (all_.dtype() == DType::f64)
      put_as<double>(made, places);
    else
      put_as<float>(made, places);
  }
  Tensor take() { return std::move(all_); }

 private:
  template <class T>
  void put_as(const Tensor& made, std::span<const std::size_t> places) {
    const auto values = ops::cast(made, all_.dtype()).to(Device::cpu).to_vector<T>();
    const auto columns = static_cast<std::size_t>(all_.size(1));
    T* rows = all_.mutable_data<T>();
    for (std::size_t i = 0; i < places.size(); ++i) {
      const std::span<T> row(rows + places[i] * columns, columns);
      std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(i * columns), columns, row.begin());
      if (normalise_) to_length_one(row);
    }
  }

  Tensor all_;
  bool normalise_;
};

}  // namespace

Tensor embed_texts(const model::Model& model, const data::Codec& codec,
                   std::span<const std::string_view> texts, const EmbedRequest& request,
                   DType precision) {
  check_batch(request);
  const NoGrad no_grad;
  nn::Pass pass;
  pass.precision = precision;
  EncodedTexts encoded;
  encoded.tokens.reserve(texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i)
    encoded.tokens.push_back(embed_tokens(codec, texts[i], i, request.longest));
  Vectors all(std::ssize(texts), model.config().width, precision, request.normalise);
  for (const auto& bucket : buckets(encoded.lengths(), {request.batch})) {
    std::vector<std::vector<std::int32_t>> sequences;
    sequences.reserve(bucket.size());
    for (const std::size_t i : bucket) sequences.push_back(std::move(encoded.tokens[i]));
    all.put(model.embed(codec.batch_of(sequences), request.pooling, pass), bucket);
  }
  return all.take();
}

Tensor embed_images(const model::Model& model, const data::Codec& codec,
                    std::span<const NamedImage> images, const EmbedRequest& request,
                    DType precision) {
  check_batch(request);
  const NoGrad no_grad;
  nn::Pass pass;
  pass.precision = precision;
  std::vector<Tensor> pixels;
  pixels.reserve(images.size());
  for (const NamedImage& image : images) {
    check_size(image, *codec.image());
    pixels.push_back(image.pixels);
  }
  Vectors all(std::ssize(images), model.config().width, precision, request.normalise);
  const auto batch = static_cast<std::size_t>(request.batch);
  for (std::size_t begin = 0; begin < images.size(); begin += batch) {
    std::vector<std::size_t> places(std::min(batch, images.size() - begin));
    std::iota(places.begin(), places.end(), begin);
    const auto part = codec.batch_of_images(std::span(pixels).subspan(begin, places.size()));
    all.put(model.embed(part, request.pooling, pass), places);
  }
  return all.take();
}

}  // namespace heddle::generate
