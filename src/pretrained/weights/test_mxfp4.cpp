// Matrices in MXFP4, and one expert out of a stack.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "heddle/error.h"
#include "io/safetensors/safetensors.h"
#include "io/test_support.h"
#include "pretrained/names/take.h"
#include "pretrained/weights/files.h"

namespace heddle::pretrained {
namespace {

// Two experts of one row: 32 numbers each.
std::string write_blocks(const io::TempDir& folder) {
  std::vector<std::uint8_t> bytes(32), scales = {127, 126};
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::uint8_t>(16 * (i % 16));
  bytes[0] = 0x2A;  // low half first: 10 is -1, 2 is 1
  bytes[16] = 0xF7;
  io::write_safetensors(folder.file("model.safetensors"),
                        {{"x_blocks", Tensor::from<std::uint8_t>({2, 1, 1, 16}, bytes)},
                         {"x_scales", Tensor::from<std::uint8_t>({2, 1, 1}, scales)},
                         {"y_blocks", Tensor::from<float>({2}, {1, 2})}});
  return folder.path();
}

TEST(Mxfp4, PairsOfTensorsAreOne) {
  const io::TempDir folder;
  const auto files = safetensors_of(write_blocks(folder));
  EXPECT_EQ(files->names(), (std::vector<std::string>{"x_blocks", "y_blocks"}));
  EXPECT_FALSE(files->contains("x_scales"));
  EXPECT_EQ(files->type("x_blocks"), "MXFP4");
  EXPECT_EQ(files->shape("x_blocks"), (Shape{2, 1, 32}));
  EXPECT_EQ(files->bytes("x_blocks"), 34U);
  EXPECT_EQ(natural_type(*files), DType::bf16);
  const auto all = files->load("x_blocks", DType::f32).to_vector<float>();
  EXPECT_EQ(all[0], -1);
  EXPECT_EQ(all[1], 1);
  EXPECT_EQ(all[2], 0);
  EXPECT_EQ(all[3], 0.5F);
  EXPECT_EQ(all[31], -6);
  EXPECT_EQ(all[32], 3);  // 6 · 2^-1
  EXPECT_EQ(all[33], -3);
  const Tensor second = files->load_one("x_blocks", 1);
  EXPECT_EQ(second.shape(), (Shape{1, 32}));
  EXPECT_EQ(second.to_vector<float>(), std::vector<float>(all.begin() + 32, all.end()));
  EXPECT_THROW((void)files->load_one("x_blocks", 2), Error);
  EXPECT_EQ(files->load("y_blocks", DType::f32).to_vector<float>(), (std::vector<float>{1, 2}));
}

TEST(Mxfp4, AScaleOf255IsNoNumber) {
  const io::TempDir folder;
  const std::vector<std::uint8_t> bytes(16, 0x11);
  io::write_safetensors(folder.file("model.safetensors"),
                        {{"x_blocks", Tensor::from<std::uint8_t>({1, 1, 16}, bytes)},
                         {"x_scales", Tensor::from<std::uint8_t>({1, 1}, {255})}});
  const auto files = safetensors_of(folder.path());
  EXPECT_TRUE(std::isnan(files->load("x_blocks", DType::f32).to_vector<float>()[0]));
}

// Beside a dimension of 0 another one may be any number, and 32 times as much none.
TEST(Mxfp4, SizesThatOverflowAreNoBlocks) {
  const io::TempDir folder;
  const std::int64_t groups = std::int64_t{1} << 59;
  io::write_safetensors(folder.file("model.safetensors"),
                        {{"x_blocks", Tensor::empty({0, groups, 16}, DType::u8)},
                         {"x_scales", Tensor::empty({0, groups}, DType::u8)}});
  const auto files = safetensors_of(folder.path());
  EXPECT_EQ(files->type("x_blocks"), "U8");
  EXPECT_EQ(files->shape("x_blocks"), (Shape{0, groups, 16}));
  EXPECT_TRUE(files->contains("x_scales"));
}

TEST(Take, RowsInTurnsBecomeTwoHalves) {
  const Tensor turns = Tensor::from<float>({4, 2}, {0, 1, 10, 11, 2, 3, 12, 13});
  EXPECT_EQ(rows_in_turns(turns, {}).to_vector<float>(),
            (std::vector<float>{0, 1, 2, 3, 10, 11, 12, 13}));
  const Tensor lying = Tensor::from<float>({2, 4}, {0, 10, 2, 12, 1, 11, 3, 13});
  EXPECT_EQ(transposed_in_turns(lying, {}).to_vector<float>(),
            (std::vector<float>{0, 1, 2, 3, 10, 11, 12, 13}));
  const Tensor bias = Tensor::from<float>({4}, {0, 10, 1, 11});
  EXPECT_EQ(rows_in_turns(bias, {}).to_vector<float>(), (std::vector<float>{0, 1, 10, 11}));
}

}  // namespace
}  // namespace heddle::pretrained
