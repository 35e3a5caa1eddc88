// Which instructions and how many threads Heddle uses. The defaults are the best this machine has,
// or what HEDDLE_ISA and HEDDLE_THREADS say.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heddle {

std::string cpu_name();
std::vector<std::string> available_instruction_sets();  // lowest first
std::string instruction_set();
void set_instruction_set(std::string_view name);  // throws Error if unknown or not available

int threads();
void set_threads(int count);  // 1 to 256; throws Error otherwise

}  // namespace heddle
