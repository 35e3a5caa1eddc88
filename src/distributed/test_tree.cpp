#include <gtest/gtest.h>

#include <string>

#include "distributed/tree.h"

namespace heddle::distributed {

namespace {

// Sums as texts, so that the order of every addition is seen.
std::string tree_over(std::int64_t parts) {
  TreeSum<std::string> sum(parts);
  for (std::int64_t i = 0; i < parts; ++i)
    sum.push({0, i}, std::to_string(i), [](std::string& left, const std::string& right) {
      left = "(" + left + "+" + right + ")";
    });
  EXPECT_EQ(sum.held().size(), 1u);
  return sum.held().front().second;
}

TEST(Tree, AddsNeighboursLevelByLevel) {
  EXPECT_EQ(tree_over(1), "0");
  EXPECT_EQ(tree_over(2), "(0+1)");
  EXPECT_EQ(tree_over(3), "((0+1)+2)");
  EXPECT_EQ(tree_over(4), "((0+1)+(2+3))");
  EXPECT_EQ(tree_over(5), "(((0+1)+(2+3))+4)");
  EXPECT_EQ(tree_over(6), "(((0+1)+(2+3))+(4+5))");
  EXPECT_EQ(tree_over(7), "(((0+1)+(2+3))+((4+5)+6))");
  EXPECT_EQ(tree_over(8), "(((0+1)+(2+3))+((4+5)+(6+7)))");
}

// What the ranks have added by themselves, put together, is the same sum.
TEST(Tree, AnyNumberOfRanksMakesTheSameSum) {
  const auto add = [](std::string& left, const std::string& right) {
    left = "(" + left + "+" + right + ")";
  };
  for (std::int64_t parts = 1; parts <= 33; ++parts)
    for (int ranks = 1; ranks <= 40; ++ranks) {
      TreeSum<std::string> all(parts);
      std::int64_t next = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const Range own = parts_of(rank, ranks, parts);
        EXPECT_EQ(own.begin, next);
        next = own.end;
        TreeSum<std::string> mine(parts);
        for (std::int64_t i = own.begin; i < own.end; ++i)
          mine.push({0, i}, std::to_string(i), add);
        const auto nodes = nodes_of(own, parts);
        ASSERT_EQ(nodes.size(), mine.held().size());
        for (std::size_t i = 0; i < nodes.size(); ++i) EXPECT_EQ(nodes[i], mine.held()[i].first);
        for (auto& [node, text] : mine.take()) all.push(node, std::move(text), add);
      }
      EXPECT_EQ(next, parts);
      ASSERT_EQ(all.held().size(), 1u) << parts << " parts, " << ranks << " ranks";
      EXPECT_EQ(all.held().front().second, tree_over(parts));
    }
}

// A rank with a power of two of parts, of as many, keeps one node.
TEST(Tree, HoldsFewPartialSums) {
  EXPECT_EQ(nodes_of({0, 2}, 8), (std::vector<Node>{{1, 0}}));
  EXPECT_EQ(nodes_of({4, 8}, 8), (std::vector<Node>{{2, 1}}));
  EXPECT_EQ(nodes_of({2, 5}, 8), (std::vector<Node>{{1, 1}, {0, 4}}));
  EXPECT_EQ(nodes_of({0, 8}, 8), (std::vector<Node>{{3, 0}}));
  EXPECT_EQ(most_held({0, 1}, 8), 0);
  EXPECT_EQ(most_held({0, 2}, 8), 1);
  EXPECT_EQ(most_held({0, 8}, 8), 3);
}

}  // namespace
}  // namespace heddle::distributed
