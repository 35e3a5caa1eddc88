#include <gtest/gtest.h>

#include <string>

#include "heddle/device.h"
#include "heddle/error.h"

namespace heddle {
namespace {

TEST(DeviceNames, GoBothWays) {
  for (const Device d : {Device::cpu, Device::cuda(), Device::cuda(3), Device::plugin(1)})
    EXPECT_EQ(parse_device(to_string(d)), d) << to_string(d);
  EXPECT_EQ(to_string(Device::cuda(3)), "cuda:3");
  EXPECT_EQ(parse_device("cuda"), Device::cuda(0));
  EXPECT_EQ(to_string(Device::meta), "meta");
  EXPECT_EQ(to_string(Device::meta_like(Device::cuda(1))), "meta (cuda)");
}

TEST(DeviceNames, WhatIsNoDeviceIsRefusedByName) {
  for (const char* text :
       {"", "gpu", "CPU", "cuda:", "cuda:-1", "cuda:16", "cuda:1x", "cpu:0", "meta"}) {
    try {
      parse_device(text);
      ADD_FAILURE() << text;
    } catch (const Error& e) {
      EXPECT_EQ(e.got(), text);
    }
  }
}

TEST(Devices, MetaIsLikeWhatItImitates) {
  EXPECT_EQ(Device::meta.like, DeviceKind::cpu);
  EXPECT_EQ(Device::meta_like(Device::cuda(2)).like, DeviceKind::cuda);
  EXPECT_EQ(Device::meta_like(Device::meta_like(DeviceKind::cuda)).like, DeviceKind::cuda);
  EXPECT_NE(Device::meta, Device::meta_like(DeviceKind::cuda));
  EXPECT_EQ(Device::cuda(2).like, DeviceKind::cuda);
  EXPECT_TRUE(Device::meta.is_meta());
  EXPECT_FALSE(Device::cuda().is_cpu());
}

}  // namespace
}  // namespace heddle
