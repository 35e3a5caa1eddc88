#include "distributed/tree.h"

#include <algorithm>

namespace heddle::distributed {

Range parts_of(int rank, int ranks, std::int64_t parts) {
  return {rank * parts / ranks, (rank + 1) * parts / ranks};
}

std::vector<Node> nodes_of(const Range& range, std::int64_t parts) {
  TreeSum<char> sum(parts);
  for (std::int64_t i = range.begin; i < range.end; ++i) sum.push({0, i}, 0, [](char&, char) {});
  std::vector<Node> nodes;
  nodes.reserve(sum.held().size());
  for (const auto& [node, value] : sum.held()) nodes.push_back(node);
  return nodes;
}

std::int64_t most_held(const Range& range, std::int64_t parts) {
  TreeSum<char> sum(parts);
  std::size_t most = 0;
  for (std::int64_t i = range.begin; i < range.end; ++i) {
    most = std::max(most, sum.held().size());
    sum.push({0, i}, 0, [](char&, char) {});
  }
  return static_cast<std::int64_t>(most);
}

}  // namespace heddle::distributed
