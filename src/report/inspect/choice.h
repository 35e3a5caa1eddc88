// Which parts of a model's maps somebody wants exactly.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/maps/attention_maps.h"

namespace heddle::report {

struct HeadPlace {
  std::size_t layer = 0;  // in AttentionMaps::layers()
  std::int64_t head = 0;
};

struct RowRange {
  std::int64_t first = 0, end = 0;
};

// As on the command line. Nothing given: everything.
struct MapRequest {
  std::vector<std::string> layers = {};  // names
  std::vector<std::int64_t> heads = {};
  std::string rows = {};  // "a:b": queries a to b - 1; "a:" and ":b" go to the end or begin at 0

  bool given() const { return !layers.empty() || !heads.empty() || !rows.empty(); }
};

// The request, checked against a model's maps.
struct MapChoice {
  std::vector<HeadPlace> heads;       // in the order of the layers
  std::optional<RowRange> rows = {};  // absent: all

  RowRange rows_of(const model::AttentionLayer& layer) const;  // those that the layer has
};

// Throws Error naming the option.
MapChoice choose(const model::AttentionMaps& maps, const MapRequest& request);

}  // namespace heddle::report
