// Tensors on a device whose memory the host cannot read: the mock of the tests.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "heddle/error.h"
#include "heddle/memory.h"
#include "heddle/tensor.h"
#include "mock/mock.h"
#include "tensor/engine.h"
#include "tensor/storage.h"

namespace heddle {
namespace {

TEST(OtherDevice, ValuesGoThereAndComeBack) {
  const Device there = mock::device();
  const Tensor x = Tensor::from<float>({2, 3}, {1, 2, 3, 4, 5, 6}, there);
  EXPECT_EQ(x.device(), there);
  EXPECT_EQ(x.describe(), "f32 [2, 3] on plugin:0");
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(x.to(Device::cpu).to(there).to_vector<float>(), x.to_vector<float>());
  EXPECT_EQ(x.to(there).impl(), x.impl());  // it is there already
  EXPECT_EQ(Tensor::full({2}, 7, DType::i64, there).to_vector<std::int64_t>(),
            (std::vector<std::int64_t>{7, 7}));
  EXPECT_EQ(Tensor::full({}, -0.5, DType::bf16, there).item(), -0.5);
  EXPECT_EQ(Tensor::zeros({3}, DType::u8, there).to_vector<std::uint8_t>(),
            (std::vector<std::uint8_t>{0, 0, 0}));
  EXPECT_EQ(Tensor::zeros({0, 3}, DType::f32, there).to(Device::cpu).shape(), (Shape{0, 3}));
}

TEST(OtherDevice, ViewsComeBackInTheirOwnOrder) {
  const Tensor x = Tensor::from<float>({2, 3}, {1, 2, 3, 4, 5, 6}, mock::device());
  EXPECT_EQ(views::transpose(x, 0, 1).to_vector<float>(), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(views::slice(x, 1, 1, 3).to_vector<float>(), (std::vector<float>{2, 3, 5, 6}));
  EXPECT_EQ(views::slice(x, 0, 1, 2).to_vector<float>(), (std::vector<float>{4, 5, 6}));
  const Tensor turned =
      views::transpose(Tensor::from<float>({2, 2}, {1, 2, 3, 4}), 0, 1).to(mock::device());
  EXPECT_TRUE(turned.contiguous());
  EXPECT_EQ(turned.to_vector<float>(), (std::vector<float>{1, 3, 2, 4}));
}

TEST(OtherDevice, ItsMemoryIsNoPlaceForTheHost) {
  Tensor x = Tensor::zeros({2}, DType::f32, mock::device());
  EXPECT_THROW(x.data<float>(), Error);
  EXPECT_THROW(x.mutable_raw(), Error);
  EXPECT_DEATH(*mock::behind(x) = *reinterpret_cast<std::byte*>(device_address(x)), "");
}

TEST(OtherDevice, SeveralAreReadWithOneWait) {
  const Device there = mock::device();
  const Tensor all[] = {Tensor::full({2}, 1, DType::f32, there), Tensor::full({2}, 2),
                        views::slice(Tensor::from<float>({4}, {0, 1, 2, 3}, there), 0, 0, 4, 2)};
  const std::int64_t before = device_reads();
  const std::vector<Tensor> here = read(all);
  EXPECT_EQ(device_reads(), before + 1);
  EXPECT_EQ(here[0].to_vector<float>(), (std::vector<float>{1, 1}));
  EXPECT_EQ(here[1].to_vector<float>(), (std::vector<float>{2, 2}));
  EXPECT_EQ(here[2].to_vector<float>(), (std::vector<float>{0, 2}));
  EXPECT_EQ(device_reads(), before + 1);  // of the CPU's own nothing is counted
  EXPECT_EQ(all[0].to_vector<float>().size(), 2u);
  EXPECT_EQ(device_reads(), before + 2);
}

TEST(OtherDevice, ValuesAreWrittenInPlace) {
  for (const Device device : {Device::cpu, mock::device()}) {
    Tensor x = Tensor::zeros({4}, DType::f32, device);
    const std::uint64_t version = x.version();
    Tensor part = views::slice(x, 0, 1, 3);
    overwrite(part, Tensor::from<float>({2}, {5, 6}));
    EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{0, 5, 6, 0}));
    EXPECT_GT(x.version(), version);
    overwrite(x, Tensor::full({4}, 1, DType::f32, mock::device()));
    EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{1, 1, 1, 1}));
    overwrite(x, x);
    EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{1, 1, 1, 1}));
    EXPECT_THROW(overwrite(x, Tensor::zeros({3})), Error);
    EXPECT_THROW(overwrite(x, Tensor::zeros({4}, DType::f64)), Error);
  }
}

TEST(OtherDevice, BytesAreBookedWhereTheyAre) {
  const Device there = mock::device();
  const std::int64_t live = memory_use(there).live, here = memory_use(Device::cpu).live;
  const std::int64_t held = mock::live_bytes();
  {
    const Tensor x = Tensor::zeros({100}, DType::f32, there);
    EXPECT_EQ(memory_use(there).live - live, 448);
    EXPECT_EQ(mock::live_bytes() - held, 448);
    EXPECT_EQ(memory_use(Device::cpu).live, here);
  }
  EXPECT_EQ(memory_use(there).live, live);
  EXPECT_EQ(mock::live_bytes(), held);
  const Device imitation = Device::meta_like(there);
  const std::int64_t planned = memory_use(imitation).live, other = memory_use(Device::meta).live;
  const Tensor x = Tensor::zeros({100}, DType::f32, imitation);
  EXPECT_EQ(memory_use(imitation).live - planned, 448);
  EXPECT_EQ(memory_use(Device::meta).live, other);
}

TEST(OtherDevice, MetaHasShapesToGiveAndNoValues) {
  const Tensor x = Tensor::zeros({2, 3});
  const Tensor meta = x.to(Device::meta);
  EXPECT_EQ(meta.shape(), x.shape());
  EXPECT_THROW(meta.to(Device::cpu), Error);
  EXPECT_THROW(meta.item(), Error);
  EXPECT_EQ(Tensor::from<float>({2}, {1, 2}, Device::meta).device(), Device::meta);
}

TEST(OtherDevice, WhatIsNotThereIsRefusedByName) {
  try {
    Tensor::empty({2}, DType::f32, Device::plugin(7));
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::unsupported);
    EXPECT_EQ(e.got(), "plugin:7");
    EXPECT_NE(e.expected().find("cpu"), std::string::npos);
  }
}

}  // namespace
}  // namespace heddle
