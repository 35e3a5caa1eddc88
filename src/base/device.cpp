#include "heddle/device.h"

#include <charconv>

#include "heddle/error.h"

namespace heddle {

std::string to_string(Device device) {
  std::string kind(to_string(device.kind));
  if (device.is_cpu()) return kind;
  if (!device.is_meta()) return kind + ":" + std::to_string(device.index);
  return device.like == DeviceKind::cpu ? kind
                                        : kind + " (" + std::string(to_string(device.like)) + ")";
}

Device parse_device(std::string_view text) {
  constexpr std::string_view kExpected = "cpu, cuda, or cuda:N for GPU N";
  if (text == "cpu") return Device::cpu;
  const std::size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  if (kind != "cuda" && kind != "plugin")
    fail(ErrorCode::invalid_argument, "device", "the device is not known", kExpected, text);
  int index = 0;
  if (colon != std::string_view::npos) {
    const std::string_view digits = text.substr(colon + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    if (error != std::errc() || end != digits.data() + digits.size() || index < 0 ||
        index >= kDevicesOfAKind)
      fail(ErrorCode::invalid_argument, "device", "the number of the device",
           "0 to " + std::to_string(kDevicesOfAKind - 1), text);
  }
  return kind == "cuda" ? Device::cuda(index) : Device::plugin(index);
}

}  // namespace heddle
