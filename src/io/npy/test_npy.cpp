#include <gtest/gtest.h>

#include <cstring>

#include "heddle/error.h"
#include "io/npy/npy.h"

namespace heddle::io {
namespace {

TEST(Npy, IsWhatNumpyWrites) {
  const std::string file = encode_npy(Tensor::from<float>({2, 3}, {1, 2, 3, 4, 5, -0.5f}));
  ASSERT_EQ(file.size(), 128u + 24u);
  EXPECT_EQ(file.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  EXPECT_EQ(file[8], 118);  // 128 - 10
  EXPECT_EQ(file[9], 0);
  EXPECT_EQ(file.substr(10, 59), "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3, ),");
  EXPECT_EQ(file[127], '\n');
  float last = 0;
  std::memcpy(&last, file.data() + 148, 4);
  EXPECT_EQ(last, -0.5f);
}

TEST(Npy, StridesAndOtherTypes) {
  const Tensor x = Tensor::from<std::int32_t>({2, 2}, {1, 2, 3, 4});
  const std::string file = encode_npy(views::transpose(x, 0, 1));
  std::int32_t second = 0;
  std::memcpy(&second, file.data() + file.size() - 12, 4);
  EXPECT_EQ(second, 3);
  EXPECT_NE(file.find("<i4"), std::string::npos);
  EXPECT_THROW(encode_npy(Tensor::zeros({1}, DType::bf16)), Error);
}

}  // namespace
}  // namespace heddle::io
