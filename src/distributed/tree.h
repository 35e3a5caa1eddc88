// The order in which the parts of a sum are added, whoever computed them: a binary tree over the
// parts, fixed by their number alone.
//
// At every level neighbours 2i and 2i + 1 are added; one that has no neighbour goes up as it is. A
// rank has consecutive parts, and adds those of them that the tree adds: what is left are a few
// nodes, which the owner of an element gets from all ranks and adds in the same way.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace heddle::distributed {

struct Node {
  int level = 0;           // 0: a part itself
  std::int64_t index = 0;  // at its level

  bool operator==(const Node&) const = default;
};

struct Range {
  std::int64_t begin = 0, end = 0;

  std::int64_t count() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

// The parts of a rank: neighbours, as equal in number as can be. Where there are more ranks than
// parts, some have none.
Range parts_of(int rank, int ranks, std::int64_t parts);

// The nodes that are left of these parts when all that can be added is added, from left to right.
std::vector<Node> nodes_of(const Range& range, std::int64_t parts);

// Most nodes that are held at once while the parts are computed one after the other, without the
// one that is being computed.
std::int64_t most_held(const Range& range, std::int64_t parts);

// Adds values from left to right, as the tree does: push() one after the other.
template <class T>
class TreeSum {
 public:
  explicit TreeSum(std::int64_t parts) : parts_(parts) {}

  // `add(left, right)`: left += right.
  template <class Add>
  void push(Node node, T value, const Add& add) {
    held_.emplace_back(node, std::move(value));
    while (true) {
      Node& last = held_.back().first;
      const bool is_left = last.index % 2 == 0;
      const bool is_root = last.index == 0 && (std::int64_t{1} << last.level) >= parts_;
      if (is_root) return;
      if (is_left && (last.index + 1) << last.level >= parts_) {  // without a neighbour
        last = {last.level + 1, last.index / 2};
        continue;
      }
      if (is_left || held_.size() < 2) return;
      auto& [left, sum] = held_[held_.size() - 2];
      if (left.level != last.level || left.index + 1 != last.index) return;
      add(sum, held_.back().second);
      left = {left.level + 1, left.index / 2};
      held_.pop_back();
    }
  }

  const std::vector<std::pair<Node, T>>& held() const { return held_; }
  std::vector<std::pair<Node, T>>& held() { return held_; }
  std::vector<std::pair<Node, T>> take() { return std::move(held_); }

 private:
  std::int64_t parts_;
  std::vector<std::pair<Node, T>> held_;  // from left to right
};

}  // namespace heddle::distributed
