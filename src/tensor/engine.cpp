#include "tensor/engine.h"

#include <array>
#include <cstring>
#include <string>

#include "base/process_memory.h"
#include "heddle/error.h"
#include "heddle/memory.h"
#include "tensor/allocator.h"

namespace heddle {

namespace {

template <class T>
void fill_elements(std::byte* at, std::int64_t count, const void* element) {
  T value;
  std::memcpy(&value, element, sizeof value);
  auto* const p = reinterpret_cast<T*>(at);
  for (std::int64_t i = 0; i < count; ++i) p[i] = value;
}

class CpuEngine : public Engine {
 public:
  std::byte* allocate(std::size_t bytes) override { return allocate_block(bytes); }
  void release(std::byte* block, std::size_t bytes) noexcept override {
    release_block(block, bytes);
  }
  void fill(std::byte* at, std::int64_t count, const void* element, std::size_t width) override {
    switch (width) {
      case 1: return fill_elements<std::uint8_t>(at, count, element);
      case 2: return fill_elements<std::uint16_t>(at, count, element);
      case 4: return fill_elements<std::uint32_t>(at, count, element);
      default: return fill_elements<std::uint64_t>(at, count, element);
    }
  }
  void upload(std::byte* to, const void* from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  void download(void* to, const std::byte* from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  void synchronize() override {}
  void trim() noexcept override { trim_memory(); }
  std::string name() const override { return "cpu"; }
  std::int64_t memory_bytes() const override { return memory_limits().total; }
};

// Never destroyed: tensors with static storage duration may outlive any other static object.
CpuEngine& cpu_engine() {
  static auto* instance = new CpuEngine;
  return *instance;
}

struct Engines {
  std::array<std::array<Engine*, kDevicesOfAKind>, kDeviceKinds> all{};
  std::array<std::string, kDeviceKinds> absence;

  Engines() { all[static_cast<std::size_t>(DeviceKind::cpu)][0] = &cpu_engine(); }
};

Engines& engines() {
  static auto* instance = new Engines;
  return *instance;
}

Engine*& place_of(Device device) {
  return engines().all[static_cast<std::size_t>(device.kind)][device.index];
}

std::string available_devices() {
  std::string list;
  for (std::size_t kind = 0; kind < kDeviceKinds; ++kind) {
    find_devices(static_cast<DeviceKind>(kind));
    for (int i = 0; i < kDevicesOfAKind; ++i) {
      if (engines().all[kind][static_cast<std::size_t>(i)] == nullptr) continue;
      const auto k = static_cast<DeviceKind>(kind);
      list += (list.empty() ? "" : ", ");
      list += to_string(Device{k, static_cast<std::uint8_t>(i), k});
    }
  }
  return list;
}

}  // namespace

void add_engine(Device device, Engine& engine) { place_of(device) = &engine; }

void explain_absence(DeviceKind kind, const std::string& reason) {
  engines().absence[static_cast<std::size_t>(kind)] = reason;
}

std::string absence_of(DeviceKind kind) {
  find_devices(kind);
  return engines().absence[static_cast<std::size_t>(kind)];
}

bool has_engine(Device device) {
  if (device.is_meta() || device.index >= kDevicesOfAKind) return false;
  if (place_of(device) == nullptr) find_devices(device.kind);
  return place_of(device) != nullptr;
}

Engine& engine_of(Device device) {
  if (device == Device::cpu) return cpu_engine();  // before all others: it has most of the tensors
  if (has_engine(device)) return *place_of(device);
  const std::string& reason = engines().absence[static_cast<std::size_t>(device.kind)];
  fail(ErrorCode::unsupported, "device",
       reason.empty() ? "there is no device " + to_string(device) : reason, available_devices(),
       to_string(device));
}

}  // namespace heddle
