// Names at both sides of a family's table.
#include <gtest/gtest.h>

#include "pretrained/names.h"

namespace heddle::pretrained {
namespace {

TEST(PretrainedNames, NumbersAndTheLastWordGoOver) {
  EXPECT_EQ(rename("layers.12.ffn.in.bias", "layers.#.ffn.in.*", "h.#.mlp.c_fc.*"),
            "h.12.mlp.c_fc.bias");
  EXPECT_EQ(rename("layers.3.ffn.experts.17.in.weight", "layers.#.ffn.experts.#.in.weight",
                   "model.layers.#.experts.#.w1.weight"),
            "model.layers.3.experts.17.w1.weight");
  EXPECT_EQ(rename("norm.weight", "norm.*", "ln_f.*"), "ln_f.weight");
}

TEST(PretrainedNames, WhatDoesNotFitIsNotRenamed) {
  EXPECT_EQ(rename("layers.x.ffn.in.bias", "layers.#.ffn.in.*", "h.#"), std::nullopt);
  EXPECT_EQ(rename("layers.1.ffn.in.gain", "layers.#.ffn.in.*", "h.#"), std::nullopt);
  EXPECT_EQ(rename("layers.1.ffn.in", "layers.#.ffn.in.*", "h.#"), std::nullopt);
  EXPECT_EQ(rename("layers.1.ffn.in.weight.more", "layers.#.ffn.in.weight", "h.#"), std::nullopt);
  EXPECT_EQ(rename("layers..ffn", "layers.#.ffn", "h.#"), std::nullopt);
}

}  // namespace
}  // namespace heddle::pretrained
