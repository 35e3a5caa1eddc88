#include <gtest/gtest.h>

#include <string>

#include "ops/patch_embed/patch_embed.h"

namespace heddle {
namespace {

std::string refusal(const Tensor& images, const Tensor& weight, const Tensor& bias = {}) {
  try {
    ops::patch_embed(images, weight, bias);
  } catch (const Error& e) {
    EXPECT_EQ(e.where(), "patch_embed");
    return e.what();
  }
  ADD_FAILURE() << "was not refused";
  return "";
}

TEST(PatchEmbed, RefusesWhatDoesNotFit) {
  const Tensor images = Tensor::zeros({2, 3, 8, 12});
  EXPECT_NE(refusal(images, Tensor::zeros({5, 3, 3, 4})).find("dimension 2"), std::string::npos);
  EXPECT_NE(refusal(images, Tensor::zeros({5, 3, 4, 5})).find("dimension 3"), std::string::npos);
  EXPECT_NE(refusal(images, Tensor::zeros({5, 3, 0, 4})).find("dimension 2"), std::string::npos);
  refusal(images, Tensor::zeros({5, 2, 4, 4}));
  refusal(images, Tensor::zeros({5, 3, 16}));
  refusal(images, Tensor());
  refusal(Tensor(), Tensor::zeros({5, 3, 4, 4}));
  refusal(Tensor::zeros({3, 8, 12}), Tensor::zeros({5, 3, 4, 4}));
  refusal(images, Tensor::zeros({5, 3, 4, 4}, DType::f64));
  refusal(images, Tensor::zeros({5, 3, 4, 4}), Tensor::zeros({4}));
  refusal(images, Tensor::zeros({5, 3, 4, 4}, DType::f32, Device::meta));
}

}  // namespace
}  // namespace heddle
