// One input through a trained model, with its attention kept: where every layer and head looked.
//
//   const heddle::TrainedModel model("runs/llama-style");
//   const heddle::Inspection seen = heddle::inspect(model, {.prompt = "And God said"});
//   const heddle::model::AttentionMaps& maps = seen.maps;
//   std::cout << maps.rows(maps.find("3"), 0, 0, 1);  // layer 3, head 0, the first query: [1,
//   keys]
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "heddle/generation.h"
#include "heddle/tensor.h"
#include "heddle/trained_model.h"
#include "model/maps/attention_maps.h"
#include "model/maps/attention_stats.h"

namespace heddle {

// The model's input. A model of texts takes a prompt, one of images an image.
struct InspectInput {
  std::optional<std::string> prompt = {};
  std::optional<std::string> target = {};  // translate; absent: what the model translates it into
  Tensor image = {};                       // u8 [C, H, W]
  std::string image_name = {};
};

struct Inspection {
  // Tokens for the eyes. `queries` and `keys` of a layer are chosen by its part.
  std::vector<std::string> source;
  std::vector<std::string> target;   // what the decoder has read: "<s>" first
  std::vector<std::string> written;  // what it is about to write there: "</s>" last
  Tensor image = {};                 // u8 [C, H, W]
  std::string image_name = {};
  std::optional<model::PatchGrid> grid = {};
  // The model's result, where it is a single value.
  std::optional<double> loss = {};  // nats per token, of language and translate
  std::string answer = {};          // its own translation, or the label with its probability
  std::optional<std::int64_t> learned = {};  // tokens of training's sequences, if there are more
  model::AttentionMaps maps;

  // Cross-attention is the decoder's while it writes: its rows are named by what it writes.
  const std::vector<std::string>& queries(const model::AttentionLayer& layer) const;
  const std::vector<std::string>& keys(const model::AttentionLayer& layer) const;
};

// `beam` is for a target that is not given. Throws Error naming the field of the input that the
// model does not take or that has more tokens than the model has positions, and for a model
// without attention.
Inspection inspect(const TrainedModel& model, const InspectInput& input,
                   const BeamOptions& beam = {});

}  // namespace heddle
