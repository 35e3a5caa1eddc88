// One input through a model, with its attention kept: what `heddle inspect` shows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/codec/codec.h"
#include "generate/decode/beam.h"
#include "model/maps/attention_maps.h"
#include "model/maps/attention_stats.h"
#include "model/model.h"

namespace heddle::generate {

// What the model is given. A model of texts takes a prompt, one of images an image.
struct InspectInput {
  std::optional<std::string> prompt = {};
  std::optional<std::string> target = {};  // translate; absent: what the model translates it into
  Tensor image = {};                       // u8 [C, H, W]
  std::string image_name = {};
};

struct InspectOptions {
  DType precision = DType::f32;
  BeamOptions beam = {};  // for a target that is not given
};

struct Inspection {
  // Tokens for the eyes. `queries` and `keys` of a layer are chosen by its part.
  std::vector<std::string> source;
  std::vector<std::string> target;   // what the decoder has read: "<s>" first
  std::vector<std::string> written;  // what it is about to write there: "</s>" last
  Tensor image = {};                 // u8 [C, H, W]
  std::string image_name = {};
  std::optional<model::PatchGrid> grid = {};
  // What the model made of it, where that is one thing to tell.
  std::optional<double> loss = {};  // nats per token, of language and translate
  std::string answer = {};          // its own translation, or the label with its probability
  std::optional<std::int64_t> learned = {};  // tokens of training's sequences, if there are more
  model::AttentionMaps maps;

  // Cross-attention is the decoder's while it writes: its rows are named by what it writes.
  const std::vector<std::string>& queries(const model::AttentionLayer& layer) const;
  const std::vector<std::string>& keys(const model::AttentionLayer& layer) const;
};

// Throws Error naming the option of the command line: an input the model does not take, one that
// has more tokens than the model has positions, a model without attention.
Inspection inspect(const model::Model& model, const data::Codec& codec, const InspectInput& input,
                   const InspectOptions& options = {});

}  // namespace heddle::generate
