// The unit in which people are told how much a model read: its tokens are their images and
// words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "data/codec/codec.h"
#include "model/config.h"

namespace heddle::run {

struct Unit {
  std::string_view name;         // "images"
  std::int64_t tokens_each = 1;  // patches of an image

  double count(double tokens) const { return tokens / static_cast<double>(tokens_each); }

  // For people, in their language.
  std::string title() const;                               // "images"
  std::string rate_title() const;                          // "images/s"
  std::string told(const std::string& number) const;       // "12k images"
  std::string rate_told(const std::string& number) const;  // "12k images/s"
};

Unit unit_of_images(const model::ModelConfig& vit);  // its sizes must be known

// Of what is read in training: images, words where each is a token, or tokens.
Unit unit_read(const model::ModelConfig& model, const data::Codec& codec);

// The same of a run that is or was trained, from its directory. Tokens, which its log counts, where
// the directory does not tell what they are.
Unit unit_of_run(const std::string& directory, const model::ModelConfig& model);

// Of what is judged in an evaluation, one label or token each: images, texts, words or tokens.
std::string_view unit_judged(const model::ModelConfig& model);

}  // namespace heddle::run
