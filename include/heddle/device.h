// Where a tensor lives.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace heddle {

enum class DeviceKind : std::uint8_t {
  cpu,
  cuda,    // an NVIDIA GPU
  plugin,  // of a backend that the program itself registers (docs/backends.md)
  meta,    // computes nothing: carries shapes, bytes and FLOPs
};

inline constexpr int kDeviceKinds = 4;
inline constexpr int kDevicesOfAKind = 16;

struct Device {
  DeviceKind kind = DeviceKind::cpu;
  std::uint8_t index = 0;
  // The kind whose workspaces a meta device plans; any other device is like itself.
  DeviceKind like = DeviceKind::cpu;

  static const Device cpu;
  static const Device meta;  // imitates the CPU
  static constexpr Device cuda(int index = 0) { return of(DeviceKind::cuda, index); }
  static constexpr Device plugin(int index = 0) { return of(DeviceKind::plugin, index); }
  static constexpr Device meta_like(DeviceKind kind) { return {DeviceKind::meta, 0, kind}; }
  static constexpr Device meta_like(Device device) { return meta_like(device.like); }

  constexpr bool is_cpu() const noexcept { return kind == DeviceKind::cpu; }
  constexpr bool is_meta() const noexcept { return kind == DeviceKind::meta; }
  constexpr bool operator==(const Device&) const = default;

 private:
  static constexpr Device of(DeviceKind kind, int index) {
    return {kind, static_cast<std::uint8_t>(index), kind};
  }
};

inline constexpr Device Device::cpu{};
inline constexpr Device Device::meta = Device::meta_like(DeviceKind::cpu);

constexpr std::string_view to_string(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::cpu: return "cpu";
    case DeviceKind::cuda: return "cuda";
    case DeviceKind::plugin: return "plugin";
    case DeviceKind::meta: return "meta";
  }
  return "unknown";
}

// "cpu", "cuda:1", "meta", "meta (cuda)".
std::string to_string(Device device);

// Parses the names that to_string() writes for devices that compute, and "cuda" for the first GPU.
// Throws Error. Does not check that this build and machine have it: the first tensor does.
Device parse_device(std::string_view text);

}  // namespace heddle
