// Memory of this process as the kernel counts it.
#pragma once

#include <cstdint>

namespace heddle::bench {

// The most that was resident since the start or the last reset, in bytes; 0 where the system does
// not tell. (/proc/self/status, VmHWM.)
std::int64_t resident_peak();
void reset_resident_peak();  // the peak becomes what is resident now, where the system allows it

}  // namespace heddle::bench
