// Another program's output, for data that a program of the system makes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace heddle::io {

// The program's standard output. It is found on the PATH and run without a shell; its standard
// error is this program's. Throws Error when there is no such program (naming it), when it ends
// with another status than 0, or when it writes more than `max_bytes`.
std::string run_program(const std::vector<std::string>& command, std::size_t max_bytes);

// Whether the PATH has it.
bool has_program(const std::string& name);

}  // namespace heddle::io
