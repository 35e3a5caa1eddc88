#include "model/maps/attention_maps.h"

#include <algorithm>

#include "heddle/error.h"
#include "heddle/tape.h"
#include "nn/pass.h"
#include "ops/attention/mask.h"
#include "ops/copy/copy.h"
#include "ops/view/view.h"

namespace heddle::model {

namespace {

constexpr const char* kAttentionMaps = "attention maps";
// Numbers of one block of rows; the plain ops that make it hold a few of them at once.
constexpr std::int64_t kBlockNumbers = std::int64_t{1} << 19;

MapPart part_of(const ModelConfig& config, std::int64_t layer, bool cross) {
  if (cross) return MapPart::cross;
  if (!config.two_stacks()) return MapPart::only;
  return layer < nn::kSecondStack ? MapPart::encoder : MapPart::decoder;
}

std::string name_of(const ModelConfig& config, MapPart part, std::int64_t layer) {
  // The one attention of a recurrent model is numbered after the decoder's layers.
  if (config.kind == Kind::rnn_seq2seq) return "cross.0";
  const std::string number = std::to_string(layer % nn::kSecondStack);
  return part == MapPart::only ? number : std::string(to_string(part)) + "." + number;
}

std::vector<KeyRange> ranges_of(const nn::AttentionTrace& t) {
  const ops::AttentionSizes sizes{1, t.q.size(1), t.k.size(1)};
  const auto v =
      ops::visible_keys(t.options.mask, sizes, Device::cpu).intervals.to_vector<std::int32_t>();
  const std::size_t rows = v.size() / 2;
  std::vector<KeyRange> ranges;
  ranges.reserve(rows);
  for (std::size_t i = 0; i < rows; ++i) ranges.push_back({v[i], v[rows + i]});
  return ranges;
}

}  // namespace

std::string_view to_string(MapPart part) {
  switch (part) {
    case MapPart::only: return "self";
    case MapPart::encoder: return "encoder";
    case MapPart::decoder: return "decoder";
    case MapPart::cross: return "cross";
  }
  return "unknown";
}

AttentionMaps::AttentionMaps(const ModelConfig& config) : config_(config) {
  if (config.kind == Kind::rnn || config.kind == Kind::birnn)
    fail(ErrorCode::invalid_argument, kAttentionMaps, "a model of this kind has no attention",
         "decoder, encoder, encoder-decoder, vit or rnn-seq2seq", to_string(config.kind));
}

void AttentionMaps::see(std::int64_t layer, bool cross, const nn::AttentionTrace& trace) {
  if (trace.q.size(0) != 1)
    fail(ErrorCode::invalid_argument, kAttentionMaps, "sequences of the batch", "1",
         std::to_string(trace.q.size(0)));
  AttentionLayer l;
  l.part = part_of(config_, layer, cross);
  l.name = name_of(config_, l.part, layer);
  l.heads = trace.q.size(2);
  l.queries = trace.q.size(1);
  l.keys = trace.k.size(1);
  l.visible = ranges_of(trace);
  l.leaves_some =
      trace.options.sinks.defined() || trace.options.normaliser == ops::Normaliser::relu;
  for (const AttentionLayer& known : layers_)
    if (known.name == l.name)
      fail(ErrorCode::invalid_argument, kAttentionMaps, "layer " + l.name,
           "one pass, or clear() before the next", "a second pass");
  layers_.push_back(std::move(l));
  traces_.push_back(trace);
}

std::size_t AttentionMaps::find(std::string_view name) const {
  std::string names;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    if (layers_[i].name == name) return i;
    names += (i > 0 ? ", " : "") + layers_[i].name;
  }
  fail(ErrorCode::out_of_range, kAttentionMaps, "layer", "one of " + names, name);
}

Tensor AttentionMaps::rows(std::size_t layer, std::int64_t head, std::int64_t first,
                           std::int64_t count) const {
  if (layer >= layers_.size())
    fail(ErrorCode::out_of_range, kAttentionMaps, "layer",
         "below " + std::to_string(layers_.size()), std::to_string(layer));
  const NoGrad no_grad;
  const Tensor w = traces_[layer].weights({head, first, count});  // [1, count, Tk]
  return ops::contiguous(ops::cast(ops::reshape(w, {w.size(1), w.size(2)}), DType::f32))
      .to(Device::cpu);
}

std::int64_t AttentionMaps::rows_at_once(std::size_t layer) const {
  const nn::AttentionTrace& t = traces_.at(layer);
  // The additive score has all its tanh in memory.
  const std::int64_t depth = t.score.defined() ? t.score.size(1) : 1;
  const std::int64_t numbers = std::max<std::int64_t>(t.k.size(1) * depth, 1);
  return std::clamp<std::int64_t>(kBlockNumbers / numbers, 1, 512);
}

void AttentionMaps::clear() {
  layers_.clear();
  traces_.clear();
}

}  // namespace heddle::model
