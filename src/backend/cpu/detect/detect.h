// What a processor says of itself: a file for each architecture.
#pragma once

#include <string>
#include <vector>

#include "backend/cpu/isa.h"

namespace heddle::cpu {

// The levels of this architecture, lowest first, and those of them that this machine runs. For amx
// the operating system's permission is requested.
std::vector<Isa> known_levels();
std::vector<Isa> detect_levels();

// The processor's name; where the system knows none, what it does know.
std::string processor_name();

// The value of the first line "key : value" of /proc/cpuinfo; empty if there is none.
std::string cpuinfo(const std::string& key);

}  // namespace heddle::cpu
