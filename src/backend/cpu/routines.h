// The CPU's routines for the calls of ops.
#pragma once

namespace heddle::cpu {

// Every src/ops/*/<name>.cpu.cpp defines add_<name>_routines(); a generated file calls them all.
void add_routines();

}  // namespace heddle::cpu
