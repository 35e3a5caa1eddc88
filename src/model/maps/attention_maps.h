// Attention maps of a whole model: where every layer and head looked while it read one sequence.
//
//   AttentionMaps maps(model.config());
//   nn::Pass pass;
//   pass.observer = &maps;
//   model.logits(batch, pass);                    // a batch of one sequence
//   maps.rows(maps.find("3"), head, first, count)  // [count, keys] f32
//
// Memory grows with the tokens, not with their square: queries, keys and one sum per row are kept.
// A map's rows are recomputed from them on request.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/tensor.h"
#include "model/config.h"
#include "nn/attention/observer.h"

namespace heddle::model {

// Which tokens ask and which are looked at.
enum class MapPart : std::uint8_t {
  only,     // of a model with one stack: its tokens look at each other
  encoder,  // source tokens look at each other
  decoder,  // target tokens look at each other
  cross,    // target tokens look at source tokens
};

std::string_view to_string(MapPart part);

// Query i sees the keys first <= j < last; equal: none.
struct KeyRange {
  std::int32_t first = 0, last = 0;
  std::int64_t count() const { return last - first; }
  bool operator==(const KeyRange&) const = default;
};

struct AttentionLayer {
  std::string name;  // "3"; of a model with two stacks "encoder.3", "decoder.3" or "cross.3"
  MapPart part = MapPart::only;
  std::int64_t heads = 0, queries = 0, keys = 0;
  std::vector<KeyRange> visible = {};  // of each query
  bool leaves_some = false;            // rows may sum to less than 1: a sink, or relu weights

  bool cross() const { return part == MapPart::cross; }
};

class AttentionMaps final : public nn::AttentionObserver {
 public:
  // Throws Error for a kind without attention, naming those that have it.
  explicit AttentionMaps(const ModelConfig& config);

  void see(std::int64_t layer, bool cross, const nn::AttentionTrace& trace) override;

  // In the order of computation.
  const std::vector<AttentionLayer>& layers() const { return layers_; }
  std::size_t find(std::string_view name) const;  // Error that lists the names
  const nn::AttentionTrace& trace(std::size_t layer) const { return traces_.at(layer); }

  // Weights of queries first, first + 1, …: [count, keys] f32. Zero where the mask hides a key.
  Tensor rows(std::size_t layer, std::int64_t head, std::int64_t first, std::int64_t count) const;
  // So many rows at a time take a few megabytes.
  std::int64_t rows_at_once(std::size_t layer) const;

  void clear();  // before the next sequence

 private:
  ModelConfig config_;
  std::vector<AttentionLayer> layers_;
  std::vector<nn::AttentionTrace> traces_;
};

}  // namespace heddle::model
