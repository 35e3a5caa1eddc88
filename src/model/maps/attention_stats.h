// Statistics of an attention head: one pass over the rows of its map, one block at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/maps/attention_maps.h"

namespace heddle::model {

// Patches of an image as keys and queries, row by row, after the learned tokens before them.
struct PatchGrid {
  std::int64_t rows = 0, columns = 0;
  std::int64_t before = 0;
  bool class_token = false;  // the first of those
};

// Means over the queries that see at least two keys: the others have no choice. Absent when
// there is no such query.
//
// Where a sink takes a share, entropy is that of the shares the keys have among themselves;
// everything else is by the weights as they are.
struct HeadStats {
  std::int64_t queries = 0;                  // that see at least two keys
  std::optional<double> entropy_bits = {};   // -Σ w log2 w
  std::optional<double> entropy_share = {};  // of the most it could be: log2 of the visible keys
  std::optional<double> largest = {};        // weight of a row
  std::optional<double> first = {};  // weight of the first key: the begin token, the class token
  std::optional<double> last = {};   // weight of the last key of all; where the mask shows it
  // Weight that goes to no key, where possible: a sink's share, or rows of all-zero relu weights.
  std::optional<double> sink = {};
  // Tokens that look at each other. Distances are |i - j|, or between the middles of patches,
  // without class token.
  std::optional<double> distance = {};
  std::optional<double> self = {}, previous = {}, next = {};
  // Cross-attention: correlation of a query's place with the mean place it looks at. 1: the source
  // is read from its beginning to its end, -1: from its end. Absent where either does not change.
  std::optional<double> monotonicity = {};
};

// The map as at most cells × cells: each cell is the mean, over its queries, of the weight that
// they give to all keys of the cell. So a row still has the sum that the map's rows have.
struct PooledMap {
  std::int64_t rows = 0, columns = 0;
  std::vector<float> shares;  // [rows · columns]

  // The cell of token i of n.
  static std::int64_t cell(std::int64_t i, std::int64_t n, std::int64_t cells) {
    return i * cells / n;
  }
};

struct HeadSummary {
  HeadStats stats;
  PooledMap pooled;
};

struct SummaryOptions {
  std::int64_t cells = 64;
  std::optional<PatchGrid> grid = {};
};

HeadSummary summarise(const AttentionMaps& maps, std::size_t layer, std::int64_t head,
                      const SummaryOptions& options = {});

}  // namespace heddle::model
