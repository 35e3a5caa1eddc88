#include <gtest/gtest.h>

#include <cmath>
#include <ctime>
#include <string>
#include <vector>

#include "io/test_support.h"
#include "mock/mock.h"
#include "nn/linear/linear.h"
#include "nn/save.h"

namespace heddle::nn {
namespace {

struct TwoLayers {
  Parameters parameters;
  Linear first, second;

  explicit TwoLayers(std::uint64_t seed, Device device = Device::cpu, std::int64_t width = 3)
      : parameters({.seed = seed, .device = device}),
        first({.inputs = 2, .outputs = width}, parameters.root() / "first"),
        second({.inputs = width, .outputs = 1, .bias = false}, parameters.root() / "second") {}

  std::vector<std::vector<float>> values() const {
    std::vector<std::vector<float>> all;
    for (const Parameter& p : parameters.all()) all.push_back(p.tensor.to_vector<float>());
    return all;
  }
};

std::string complaint(const std::string& path, Parameters& parameters) {
  try {
    load(path, parameters);
  } catch (const Error& e) {
    return e.what();
  }
  return "none";
}

// A configuration may ask for hundreds of thousands of parameters: experts, each with its own.
TEST(Parameters, ManyNamesAreManyAndNotTheirSquare) {
  Parameters store({.device = Device::meta});
  const Scope root = store.root();
  constexpr std::int64_t kMany = 100000;
  const auto begin = std::clock();
  for (std::int64_t i = 0; i < kMany; ++i) (root / i).zeros("bias", {1});
  EXPECT_EQ(store.count(), kMany);
  EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, 5);
  EXPECT_THROW((root / (kMany - 1)).zeros("bias", {1}), Error);
}

TEST(Save, WhatWasSavedIsLoadedOnAnyDevice) {
  const io::TempDir dir;
  const std::string path = dir.file("w.safetensors");
  const TwoLayers saved(1);
  save(path, saved.parameters);
  TwoLayers here(2), there(3, mock::device());
  ASSERT_NE(here.values(), saved.values());
  load(path, here.parameters);
  EXPECT_EQ(here.values(), saved.values());
  load(path, there.parameters);
  EXPECT_EQ(there.values(), saved.values());
  EXPECT_EQ(there.first.weight().device(), mock::device());
  save(dir.file("again.safetensors"), there.parameters);
  EXPECT_EQ(io::slurp(dir.file("again.safetensors")), io::slurp(path));
}

TEST(Save, WhatDoesNotFitIsNamedAndChangesNothing) {
  const io::TempDir dir;
  const std::string path = dir.file("w.safetensors");
  save(path, TwoLayers(1).parameters);
  TwoLayers wider(2, Device::cpu, 4);
  const auto before = wider.values();
  const std::string shape = complaint(path, wider.parameters);
  EXPECT_NE(shape.find("first.weight"), std::string::npos) << shape;
  EXPECT_NE(shape.find("[4, 2]"), std::string::npos) << shape;
  EXPECT_EQ(wider.values(), before);

  Parameters fewer({.seed = 1});
  const Linear first({.inputs = 2, .outputs = 3}, fewer.root() / "first");
  const std::string left = complaint(path, fewer);
  EXPECT_NE(left.find("second.weight belongs to no parameter"), std::string::npos) << left;

  TwoLayers more(1);
  const Linear third({.inputs = 1, .outputs = 1}, more.parameters.root() / "third");
  const std::string missing = complaint(path, more.parameters);
  EXPECT_NE(missing.find("third.weight"), std::string::npos) << missing;
}

TEST(Linear, IsAProductWithBias) {
  Parameters parameters({.seed = 1});
  const Linear layer({.inputs = 2, .outputs = 2}, parameters.root());
  overwrite(parameters.all()[0].tensor, Tensor::from({{1, 2}, {3, 4}}));
  overwrite(parameters.all()[1].tensor, Tensor::from({10, 20}));
  const Tensor x = Tensor::from({{1, 1}});
  EXPECT_EQ(layer.forward(x).to_vector<float>(), (std::vector<float>{13, 27}));
  EXPECT_EQ(layer.logits(x).to_vector<float>(), (std::vector<float>{13, 27}));
  const Tensor target = Tensor::from<std::int32_t>({1}, {0});
  EXPECT_NEAR(layer.cross_entropy(x, target).item(), 14 + std::log1p(std::exp(-14.0)), 1e-4);
  EXPECT_THROW(Linear({.inputs = 0, .outputs = 2}, parameters.root() / "a"), Error);
  EXPECT_THROW(Linear({.inputs = 2, .outputs = 0}, parameters.root() / "b"), Error);
}

}  // namespace
}  // namespace heddle::nn
