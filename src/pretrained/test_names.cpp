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

TEST(PretrainedNames, ExpertsMayLieInOneTensor) {
  const char *ours = "layers.#.ffn.experts.#.in.*", *theirs = "blk.#.ffn_gate_exps.*";
  EXPECT_EQ(rename("layers.3.ffn.experts.17.in.bias", ours, theirs), "blk.3.ffn_gate_exps.bias");
  EXPECT_EQ(place_in_stack("layers.3.ffn.experts.17.in.bias", ours, theirs), 17);
  EXPECT_EQ(place_in_stack("layers.3.ffn.experts.17.in.bias", ours, "l.#.e.#.*"), std::nullopt);
  EXPECT_EQ(place_in_stack("layers.3.ffn.in.bias", "layers.#.ffn.in.*", "l.#.*"), std::nullopt);
  EXPECT_EQ(place_in_stack("layers.3.ffn.experts.99999999999999999999.in.bias", ours, theirs),
            std::nullopt);
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
