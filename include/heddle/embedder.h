// An encoder inside a program that gives vectors of texts or images: similar ones have similar
// vectors.
//
//   const heddle::Embedder model("all-MiniLM-L6-v2");
//   const heddle::Tensor vectors =
//       model.embed({"a cat", "a kitten", "a tax form"});  // [3, model.width()]
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/images.h"
#include "heddle/tensor.h"
#include "heddle/texts.h"
#include "heddle/trained_model.h"

namespace heddle {

// How the vectors of a text's tokens become one: that of the class token ([CLS], or the model's
// own), or the mean of all, those around the text included.
enum class EmbeddingPool : std::uint8_t { class_token, mean };

std::string_view to_string(EmbeddingPool pool);  // "class", "mean"

struct EmbeddingOptions {
  std::optional<EmbeddingPool> pool = {};  // absent: as the model's files say
  std::optional<bool> normalise = {};      // to length 1; absent: as the model's files say
  std::int64_t batch = 64;                 // texts at a time, at most
};

// A handle, as TrainedModel is. Every function throws heddle::Error.
class Embedder {
 public:
  // As TrainedModel does; an Error names the kind when the model is no encoder of texts, and the
  // file that asks for a way to vectors that is not there.
  explicit Embedder(const std::string& directory, DType precision = DType::f32,
                    Device device = Device::cpu);
  explicit Embedder(TrainedModel model);

  // [texts, width()] f32 (f64 with that precision), on the CPU. A text's vector has the same bits
  // whatever texts are beside it. A text longer than longest() is an Error that names it, from 1,
  // as a line, with both numbers.
  Tensor embed(const Texts& texts, const EmbeddingOptions& options = {}) const;
  Tensor embed(std::initializer_list<std::string_view> texts,
               const EmbeddingOptions& options = {}) const {
    return embed(Texts(texts), options);
  }
  std::vector<float> embed(std::string_view text, const EmbeddingOptions& options = {}) const;
  // The same of images, for a model of images: that of the class token, or the mean of the patches.
  Tensor embed(std::span<const NamedImage> images, const EmbeddingOptions& options = {}) const;
  bool reads_images() const;  // or texts

  std::int64_t width() const;
  std::int64_t longest() const { return longest_; }  // tokens of a text, those around it included
  // The pooling of a call that does not choose.
  EmbeddingPool pool() const { return pool_; }
  bool normalises() const { return normalise_; }

  const TrainedModel& model() const { return model_; }

 private:
  TrainedModel model_;
  EmbeddingPool pool_ = EmbeddingPool::mean;
  bool normalise_ = false;
  std::int64_t longest_ = 0;
};

}  // namespace heddle
