// Where a tensor lives.
#pragma once

#include <cstdint>
#include <string_view>

namespace heddle {

// cpu computes; meta carries shapes, bytes and FLOPs only; cuda has its place here and in every
// switch over Device, and is refused by name until src/backend/cuda exists.
enum class Device : std::uint8_t { cpu, meta, cuda };

inline constexpr int kDeviceCount = 3;

constexpr std::string_view to_string(Device d) {
  switch (d) {
    case Device::cpu: return "cpu";
    case Device::meta: return "meta";
    case Device::cuda: return "cuda";
  }
  return "unknown";
}

}  // namespace heddle
